//! Collects batches of the build side and makes them a hash table and chunks of payload, all in
//! memory.
//!
//! Rows with a key come first, in input order; then rows whose key can match nothing, if the join
//! may output them unmatched, those with a null key last. So a row's number is also its position
//! among the keys.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter_record_batch;
use workahead_walks::bucket::{Partitions, Table};
use workahead_walks::walk::Row;

use crate::chunks::Chunks;
use crate::context::NullAwareState;
use crate::decision::Decision;
use crate::distinct::Distinct;
use crate::in_memory_build_side::{BuildData, BuildRowCounts, InMemoryBuildSide};
use crate::join_type::SideOutput;
use crate::keys::store::{FullKeys, KeyStore};
use crate::keys::{EncodingKind, NormalizedKeys, Packing, Range};
use crate::memory::{ChargedBatches, ChargedBuffers};
use crate::memory_estimate::{KEY_BYTES, MemoryEstimate, widest};
use crate::output_columns::ColumnSource;
use crate::table_build::{BuildOptions, BuiltTable, KeyedRows, PIECE_ROWS, Span};
use crate::table_payload::TablePayload;
use crate::{JoinError, JoinSpec, MemoryError, Reservation};

/// Most build rows: a row's number and a flag share 32 bits while duplicate lists are laid out.
pub(crate) const ROWS_MAX: usize = (1 << 31) - 2;

/// A batch and its columns, without a buffer.
const BATCH_BYTES: usize = 512;

/// Widest range of keys for which a dense table is considered.
const WIDEST: u64 = 1 << 36;

/// Collected build batches.
#[derive(Debug)]
pub(crate) struct Builder {
    spec: Arc<JoinSpec>,
    /// Rows with a key.
    keyed: Vec<RecordBatch>,
    /// Rows whose key can match nothing, and rows with a null key; only if the join may output
    /// them.
    unmatchable: Vec<RecordBatch>,
    null: Vec<RecordBatch>,
    rows: BuildRowCounts,
    distinct: Distinct,
    keys: NormalizedKeys,
    ranges: Vec<Range>,
    /// Normalized keys and full keys of formats that are too expensive to read twice.
    kept: Vec<(Vec<u64>, FullKeys)>,
    /// Bytes of `kept`.
    kept_bytes: usize,
    /// Rows of the longest batch.
    batch_rows: usize,
    /// Memory charged for the batches and for `kept`.
    memory: Reservation,
    charged: ChargedBuffers,
    batch_bytes: usize,
}

impl Builder {
    /// Charges its memory to a reservation.
    pub(crate) fn new(spec: Arc<JoinSpec>, memory: Reservation) -> Self {
        let ranges = spec.keys(spec.build_side).ranges();
        Self {
            spec,
            keyed: Vec::new(),
            unmatchable: Vec::new(),
            null: Vec::new(),
            rows: BuildRowCounts::default(),
            distinct: Distinct::new(),
            keys: NormalizedKeys::default(),
            ranges,
            kept: Vec::new(),
            kept_bytes: 0,
            batch_rows: 0,
            memory,
            charged: ChargedBuffers::default(),
            batch_bytes: 0,
        }
    }

    /// Charges the memory that pushing a batch takes.
    pub(crate) fn charge(&mut self, batch: &RecordBatch) -> Result<(), MemoryError> {
        let bytes = self.charged.add(batch);
        // As for the batches before; two components and a hash are assumed for the first.
        let (kept, rows) = (self.kept_bytes, self.rows.keyed);
        let per_row = if rows == 0 { 3 * KEY_BYTES } else { kept.div_ceil(rows) };
        let keys = if self.keeps_keys() { per_row * batch.num_rows() } else { 0 };
        self.memory.grow(bytes + keys + BATCH_BYTES).inspect_err(|_| {
            self.charged.remove(batch);
        })?;
        self.batch_bytes += bytes;
        Ok(())
    }

