//! Batches of the build side become a table of keys and chunks of payload, all in memory.
//!
//! Rows with a key come first, in the order they came; then those whose key matches nothing, if
//! they may come out alone, those with a null key last. So a row's number is also its place among
//! the keys.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter_record_batch;
use workahead_walks::bucket::{Load, Parts, Table};
use workahead_walks::walk::Row;

use crate::chunks::Chunks;
use crate::context::Facts;
use crate::decision::Decision;
use crate::distinct::Distinct;
use crate::fill::{Filled, Filling, PIECE_ROWS, Source, Span};
use crate::inline::Inline;
use crate::join_type::Alone;
use crate::keys::store::{KeyStore, Parts as KeyParts};
use crate::keys::{Keys, MappingKind, Packing, Range};
use crate::layout;
use crate::memory::{Charged, Held};
use crate::needs::{Needs, WORD_BYTES, widest};
use crate::resident::{Inside, Resident, Rows};
use crate::{JoinError, JoinSpec, MemoryError, Reservation};

/// Most build rows: a row's number and a mark share 32 bits while groups are laid out.
pub(crate) const ROWS_MAX: usize = (1 << 31) - 2;

/// Beyond, a range of keys is too wide for a table of all of it, however many there are.
const WIDEST: u64 = 1 << 36;

/// Build batches, collected.
#[derive(Debug)]
pub(crate) struct Builder {
    spec: Arc<JoinSpec>,
    /// Rows with a key.
    keyed: Vec<RecordBatch>,
    /// Rows whose key matches nothing, and of them those with a null; only if they may come out.
    impossible: Vec<RecordBatch>,
    null: Vec<RecordBatch>,
    rows: Rows,
    distinct: Distinct,
    keys: Keys,
    ranges: Vec<Range>,
    /// Words and keys that are not read again: their form is too dear.
    kept: Vec<(Vec<u64>, KeyParts)>,
    /// Bytes of `kept`.
    kept_bytes: usize,
    /// Rows of the longest batch.
    batch_rows: usize,
    /// What the batches are charged with, and `kept`.
    memory: Reservation,
    charged: Charged,
    batch_bytes: usize,
}

impl Builder {
    /// With what will be taken charged to a reservation.
    pub(crate) fn new(spec: Arc<JoinSpec>, memory: Reservation) -> Self {
        let ranges = spec.keys(spec.build_side).ranges();
        Self {
            spec,
            keyed: Vec::new(),
            impossible: Vec::new(),
            null: Vec::new(),
            rows: Rows::default(),
            distinct: Distinct::new(),
            keys: Keys::default(),
            ranges,
            kept: Vec::new(),
            kept_bytes: 0,
            batch_rows: 0,
            memory,
            charged: Charged::default(),
            batch_bytes: 0,
        }
    }

    /// Charges what pushing a batch will take.
    pub(crate) fn charge(&mut self, batch: &RecordBatch) -> Result<(), MemoryError> {
        let bytes = self.charged.add(batch);
        // As those before; a guess of two words and a hash for the first.
        let (kept, rows) = (self.kept_bytes, self.rows.keyed);
        let per_row = if rows == 0 { 3 * WORD_BYTES } else { kept.div_ceil(rows) };
        let keys = if self.keeps_keys() { per_row * batch.num_rows() } else { 0 };
        self.memory.grow(bytes + keys).inspect_err(|_| {
            self.charged.remove(batch);
        })?;
        self.batch_bytes += bytes;
        Ok(())
    }

    /// Counts a batch to be pushed that is charged already.
    pub(crate) fn count(&mut self, batch: &RecordBatch) {
        self.batch_bytes += self.charged.add(batch);
    }

