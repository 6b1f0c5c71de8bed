//! Integers that lie close together are put each in a place of its own: no hash, no comparison, no
//! order of rows that would be better than the one they came in.

use workahead_operators::direct;
use workahead_operators::walk::Row;

use super::{Filled, Filling, Source, UNIQUE};
use crate::JoinError;
use crate::entries::Entries;
use crate::groups::Repeats;
use crate::inline::Inline;
use crate::keys::{Keys, Mapping};

/// The words of the build side, both ends included. Signed ones may go through zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) lowest: u64,
    /// Highest less lowest.
    pub(crate) width: u64,
}

impl Source<'_> {
    /// A table of all keys, which lie in a span.
    pub(crate) fn fill_dense(
        &self,
        how: &Filling<'_>,
        span: Span,
        mapping: &Mapping,
    ) -> Result<Filled, JoinError> {
        let empty = || {
            let highest = span.lowest.wrapping_add(span.width);
            direct::Table::for_range(span.lowest, highest, how.pages.clone())
        };
        if let Some(column) = self.inline_column(how) {
            let (mut table, mut keys, mut unique) = (empty()?, Keys::default(), true);
            for batch in 0..self.batches.len() {
                let column = self.batches[batch].column(column);
                unique = unique
                    && self.with_words(batch, mapping, &mut keys, |words| {
                        Inline::put_dense(column, words, &mut table)
                    })?;
            }
            if unique {
                let inline = Inline::of(self.batches[0].column(column).data_type());
                return Ok(Filled::Inline(Entries::Dense(table), inline));
            }
        }
        let (mut table, mut repeats) = (empty()?, Repeats::of(self.rows));
        let (mut base, mut keys) = (0, Keys::default());
        for batch in 0..self.sizes().count() {
            base += self.with_words(batch, mapping, &mut keys, |words| {
                table.group(words, base, &mut repeats);
                words.len() as Row
            })?;
        }
        Ok(Filled::Grouped(Entries::Dense(table), repeats))
    }

    /// The column whose values may go straight into entries, as far as is known before they do:
    /// there is one, none of it is null, and about every row has a key of its own.
    pub(super) fn inline_column(&self, how: &Filling<'_>) -> Option<usize> {
        let unique = self.rows > 0 && how.entries as f64 >= UNIQUE * self.rows as f64;
        let no_nulls = |column: &usize| {
            self.batches.iter().all(|batch| batch.column(*column).null_count() == 0)
        };
        how.inline.filter(no_nulls).filter(|_| unique)
    }
}