    /// Counts a batch that is charged already and is about to be pushed.
    pub(crate) fn count(&mut self, batch: &RecordBatch) {
        self.batch_bytes += self.charged.add(batch);
    }

    /// Adds a charged batch.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let rows = self.rows.all() + batch.num_rows();
        if rows > ROWS_MAX {
            return Err(JoinError::TooManyRows { rows, most: ROWS_MAX });
        }
        self.batch_rows = self.batch_rows.max(batch.num_rows());
        self.read_keys(&batch)?;
        self.distinct.add(self.keys.values());
        self.widen();
        self.split(batch)?;
        if self.keys.full_keys.width > 0 {
            let (keys, full_keys) = self.keys.take();
            self.kept_bytes += keys.capacity() * KEY_BYTES + full_keys.bytes();
            self.kept.push((keys, full_keys));
        }
        Ok(())
    }

    /// Widens the range of integer keys, until it is too wide for a dense table.
    fn widen(&mut self) {
        let reader = self.spec.keys(self.spec.build_side);
        let identity = matches!(reader.fixed_encoding(), Some(EncodingKind::Identity));
        if let (true, [range]) = (identity, &mut self.ranges[..])
            && range.span() <= WIDEST
        {
            range.widen(self.keys.values().iter().copied());
        }
    }

    /// The table that the rows pushed so far would get.
    pub(crate) fn decide(&self) -> Decision {
        let kind = self.kind();
        let span = match (&kind, &self.ranges[..]) {
            (EncodingKind::Identity, [range]) => {
                Some(Span { lowest: range.lowest(), width: range.span() })
            }
            (EncodingKind::Packed(packing), _) => {
                Some(Span { lowest: 0, width: packing.highest() })
            }
            _ => None,
        };
        let (keyed, distinct) = (self.rows.keyed, self.distinct.estimate());
        let entries = MemoryEstimate::entries_of(keyed, distinct);
        let layout = self.spec.choose_table_layout(entries, span.map(|span| span.width));
        let existence_only = self.spec.asks_existence_only() && span.is_some();
        let partitioned = false;
        Decision { kind, span, keyed, distinct, entries, layout, existence_only, partitioned }
    }

    /// Charges the batches' actual size.
    pub(crate) fn charge_actual(&mut self) -> Result<(), MemoryError> {
        self.memory.resize(self.batch_bytes + self.kept_bytes)
    }

    fn keeps_keys(&self) -> bool {
        let encoding = self.spec.keys(self.spec.build_side).fixed_encoding();
        matches!(encoding, Some(EncodingKind::Hashed))
    }

    fn read_keys(&mut self, batch: &RecordBatch) -> Result<(), JoinError> {
        let reader = self.spec.keys(self.spec.build_side);
        match reader.fixed_encoding() {
            Some(kind) => {
                let encoding = self.spec.encoding(kind);
                reader.read(&encoding, batch, &mut self.keys)?;
            }
            None => reader.measure(batch, &mut self.keys, &mut self.ranges)?,
        }
        Ok(())
    }

    /// Keeps rows that can match and rows that the join may output unmatched.
    fn split(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        self.rows.input += batch.num_rows();
        let Some(rows) = self.keys.rows() else {
            self.rows.keyed += batch.num_rows();
            self.keyed.push(batch);
            return Ok(());
        };
        self.batch_bytes -= self.charged.remove(&batch);
        let mut keyed = vec![false; batch.num_rows()];
        rows.iter().for_each(|row| keyed[*row as usize] = true);
        let keyed = BooleanBuffer::from(keyed);
        let nulls = self.spec.keys(self.spec.build_side).nulls(&batch);
        let null = match &nulls {
            Some(nulls) if self.spec.null_aware => !nulls.inner(),
            _ => BooleanBuffer::new_unset(batch.num_rows()),
        };
        self.rows.has_null |= null.count_set_bits() > 0;
        let unmatchable = &!&keyed & &!&null;
        let output_rules = self.spec.output_rules();
        let is_output = matches!(output_rules.build, SideOutput::Unmatched | SideOutput::Marked);
        let selections = [
            (keyed, &mut self.keyed, &mut self.rows.keyed, true),
            (unmatchable, &mut self.unmatchable, &mut self.rows.unmatchable, is_output),
            (null, &mut self.null, &mut self.rows.null, is_output),
        ];
        for (selected, batches, rows, kept) in selections {
            if kept && selected.count_set_bits() > 0 {
                let batch_part = filter_record_batch(&batch, &BooleanArray::new(selected, None))?;
                *rows += batch_part.num_rows();
                self.batch_bytes += self.charged.add(&batch_part);
                batches.push(batch_part);
            }
        }
        Ok(())
    }

    /// The batches and their memory charge.
    pub(crate) fn into_batches(self) -> (Vec<RecordBatch>, ChargedBatches) {
        let Self { keyed, unmatchable, null, mut memory, charged, batch_bytes, .. } = self;
        memory.shrink(memory.bytes().saturating_sub(batch_bytes));
        let batches = keyed.into_iter().chain(unmatchable).chain(null).collect();
        (batches, ChargedBatches { memory, buffers: charged })
    }

    pub(crate) fn rows(&self) -> BuildRowCounts {
        self.rows
    }

    fn kind(&self) -> EncodingKind {
        let fixed = self.spec.keys(self.spec.build_side).fixed_encoding();
        fixed
            .or_else(|| Packing::of(&self.ranges).map(EncodingKind::Packed))
            .unwrap_or(EncodingKind::Hashed)
    }

    fn batches(&self) -> impl Iterator<Item = &RecordBatch> {
        self.keyed.iter().chain(&self.unmatchable).chain(&self.null)
    }

    /// Bytes that [`finish`](Self::finish) takes beyond those that are charged.
    pub(crate) fn estimate(&self, decision: &Decision) -> usize {
        let key_bytes = match decision.kind {
            EncodingKind::Hashed if self.kept.is_empty() => {
                self.rows.keyed * self.ranges.len() * KEY_BYTES
            }
            _ => self.kept_bytes.saturating_sub(self.rows.keyed * KEY_BYTES),
        };
        let estimate = MemoryEstimate {
            keyed: decision.keyed,
            rows: self.rows.all(),
            distinct: decision.distinct,
            key_bytes,
            widest_bytes: widest(self.batches()),
            table_bytes: decision.dense_bytes(),
            existence_only: decision.existence_only,
            load: self.spec.load(),
            batch_rows: self.batch_rows,
            match_bitmap: self.spec.output_rules().build != SideOutput::Never,
        };
        estimate.bytes().saturating_sub(self.kept_bytes)
    }

    /// Bytes of a partition of the table: it is filled while the rows for it stream past.
    fn partition_bytes(&self) -> usize {
        self.spec.caches.l2_bytes / 4
    }

    /// Charges what a partitioned build takes beyond the [estimate](Self::estimate), if one pays
    /// (the table does not stay in cache) and memory is left.
    pub(crate) fn reserve_partitioned_build(&mut self, decision: &mut Decision) {
        let repeats = decision.keyed * size_of::<(Row, Row)>();
        let (table, bytes) = match decision.dense_bytes() {
            // The repeats of each thread are not known in advance: the growth of its list is
            // charged too.
            Some(dense) => (Some(dense), 2 * repeats),
            None => {
                let table = Table::bytes_for(decision.entries, self.spec.load());
                (table, repeats + Partitions::row_bytes(decision.keyed))
            }
        };
        decision.partitioned = table.is_some_and(|table| table > self.spec.caches.l2_bytes)
            && self.reserve(bytes).is_ok();
    }

    /// Average bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.batch_bytes.div_ceil(self.rows.all().max(1))
    }

    /// Charges what [`finish`](Self::finish) takes.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), MemoryError> {
        self.memory.grow(bytes)
    }

    /// Takes over a reservation charged for [`finish`](Self::finish).
    pub(crate) fn take_over(&mut self, memory: Reservation) {
        self.memory.absorb(memory);
    }

    /// Releases memory that is not needed.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes);
    }

    /// Builds the table. The memory for it is charged before.
    pub(crate) fn finish(
        mut self,
        decision: Decision,
        null_aware_state: Arc<NullAwareState>,
    ) -> Result<InMemoryBuildSide, JoinError> {
        let side = self.spec.build_side;
        let mut encoding = self.spec.encoding(decision.kind.clone());
        let reader = self.spec.keys(side);
        let (pages, stop) = (&self.spec.pages, &self.spec.stop);
        let rows = self.rows.keyed;
        let mut source = KeyedRows { batches: &self.keyed, reader, read_keys: None, rows, stop };
        let mut store = None;
        if encoding.is_hashed() {
            if self.kept.is_empty() {
                self.kept = source.read_all(&encoding)?;
            }
            let (keys, full_keys) = std::mem::take(&mut self.kept).into_iter().unzip();
            store = Some(KeyStore::new(full_keys, pages, stop)?);
            source.read_keys = Some(keys);
        }
        let column = TablePayload::column(&self.spec).filter(|_| store.is_none());
        let options = BuildOptions {
            entries: decision.entries,
            load: self.spec.load(),
            threads: decision.threads(self.spec.probers),
            pages,
            partition_bytes: decision.partitioned.then(|| self.partition_bytes()),
            piece_rows: PIECE_ROWS,
            payload: column,
            existence_only: decision.existence_only,
        };
        let (mut kept, schema) = (kept_columns(&self.spec), self.spec.schema_of(side));
        let built = match decision.dense_span() {
            Some(span) => source.build_dense(&options, span, &encoding)?,
            None => source.build(&options, &mut encoding)?,
        };
        drop(source);
        let batches = [self.keyed, self.unmatchable, self.null].concat();
        let (mut table, duplicate_lists, payload, collides) = match built {
            BuiltTable::Payload(table, payload) => (table, pages.zeroed(0)?, Some(payload), false),
            BuiltTable::Rows(mut table, repeats) => {
                let collides = repeats.collide(store.as_ref(), stop)?;
                let duplicate_lists = repeats.lay_out(&mut table, pages, stop)?;
                (table, duplicate_lists, None, collides)
            }
        };
        if let (Some(_), Some(column)) = (&payload, column) {
            kept[column] = false;
        }
        let mut chunks = Chunks::new(batches, schema, &kept, pages, stop)?;
        let payload = match column.filter(|_| payload.is_none() && duplicate_lists.is_empty()) {
            None => payload,
            Some(column) => TablePayload::put(&mut table, chunks.only(column)).inspect(|_| {
                chunks.forget(column);
            }),
        };
        let (hash_table, layout) = (table, decision.layout);
        let data = BuildData {
            hash_table,
            duplicate_lists,
            store,
            collides,
            chunks,
            payload,
            encoding,
            layout,
        };
        let mut in_memory =
            InMemoryBuildSide::new(self.spec, data, self.rows, null_aware_state, self.memory);
        let bytes = in_memory.bytes();
        in_memory.memory.resize(bytes)?;
        Ok(in_memory)
    }
}

/// Which columns of the build side are gathered.
fn kept_columns(spec: &JoinSpec) -> Vec<bool> {
    let side = spec.build_side;
    let (outputs_side, sources) =
        (spec.output_rules().build != SideOutput::Never, spec.match_sources());
    let filter = spec.filter.as_ref();
    let kept = |column| {
        sources.contains(&ColumnSource::Column(side, column))
            || (outputs_side && spec.output_columns.contains(side, column))
            || filter.is_some_and(|filter| filter.reads(side, column))
    };
    (0..spec.schema_of(side).fields().len()).map(kept).collect()
}
