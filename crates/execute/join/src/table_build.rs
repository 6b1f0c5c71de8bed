//! Builds the hash table from the keys of the build side: row by row while it fits in cache, else
//! radix-partitioned and on several threads.
//!
//! ```text
//! batches ─┬─ thread 0: keys ─► count ─► partition ─┐     ┌─ partitions of the table,
//!          └─ thread 1: keys ─► count ─► partition ─┴──►──┴─ each filled by the next free thread
//! ```

mod dense;
mod threads;

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};
use workahead_machine::pages::Supply;
use workahead_walks::bucket::partitions::PartitionedRows;
use workahead_walks::bucket::{Load, Partitions, Table, TableError};
use workahead_walks::walk::{Row, Sink};

pub(crate) use dense::Span;
use threads::on_threads;

use crate::duplicates::Repeats;
use crate::hash_table::HashTable;
use crate::keys::store::FullKeys;
use crate::keys::{KeyEncoding, NormalizedKeys, Reader};
use crate::table_payload::TablePayload;
use crate::{JoinError, StopCheck};

/// How often a crowded table is rebuilt with another salt. Once is enough unless the keys were
/// chosen against this very hash.
const ATTEMPTS: u64 = 4;

/// The estimated share of rows with distinct keys from which the build tries to store payload
/// values in entries at once.
const UNIQUE: f64 = 0.9;

/// Most rows read at a time: their keys stay in cache, and threads finish at about the same time.
pub(crate) const PIECE_ROWS: usize = 1 << 14;

/// The rows of the build side that have a key.
pub(crate) struct KeyedRows<'a> {
    pub(crate) batches: &'a [RecordBatch],
    pub(crate) reader: &'a Reader,
    /// The batches' normalized keys, if they are not read again.
    pub(crate) read_keys: Option<Vec<Vec<u64>>>,
    pub(crate) rows: usize,
    pub(crate) stop: &'a StopCheck,
}

/// Options of a table build.
pub(crate) struct BuildOptions<'a> {
    /// Estimated distinct keys.
    pub(crate) entries: usize,
    /// How full buckets may get.
    pub(crate) load: Load,
    pub(crate) threads: usize,
    pub(crate) pages: &'a Supply,
    /// Bytes of a partition of the table, for a partitioned build.
    pub(crate) partition_bytes: Option<usize>,
    /// Most rows read at a time: [`PIECE_ROWS`], but in tests.
    pub(crate) piece_rows: usize,
    /// The column whose values may be stored in entries instead of row numbers.
    pub(crate) payload: Option<usize>,
    /// Whether only the first row of each key is needed, and not even that one's number.
    pub(crate) existence_only: bool,
}

/// The built table.
pub(crate) enum BuiltTable {
    /// Its entries hold rows; duplicate lists are not laid out yet.
    Rows(HashTable, Repeats),
    /// Its entries hold the values of a column: no key repeats.
    Payload(HashTable, TablePayload),
}

/// The values partitioned along with the keys.
#[derive(Clone, Copy)]
enum Values {
    Rows,
    Column(usize),
}

/// Rows of one batch.
#[derive(Debug, Clone)]
struct Piece {
    batch: usize,
    rows: Range<usize>,
    /// Row number of the first row in the build side.
    first: Row,
}