    /// Adds a batch that is charged.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let rows = self.rows.all() + batch.num_rows();
        if rows > ROWS_MAX {
            return Err(JoinError::TooManyRows { rows, most: ROWS_MAX });
        }
        self.batch_rows = self.batch_rows.max(batch.num_rows());
        self.read_keys(&batch)?;
        self.distinct.add(self.keys.words());
        self.widen();
        self.split(batch)?;
        if self.keys.parts.width > 0 {
            let (words, parts) = self.keys.take();
            self.kept_bytes += words.capacity() * WORD_BYTES + parts.bytes();
            self.kept.push((words, parts));
        }
        Ok(())
    }

    /// Widens the range of keys that are words, until it is too wide to matter.
    fn widen(&mut self) {
        let reader = self.spec.keys(self.spec.build_side);
        let identity = matches!(reader.fixed_mapping(), Some(MappingKind::Identity));
        if let (true, [range]) = (identity, &mut self.ranges[..])
            && range.span() <= WIDEST
        {
            range.widen(self.keys.words().iter().copied());
        }
    }

    /// What a table of the rows pushed so far would be.
    pub(crate) fn decide(&self) -> Decision {
        let kind = self.kind();
        let span = match (&kind, &self.ranges[..]) {
            (MappingKind::Identity, [range]) => {
                Some(Span { lowest: range.lowest(), width: range.span() })
            }
            (MappingKind::Packed(packing), _) => Some(Span { lowest: 0, width: packing.highest() }),
            _ => None,
        };
        let (keyed, distinct) = (self.rows.keyed, self.distinct.estimate());
        let entries = Needs { keyed, distinct, ..Needs::default() }.entries();
        let design = self.spec.designed(entries, span.map(|span| span.width));
        Decision { kind, span, keyed, distinct, entries, design, spreads: false }
    }

    /// Charges what the batches really take.
    pub(crate) fn settle(&mut self) -> Result<(), MemoryError> {
        self.memory.resize(self.batch_bytes + self.kept_bytes)
    }

    fn keeps_keys(&self) -> bool {
        let mapping = self.spec.keys(self.spec.build_side).fixed_mapping();
        matches!(mapping, Some(MappingKind::Hashed))
    }

    fn read_keys(&mut self, batch: &RecordBatch) -> Result<(), JoinError> {
        let reader = self.spec.keys(self.spec.build_side);
        match reader.fixed_mapping() {
            Some(kind) => {
                let mapping = self.spec.mapping(kind);
                reader.read(&mapping, batch, &mut self.keys)?;
            }
            None => reader.measure(batch, &mut self.keys, &mut self.ranges)?,
        }
        Ok(())
    }

    /// Keeps the rows that can match, and those that may come out alone.
    fn split(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        self.rows.seen += batch.num_rows();
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
        self.rows.saw_null |= null.count_set_bits() > 0;
        let impossible = &!&keyed & &!&null;
        let emits = self.spec.emits();
        let comes_out = matches!(emits.build, Alone::Unmatched | Alone::Marked);
        let parts = [
            (keyed, &mut self.keyed, &mut self.rows.keyed, true),
            (impossible, &mut self.impossible, &mut self.rows.impossible, comes_out),
            (null, &mut self.null, &mut self.rows.null, comes_out),
        ];
        for (wanted, batches, rows, kept) in parts {
            if kept && wanted.count_set_bits() > 0 {
                let part = filter_record_batch(&batch, &BooleanArray::new(wanted, None))?;
                *rows += part.num_rows();
                self.batch_bytes += self.charged.add(&part);
                batches.push(part);
            }
        }
        Ok(())
    }

    /// The batches, and what they are charged with.
    pub(crate) fn into_batches(self) -> (Vec<RecordBatch>, Held) {
        let Self { keyed, impossible, null, mut memory, charged, batch_bytes, .. } = self;
        memory.shrink(memory.bytes().saturating_sub(batch_bytes));
        let batches = keyed.into_iter().chain(impossible).chain(null).collect();
        (batches, Held { memory, charged })
    }

    pub(crate) fn rows(&self) -> Rows {
        self.rows
    }

    fn kind(&self) -> MappingKind {
        let fixed = self.spec.keys(self.spec.build_side).fixed_mapping();
        fixed
            .or_else(|| Packing::of(&self.ranges).map(MappingKind::Packed))
            .unwrap_or(MappingKind::Hashed)
    }

    fn batches(&self) -> impl Iterator<Item = &RecordBatch> {
        self.keyed.iter().chain(&self.impossible).chain(&self.null)
    }

    /// The bytes that [`finish`](Self::finish) takes beyond those that are charged.
    pub(crate) fn needs(&self, decision: &Decision) -> usize {
        let key_bytes = match decision.kind {
            MappingKind::Hashed if self.kept.is_empty() => {
                self.rows.keyed * self.ranges.len() * WORD_BYTES
            }
            _ => self.kept_bytes.saturating_sub(self.rows.keyed * WORD_BYTES),
        };
        let needs = Needs {
            keyed: decision.keyed,
            rows: self.rows.all(),
            distinct: decision.distinct,
            key_bytes,
            widest_bytes: widest(self.batches()),
            table_bytes: decision.dense_bytes().unwrap_or(0),
            batch_rows: self.batch_rows,
            flags: self.spec.emits().build != Alone::Never,
        };
        needs.bytes().saturating_sub(self.kept_bytes)
    }

    /// Bytes that a part of the table should have: it is filled while the rows for it stream past.
    fn part_bytes(&self) -> usize {
        self.spec.caches.l2_bytes / 4
    }

    /// Charges what [`finish`](Self::finish) takes beyond what it [`needs`](Self::needs) where rows
    /// are spread over parts or threads, if that pays (where the table does not stay in cache) and
    /// there is room.
    pub(crate) fn reserve_spreading(&mut self, decision: &mut Decision) {
        let repeats = decision.keyed * size_of::<(Row, Row)>();
        let (table, bytes) = match decision.dense_bytes() {
            // Threads do not know how many of them they will have: what they grow is charged too.
            Some(dense) => (Some(dense), 2 * repeats),
            None => {
                let table = Table::bytes_for(decision.entries, Load::HALF);
                (table, repeats + Parts::scattered_bytes(decision.keyed))
            }
        };
        decision.spreads = table.is_some_and(|table| table > self.spec.caches.l2_bytes)
            && self.reserve(bytes).is_ok();
    }

    /// Bytes of a row, about.
    pub(crate) fn row_bytes(&self) -> usize {
        self.batch_bytes.div_ceil(self.rows.all().max(1))
    }

    /// Charges what [`finish`](Self::finish) takes.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), MemoryError> {
        self.memory.grow(bytes)
    }

    /// Takes what [`finish`](Self::finish) takes as charged already.
    pub(crate) fn take_over(&mut self, memory: Reservation) {
        self.memory.absorb(memory);
    }

    /// Gives back what was charged and is not needed.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes);
    }

    /// Builds the table. What that needs is charged before.
    pub(crate) fn finish(
        mut self,
        decision: Decision,
        facts: Arc<Facts>,
    ) -> Result<Resident, JoinError> {
        let side = self.spec.build_side;
        let mut mapping = self.spec.mapping(decision.kind.clone());
        let reader = self.spec.keys(side);
        let mut source = Source { batches: &self.keyed, reader, kept: None, rows: self.rows.keyed };
        let mut store = None;
        if mapping.is_hashed() {
            if self.kept.is_empty() {
                self.kept = source.read_all(&mapping)?;
            }
            let (words, parts) = std::mem::take(&mut self.kept).into_iter().unzip();
            store = Some(KeyStore::new(parts, &self.spec.pages)?);
            source.kept = Some(words);
        }
        let column = Inline::column(&self.spec).filter(|_| store.is_none());
        let how = Filling {
            entries: decision.entries,
            threads: if decision.spreads { self.spec.probers } else { 1 },
            pages: &self.spec.pages,
            part_bytes: decision.spreads.then(|| self.part_bytes()),
            piece_rows: PIECE_ROWS,
            inline: column,
        };
        let (mut kept, schema) = (kept_columns(&self.spec), self.spec.schema_of(side));
        let filled = match decision.dense_span() {
            Some(span) => source.fill_dense(&how, span, &mapping)?,
            None => source.fill(&how, &mut mapping)?,
        };
        drop(source);
        let mut batches = self.keyed;
        batches.append(&mut self.impossible);
        batches.append(&mut self.null);
        let (mut table, groups, inline, collides) = match filled {
            Filled::Inline(table, inline) => {
                (table, self.spec.pages.zeroed(0)?, Some(inline), false)
            }
            Filled::Grouped(mut table, repeats) => {
                let collides = store.as_ref().is_some_and(|store| repeats.collide(store));
                let groups = repeats.lay_out(&mut table, &self.spec.pages)?;
                (table, groups, None, collides)
            }
        };
        if let (Some(_), Some(column)) = (&inline, column) {
            kept[column] = false;
        }
        let mut chunks = Chunks::new(batches, schema, &kept, &self.spec.pages)?;
        let inline = match column.filter(|_| inline.is_none() && groups.is_empty()) {
            None => inline,
            Some(column) => Inline::put(&mut table, chunks.only(column)).inspect(|_| {
                chunks.forget(column);
            }),
        };
        let design = decision.design;
        let inside = Inside { table, groups, store, collides, chunks, inline, mapping, design };
        let mut resident = Resident::new(self.spec, inside, self.rows, facts, self.memory);
        let bytes = resident.bytes();
        resident.memory.resize(bytes)?;
        Ok(resident)
    }
}

/// Which columns of the build side are gathered.
fn kept_columns(spec: &JoinSpec) -> Vec<bool> {
    let side = spec.build_side;
    let (alone, sources) = (spec.emits().build != Alone::Never, spec.pair_sources());
    let filter = spec.filter.as_ref();
    let kept = |column| {
        sources.contains(&layout::Source::Column(side, column))
            || (alone && spec.layout.shows(side, column))
            || filter.is_some_and(|filter| filter.reads(side, column))
    };
    (0..spec.schema_of(side).fields().len()).map(kept).collect()
}
