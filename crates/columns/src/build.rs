//! The build side: batches become a table of keys and chunks of payload.
//!
//! Rows with a key come first, in the order they came; then those whose key matches nothing, if
//! they may come out alone, those with a null key last. So a row's number is also its place among
//! the keys.

use std::time::{Duration, Instant};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter_record_batch;
use workahead_machine::pages::Pages;
use workahead_operators::bucket::{Load, Table, TableError};
use workahead_operators::walk::Row;

use crate::chunks::Chunks;
use crate::distinct::Distinct;
use crate::groups::Repeats;
use crate::inline::Inline;
use crate::join_type::Alone;
use crate::keys::store::{KeyStore, Parts};
use crate::keys::{Keys, Mapping, MappingKind, Packing, Range, Reader};
use crate::layout;
use crate::table::{Inside, Rows};
use crate::{HashJoin, JoinError, JoinTable};

/// Most build rows: a row's number and a mark share 32 bits while groups are laid out.
const ROWS_MAX: usize = (1 << 31) - 2;

/// How often a crowded table is tried again with its keys mixed differently. One is enough unless
/// somebody chose the keys after reading this.
const ATTEMPTS: u64 = 4;

/// Build batches, collected.
#[derive(Debug)]
pub struct BuildSide {
    join: HashJoin,
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
    kept: Vec<(Vec<u64>, Parts)>,
    busy: Duration,
}

