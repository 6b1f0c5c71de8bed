//! The build side: batches become a table of keys and chunks of payload.
//!
//! ```text
//! table entry   [ rows : 32 | first : 32 ]     rows 0:  the one build row is `first`
//!                                              else:    group[first .. first + rows]
//! group         …│ 3 │ 17 │ 90 │ 4 │ 5 │…      build rows of one key, ascending, side by side
//! ```
//!
//! Every key is held once and its rows lie together: a hot key neither crowds the table nor makes
//! its neighbours' probes long, a key with one row (most joins have no other) costs no second miss,
//! and the rows of a key are read at the speed of memory. Entries for every row would be one pass
//! less to build, but an n:m join reads each key's rows many times. (Contiguous duplicates: Birler,
//! Schmidt, Fent, Neumann, *Simple, Efficient, and Robust Hash Tables for Join Processing*, DaMoN
//! 2024.)

use std::time::{Duration, Instant};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_operators::bucket::{Group, Load, Table, TableError};
use workahead_operators::walk::{Row, Sink};

use crate::chunks::Chunks;
use crate::distinct::Distinct;
use crate::join::Input;
use crate::keys::{KeyReader, Keys};
use crate::{Choice, HashJoin, JoinError, Prober, Side};

/// Most build rows: a row's number and a mark share 32 bits while groups are laid out.
const ROWS_MAX: usize = (1 << 31) - 2;

/// How often a crowded table is tried again with its keys mixed differently. One is enough unless
/// somebody chose the keys after reading this.
const ATTEMPTS: u64 = 4;

/// Build batches, collected.
#[derive(Debug)]
pub struct BuildSide {
    join: HashJoin,
    batches: Vec<RecordBatch>,
    rows: usize,
    distinct: Distinct,
    keys: Keys,
    busy: Duration,
}

impl BuildSide {
    pub(crate) fn new(join: HashJoin) -> Self {
        let (batches, distinct, keys) = (Vec::new(), Distinct::new(), Keys::default());
        Self { join, batches, rows: 0, distinct, keys, busy: Duration::ZERO }
    }

    fn input(&self) -> &Input {
        self.join.input(self.join.build_side)
    }

    /// Adds a batch. Rows whose key can't match are left out.
    ///
    /// # Errors
    /// When the batch is not of the announced schema, or there are more rows than can be counted.
    pub fn push(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let start = Instant::now();
        self.input().check(batch.schema_ref())?;
        let (reader, key) = (self.input().keys, self.input().key);
        reader.read(batch.column(key), &mut self.keys);
        let batch = match self.keys.rows() {
            None => batch,
            Some(rows) => {
                let mut kept = vec![false; batch.num_rows()];
                rows.iter().for_each(|row| kept[*row as usize] = true);
                filter_record_batch(&batch, &BooleanArray::from(kept))?
            }
        };
        let rows = self.rows + batch.num_rows();
        if rows > ROWS_MAX {
            return Err(JoinError::TooManyRows { rows, most: ROWS_MAX });
        }
        self.rows = rows;
        self.distinct.add(self.keys.words());
        if batch.num_rows() > 0 {
            self.batches.push(batch);
        }
        self.busy += start.elapsed();
        Ok(())
    }

    /// Builds the table.
    ///
    /// # Errors
    /// When memory is short.
    pub fn finish(self) -> Result<JoinTable, JoinError> {
        let start = Instant::now();
        let Self { join, batches, rows, distinct, busy, .. } = self;
        let side = join.build_side;
        // The estimate's error and a little, but never more than there are rows.
        let estimate = distinct.estimate();
        let entries = rows.min(estimate + estimate / 10);
        let mut whiten = None;
        let (table, groups) = loop {
            let reader =
                whiten.map_or(join.input(side).keys, |w| join.input(side).keys.whitened(w));
            let source = Batches { batches: &batches, key: join.input(side).key, reader, rows };
            match source.table(if whiten.is_none() { entries } else { rows }, join.pages) {
                Err(JoinError::Table(TableError::Crowded { .. }))
                    if whiten.is_none_or(|tried| tried < ATTEMPTS) =>
                {
                    whiten = Some(whiten.map_or(1, |tried| tried + 1));
                }
                built => break built?,
            }
        };
        let table_bytes = table.bytes() + groups.bytes();
        let choice = join.strategy.choose(table_bytes, join.caches);
        let chunks = Chunks::new(if join.sources.iter().any(|source| source.side == side) {
            batches
        } else {
            Vec::new()
        })?;
        let probe_keys = join.input(side.other()).keys;
        let probe_keys = whiten.map_or(probe_keys, |w| probe_keys.whitened(w));
        let busy = busy + start.elapsed();
        Ok(JoinTable { join, table, groups, chunks, rows, choice, probe_keys, busy })
    }
}