impl KeyedRows<'_> {
    /// Builds a table of all keys, again with another salt if it is crowded.
    pub(crate) fn build(
        &self,
        options: &BuildOptions<'_>,
        encoding: &mut KeyEncoding,
    ) -> Result<BuiltTable, JoinError> {
        loop {
            let entries = if encoding.salt.is_none() { options.entries } else { self.rows };
            let built = match options.partition_bytes {
                Some(bytes) => self.build_partitioned(
                    Partitions::of(entries, options.load, bytes)?,
                    options,
                    encoding,
                ),
                None => self.build_by_rows(entries, options, encoding),
            };
            match built {
                Err(JoinError::Table(TableError::Crowded { .. }))
                    if encoding.salt.is_none_or(|salt| salt < ATTEMPTS) =>
                {
                    encoding.salt = Some(encoding.salt.map_or(1, |salt| salt + 1));
                }
                built => return built,
            }
        }
    }

    fn build_by_rows(
        &self,
        entries: usize,
        options: &BuildOptions<'_>,
        encoding: &KeyEncoding,
    ) -> Result<BuiltTable, JoinError> {
        let table = Table::for_entries(entries, options.load, options.pages.clone())?;
        let mut repeats = Repeats::of(self.rows).ignored_if(options.existence_only);
        let pieces = self.pieces(options);
        let table = self.fold(&pieces, encoding, table, |table, piece, keys| {
            Ok(table.grouped(keys, piece.first, &mut repeats)?)
        })?;
        Ok(BuiltTable::Rows(HashTable::Buckets(table), repeats))
    }

    fn build_partitioned(
        &self,
        partitions: Partitions,
        options: &BuildOptions<'_>,
        encoding: &KeyEncoding,
    ) -> Result<BuiltTable, JoinError> {
        if let Some(column) = self.payload_column(options) {
            let rows = self.partition(partitions, Values::Column(column), options, encoding)?;
            if let Some(table) = partitions.unique(&rows, options.threads, options.pages)? {
                let payload = TablePayload::of(self.batches[0].column(column).data_type());
                return Ok(BuiltTable::Payload(HashTable::Buckets(table), payload));
            }
        }
        let rows = self.partition(partitions, Values::Rows, options, encoding)?;
        let (table, repeated) = partitions.group(&rows, options.threads, options.pages)?;
        let mut repeats = Repeats::of(self.rows).ignored_if(options.existence_only);
        repeated.into_iter().for_each(|(row, first)| repeats.emit(row, first));
        Ok(BuiltTable::Rows(HashTable::Buckets(table), repeats))
    }

    /// Partitions all rows; each thread takes a run of pieces.
    fn partition(
        &self,
        partitions: Partitions,
        values: Values,
        options: &BuildOptions<'_>,
        encoding: &KeyEncoding,
    ) -> Result<Vec<PartitionedRows>, JoinError> {
        let pieces = self.pieces(options);
        let start = |thread: usize| {
            let row = (self.rows * thread).div_ceil(options.threads);
            pieces.partition_point(|piece| (piece.first as usize) < row)
        };
        on_threads(options.threads, |thread| {
            let run = &pieces[start(thread)..start(thread + 1)];
            self.partition_run(partitions, values, run, options.pages, encoding)
        })
    }

    fn partition_run(
        &self,
        partitions: Partitions,
        values: Values,
        run: &[Piece],
        pages: &Supply,
        encoding: &KeyEncoding,
    ) -> Result<PartitionedRows, JoinError> {
        let mut counts = partitions.counts();
        self.fold(run, encoding, (), |(), _, keys| {
            counts.add(keys);
            Ok(())
        })?;
        let mut partitioned = counts.allocate(pages)?;
        // Reading the keys twice costs less than memory for all of them.
        self.fold(run, encoding, (), |(), piece, keys| {
            match values {
                Values::Rows => partitioned.add(keys, |at| u64::from(piece.first + at as Row)),
                Values::Column(column) => {
                    TablePayload::partition(&self.values(column, piece), keys, &mut partitioned);
                }
            }
            Ok(())
        })?;
        Ok(partitioned)
    }

    /// The payload column for the entries, if it has no nulls and about every row has a distinct
    /// key.
    fn payload_column(&self, options: &BuildOptions<'_>) -> Option<usize> {
        let no_nulls = |column: &usize| {
            self.batches.iter().all(|batch| batch.column(*column).null_count() == 0)
        };
        options.payload.filter(no_nulls).filter(|_| self.seems_unique(options))
    }

    fn seems_unique(&self, options: &BuildOptions<'_>) -> bool {
        self.rows > 0 && options.entries as f64 >= UNIQUE * self.rows as f64
    }

    /// All rows in pieces. Batches without any key are missing from `batches`, but not from
    /// `read_keys`.
    fn pieces(&self, options: &BuildOptions<'_>) -> Vec<Piece> {
        let read_keys = self.read_keys.iter().flatten().map(Vec::len);
        let read = self.batches.iter().filter(|_| self.read_keys.is_none());
        let (mut pieces, mut first) = (Vec::new(), 0);
        for (batch, all) in read_keys.chain(read.map(RecordBatch::num_rows)).enumerate() {
            for start in (0..all).step_by(options.piece_rows) {
                let rows = start..all.min(start + options.piece_rows);
                let next = first + rows.len() as Row;
                pieces.push(Piece { batch, rows, first });
                first = next;
            }
        }
        pieces
    }

    /// A column of a piece.
    fn values(&self, column: usize, piece: &Piece) -> ArrayRef {
        self.batches[piece.batch].column(column).slice(piece.rows.start, piece.rows.len())
    }

    /// Folds over the normalized keys of the pieces.
    fn fold<'p, T>(
        &self,
        pieces: impl IntoIterator<Item = &'p Piece>,
        encoding: &KeyEncoding,
        start: T,
        mut with: impl FnMut(T, &Piece, &[u64]) -> Result<T, JoinError>,
    ) -> Result<T, JoinError> {
        let (mut batch_keys, mut mixed) = (NormalizedKeys::default(), Vec::new());
        pieces.into_iter().try_fold(start, |so_far, piece| {
            self.stop.check()?;
            let Piece { batch, rows, .. } = piece;
            let keys = match &self.read_keys {
                Some(read_keys) => encoding.salted(&read_keys[*batch][rows.clone()], &mut mixed),
                None => {
                    let rows = self.batches[*batch].slice(rows.start, rows.len());
                    self.reader.read(encoding, &rows, &mut batch_keys)?;
                    batch_keys.values()
                }
            };
            with(so_far, piece, keys)
        })
    }

    /// Reads the normalized and the full keys of all batches.
    pub(crate) fn read_all(
        &self,
        encoding: &KeyEncoding,
    ) -> Result<Vec<(Vec<u64>, FullKeys)>, JoinError> {
        let read = |batch| {
            self.stop.check()?;
            let mut keys = NormalizedKeys::default();
            self.reader.read(encoding, batch, &mut keys)?;
            Ok(keys.take())
        };
        self.batches.iter().map(read).collect()
    }
}