impl BuildSide {
    pub(crate) fn new(join: HashJoin) -> Self {
        let ranges = join.keys(join.build_side).ranges();
        Self {
            join,
            keyed: Vec::new(),
            impossible: Vec::new(),
            null: Vec::new(),
            rows: Rows::default(),
            distinct: Distinct::new(),
            keys: Keys::default(),
            ranges,
            kept: Vec::new(),
            busy: Duration::ZERO,
        }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// When the batch is not of the announced schema, or there are more rows than can be counted.
    pub fn push(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let start = Instant::now();
        self.join.check(self.join.build_side, batch.schema_ref())?;
        let rows = self.rows.all() + batch.num_rows();
        if rows > ROWS_MAX {
            return Err(JoinError::TooManyRows { rows, most: ROWS_MAX });
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.read_keys(&batch)?;
        self.distinct.add(self.keys.words());
        self.split(batch)?;
        if self.keys.parts.width > 0 {
            self.kept.push(self.keys.take());
        }
        self.busy += start.elapsed();
        Ok(())
    }

    fn read_keys(&mut self, batch: &RecordBatch) -> Result<(), JoinError> {
        let reader = self.join.keys(self.join.build_side);
        match reader.fixed_mapping() {
            Some(kind) => {
                let mapping = self.join.mapping(kind);
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
        let mut keyed = vec![false; batch.num_rows()];
        rows.iter().for_each(|row| keyed[*row as usize] = true);
        let keyed = BooleanBuffer::from(keyed);
        let nulls = self.join.keys(self.join.build_side).nulls(&batch);
        let null = match &nulls {
            Some(nulls) if self.join.null_aware => !nulls.inner(),
            _ => BooleanBuffer::new_unset(batch.num_rows()),
        };
        self.rows.saw_null |= null.count_set_bits() > 0;
        let impossible = &!&keyed & &!&null;
        let emits = self.join.emits();
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
                batches.push(part);
            }
        }
        Ok(())
    }

    /// Builds the table.
    ///
    /// # Errors
    /// When memory is short.
    pub fn finish(mut self) -> Result<JoinTable, JoinError> {
        let start = Instant::now();
        let side = self.join.build_side;
        let reader = self.join.keys(side);
        let kind = reader
            .fixed_mapping()
            .or_else(|| Packing::of(&self.ranges).map(MappingKind::Packed))
            .unwrap_or(MappingKind::Hashed);
        let mut mapping = self.join.mapping(kind);
        let mut source = Source { batches: &self.keyed, reader, kept: None, rows: self.rows.keyed };
        let mut store = None;
        if mapping.is_hashed() {
            if self.kept.is_empty() {
                self.kept = source.read_all(&mapping)?;
            }
            let (words, parts) = std::mem::take(&mut self.kept).into_iter().unzip();
            store = Some(KeyStore::new(parts, self.join.pages)?);
            source.kept = Some(words);
        }
        // The estimate's error and a little, but never more than there are rows.
        let estimate = self.distinct.estimate();
        let entries = self.rows.keyed.min(estimate + estimate / 10);
        let (mut table, repeats) = source.table(entries, &mut mapping, self.join.pages)?;
        let collides = store.as_ref().is_some_and(|store| repeats.collide(store));
        let groups = repeats.lay_out(&mut table, self.join.pages)?;
        drop(source);
        let mut batches = self.keyed;
        batches.append(&mut self.impossible);
        batches.append(&mut self.null);
        let kept = kept_columns(&self.join);
        let schema = self.join.schema_of(side);
        let mut chunks = Chunks::new(batches, schema, &kept, self.join.pages)?;
        let unique = groups.is_empty() && store.is_none();
        let inline = Inline::column(&self.join).filter(|_| unique).and_then(|column| {
            let inline = Inline::put(&mut table, chunks.only(column)?)?;
            chunks.forget(column);
            Some(inline)
        });
        let inside = Inside { table, groups, store, collides, chunks, inline, mapping };
        Ok(JoinTable::new(self.join, inside, self.rows, self.busy + start.elapsed()))
    }
}

/// Which columns of the build side are gathered.
fn kept_columns(join: &HashJoin) -> Vec<bool> {
    let side = join.build_side;
    let (alone, sources) = (join.emits().build != Alone::Never, join.pair_sources());
    let filter = join.filter.as_ref();
    let kept = |column| {
        sources.contains(&layout::Source::Column(side, column))
            || (alone && join.layout.shows(side, column))
            || filter.is_some_and(|filter| filter.reads(side, column))
    };
    (0..join.schema_of(side).fields().len()).map(kept).collect()
}

/// The rows of the build side, to be grouped.
struct Source<'a> {
    batches: &'a [RecordBatch],
    reader: &'a Reader,
    /// The words of the batches, if they are not read again.
    kept: Option<Vec<Vec<u64>>>,
    rows: usize,
}

impl Source<'_> {
    /// A table of about so many entries; with keys mixed differently if it is crowded.
    fn table(
        &self,
        entries: usize,
        mapping: &mut Mapping,
        pages: Pages,
    ) -> Result<(Table, Repeats), JoinError> {
        loop {
            let entries = if mapping.whiten.is_none() { entries } else { self.rows };
            match self.attempt(entries, mapping, pages) {
                Err(JoinError::Table(TableError::Crowded { .. }))
                    if mapping.whiten.is_none_or(|tried| tried < ATTEMPTS) =>
                {
                    mapping.whiten = Some(mapping.whiten.map_or(1, |tried| tried + 1));
                }
                built => return built,
            }
        }
    }

    fn attempt(
        &self,
        entries: usize,
        mapping: &Mapping,
        pages: Pages,
    ) -> Result<(Table, Repeats), JoinError> {
        let mut table = Table::for_entries(entries, Load::HALF, pages)?;
        let mut repeats = Repeats::of(self.rows);
        let mut base = 0;
        if let Some(kept) = &self.kept {
            let mut mixed = Vec::new();
            for words in kept {
                let words = mapping.whitened(words, &mut mixed);
                table = table.grouped(words, base, &mut repeats)?;
                base += words.len() as Row;
            }
            return Ok((table, repeats));
        }
        let mut keys = Keys::default();
        for batch in self.batches {
            self.reader.read(mapping, batch, &mut keys)?;
            table = table.grouped(keys.words(), base, &mut repeats)?;
            base += keys.words().len() as Row;
        }
        Ok((table, repeats))
    }

    fn read_all(&self, mapping: &Mapping) -> Result<Vec<(Vec<u64>, Parts)>, JoinError> {
        let read = |batch| {
            let mut keys = Keys::default();
            self.reader.read(mapping, batch, &mut keys)?;
            Ok(keys.take())
        };
        self.batches.iter().map(read).collect()
    }
}