/// The rows of the build side, to be grouped.
struct Batches<'a> {
    batches: &'a [RecordBatch],
    key: usize,
    reader: KeyReader,
    rows: usize,
}

impl Batches<'_> {
    fn table(&self, entries: usize, pages: Pages) -> Result<(Table, PageBuffer<Row>), JoinError> {
        let mut table = Table::for_entries(entries, Load::HALF, pages)?;
        let mut repeats = Repeats { rows: self.rows, first: Vec::new(), count: 0 };
        let (mut keys, mut base) = (Keys::default(), 0);
        for batch in self.batches {
            self.reader.read(batch.column(self.key), &mut keys);
            table = table.grouped(keys.words(), base, &mut repeats)?;
            base += keys.words().len() as Row;
        }
        let groups = repeats.lay_out(&mut table, pages)?;
        Ok((table, groups))
    }
}

/// Marks, in [`Repeats::first`], a row whose key was there before.
const REPEAT: u32 = 1 << 31;

/// The rows whose key was there before.
struct Repeats {
    rows: usize,
    /// Of such a row, [`REPEAT`] and the first row with its key. Of a first row, later, where the
    /// next row of its group goes. Empty until a key repeats.
    first: Vec<u32>,
    count: usize,
}

impl Sink<Row> for Repeats {
    #[inline(always)]
    fn emit(&mut self, row: Row, first: Row) {
        if self.first.is_empty() {
            self.first = vec![0; self.rows];
        }
        self.first[row as usize] = REPEAT | first;
        self.count += 1;
    }
}

impl Repeats {
    /// Lays the rows of each group side by side, groups in the order of the table, and points the
    /// entries there.
    fn lay_out(mut self, table: &mut Table, pages: Pages) -> Result<PageBuffer<Row>, JoinError> {
        if self.count == 0 {
            return Ok(PageBuffer::zeroed(0, pages)?);
        }
        let sizes = table.values().map(|value| match Group::of(value).further_rows() {
            0 => 0,
            further => further as usize + 1,
        });
        let mut groups = PageBuffer::<Row>::zeroed(sizes.sum(), pages)?;
        let mut start = 0;
        table.update_values(|value| {
            let group = Group::of(value);
            if group.further_rows() == 0 {
                return value;
            }
            let (first, rows) = (group.first_row(), group.further_rows() + 1);
            groups[start as usize] = first;
            self.first[first as usize] = start + 1;
            start += rows;
            entry(rows, start - rows)
        });
        for row in 0..self.rows {
            let mark = self.first[row];
            if mark & REPEAT != 0 {
                let next = &mut self.first[(mark & !REPEAT) as usize];
                groups[*next as usize] = row as Row;
                *next += 1;
            }
        }
        Ok(groups)
    }
}

fn entry(rows: u32, start: u32) -> u64 {
    u64::from(rows) << 32 | u64::from(start)
}

/// A built table: immutable, for any number of [`Prober`]s on any thread.
pub struct JoinTable {
    pub(crate) join: HashJoin,
    pub(crate) table: Table,
    pub(crate) groups: PageBuffer<Row>,
    pub(crate) chunks: Chunks,
    pub(crate) choice: Choice,
    pub(crate) probe_keys: KeyReader,
    rows: usize,
    busy: Duration,
}

impl JoinTable {
    /// Starts probing: one prober a thread.
    #[must_use]
    pub fn prober(&self) -> Prober<'_> {
        Prober::new(self)
    }

    /// The join it was built for.
    #[must_use]
    pub fn join(&self) -> &HashJoin {
        &self.join
    }

    /// The side it was built from.
    #[must_use]
    pub fn build_side(&self) -> Side {
        self.join.build_side
    }

    /// Build rows in it: those whose key can match.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Different keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.table.len()
    }

    /// Bytes that probes touch: the table and the rows of repeated keys.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.bytes() + self.groups.bytes()
    }

    /// Bytes of the build side's columns.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// The strategy, and why.
    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Time spent in [`BuildSide::push`] and [`BuildSide::finish`].
    #[must_use]
    pub fn build_time(&self) -> Duration {
        self.busy
    }
}

impl std::fmt::Debug for JoinTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinTable")
            .field("rows", &self.rows)
            .field("keys", &self.keys())
            .field("table_bytes", &self.table_bytes())
            .field("choice", &self.choice)
            .finish_non_exhaustive()
    }
}
