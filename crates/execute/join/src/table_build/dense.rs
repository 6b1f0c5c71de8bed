//! Builds a dense table: each integer has a slot of its own. No hash, no comparison, and no better
//! order of rows than that of the input.
//!
//! ```text
//! unique keys   pieces ──► next free thread ──► stores, in any order
//! others        pieces ──► every thread, which handles the slots of its own share
//! keys alone    pieces ──► next free thread ──► sets bits, in any order
//! ```

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use workahead_walks::perfect_hash;
use workahead_walks::perfect_hash::set::KeySet;
use workahead_walks::perfect_hash::shared::{Share, SharedTable};
use workahead_walks::walk::{Row, Sink};

use super::{BuildOptions, BuiltTable, KeyedRows, Piece, Values, on_threads};
use crate::JoinError;
use crate::duplicates::Repeats;
use crate::hash_table::HashTable;
use crate::keys::KeyEncoding;
use crate::table_payload::TablePayload;

/// The range of the build side's keys, inclusive. Signed ranges may wrap through zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) lowest: u64,
    /// Highest less lowest.
    pub(crate) width: u64,
}

/// A dense table being built.
struct Dense<'a> {
    source: &'a KeyedRows<'a>,
    pieces: Vec<Piece>,
    threads: usize,
    encoding: &'a KeyEncoding,
}

impl KeyedRows<'_> {
    /// Builds a dense table of all keys, which lie in `span`: a set, if nothing but their presence
    /// counts.
    pub(crate) fn build_dense(
        &self,
        options: &BuildOptions<'_>,
        span: Span,
        encoding: &KeyEncoding,
    ) -> Result<BuiltTable, JoinError> {
        if options.existence_only {
            return self.build_set(options, span, encoding);
        }
        let range = (span.lowest, span.lowest.wrapping_add(span.width));
        let mut table = perfect_hash::Table::for_range_by(options.threads, range, options.pages)?;
        let dense = Dense {
            source: self,
            pieces: self.pieces(options),
            threads: options.threads,
            encoding,
        };
        if let Some(column) = self.payload_column(options) {
            if dense.put(&mut table, Values::Column(column))? {
                let payload = TablePayload::of(self.batches[0].column(column).data_type());
                return Ok(BuiltTable::Payload(HashTable::Dense(table), payload));
            }
            table.clear(options.threads);
        } else if options.threads > 1 && self.seems_unique(options) {
            if dense.put(&mut table, Values::Rows)? {
                return Ok(BuiltTable::Rows(HashTable::Dense(table), Repeats::of(self.rows)));
            }
            table.clear(options.threads);
        }
        let repeats = dense.group(&mut table)?;
        Ok(BuiltTable::Rows(HashTable::Dense(table), repeats))
    }

    /// Builds the set of all keys, which lie in `span`.
    fn build_set(
        &self,
        options: &BuildOptions<'_>,
        span: Span,
        encoding: &KeyEncoding,
    ) -> Result<BuiltTable, JoinError> {
        let mut set = KeySet::for_span(span.lowest, span.width, options.pages)?;
        let (pieces, next, shared) = (self.pieces(options), AtomicUsize::new(0), set.shared());
        on_threads(options.threads.min(pieces.len()).max(1), |_| {
            let next_pieces =
                std::iter::from_fn(|| pieces.get(next.fetch_add(1, Ordering::Relaxed)));
            self.fold(next_pieces, encoding, (), |(), _, keys| {
                shared.add(keys);
                Ok(())
            })
        })?;
        Ok(BuiltTable::Rows(HashTable::Set(set), Repeats::of(0)))
    }
}

impl Dense<'_> {
    /// Stores all rows. False if a key repeats.
    fn put(&self, table: &mut perfect_hash::Table, values: Values) -> Result<bool, JoinError> {
        let (next, repeats) = (AtomicUsize::new(0), AtomicBool::new(false));
        let shared = table.shared();
        on_threads(self.threads, |_| {
            let next_pieces = std::iter::from_fn(|| {
                let going = !repeats.load(Ordering::Relaxed);
                going.then(|| self.pieces.get(next.fetch_add(1, Ordering::Relaxed))).flatten()
            });
            self.source.fold(next_pieces, self.encoding, (), |(), piece, keys| {
                let put = match values {
                    Values::Column(column) => {
                        TablePayload::put_dense(&self.source.values(column, piece), keys, shared)
                    }
                    Values::Rows => {
                        let rows = piece.first..piece.first + keys.len() as Row;
                        shared.put(keys, rows.map(u64::from))
                    }
                };
                if !put {
                    repeats.store(true, Ordering::Relaxed);
                }
                Ok(())
            })
        })?;
        // With one thread, every repeated key was noticed.
        let repeated = repeats.into_inner();
        Ok(!repeated && (self.threads == 1 || table.is_unique(self.threads)))
    }

    /// Stores all rows, with repeated keys.
    fn group(&self, table: &mut perfect_hash::Table) -> Result<Repeats, JoinError> {
        let mut all = Repeats::of(self.source.rows);
        let shared = table.shared();
        if self.threads == 1 {
            self.group_share(shared, Share::WHOLE, &mut all)?;
            return Ok(all);
        }
        let repeats = on_threads(self.threads, |thread| {
            let mut repeats: Vec<(Row, Row)> = Vec::new();
            self.group_share(shared, Share::of(thread, self.threads), &mut repeats)?;
            Ok(repeats)
        })?;
        repeats.into_iter().flatten().for_each(|(row, first)| all.emit(row, first));
        Ok(all)
    }

    /// Stores the keys whose slots are in a share.
    fn group_share(
        &self,
        table: SharedTable<'_>,
        share: Share,
        repeats: &mut impl Sink<Row>,
    ) -> Result<(), JoinError> {
        let mut grouping = table.grouping(share);
        self.source.fold(&self.pieces, self.encoding, (), |(), piece, keys| {
            grouping.add(keys, piece.first, repeats);
            Ok(())
        })
    }
}
