//! Looks up a batch's keys, a vector at a time.

use workahead_walks::answers::{Answers, BLOCK};
use workahead_walks::walk::Row;

use crate::hash_table::HashTable;

/// Length of a vector: long enough to amortise starting its loop, short enough for L1.
pub(crate) const VECTOR: usize = 1024;

/// The lookups of a batch, resumable.
#[derive(Default)]
pub(crate) struct Lookup {
    answers: Answers,
    /// The next key, and the number of keys.
    next: usize,
    words: usize,
}

/// A key that was found: its position among the batch's keys, and its entry's value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) word: Row,
    pub(crate) value: u64,
}

impl Lookup {
    /// Starts the lookups of a batch with this many keys.
    pub(crate) fn start(&mut self, words: usize) {
        (self.next, self.words) = (0, words);
    }

    /// Looks up the next keys, at most `most`: the position of the first one, and the selection
    /// vector.
    pub(crate) fn vector(
        &mut self,
        table: &HashTable,
        words: &[u64],
        most: usize,
    ) -> (Row, &mut Answers) {
        let first = self.next;
        let count = most.min(self.words - first);
        self.next += count;
        table.look_up(&words[first..][..count], &mut self.answers);
        (first as Row, &mut self.answers)
    }

    /// Looks up the next vector of keys, and appends the hits.
    pub(crate) fn hits(&mut self, table: &HashTable, words: &[u64], hits: &mut Vec<Hit>) {
        let (first, answers) = self.vector(table, words, VECTOR);
        for (block, mut found) in answers.found().iter().copied().enumerate() {
            while found != 0 {
                let at = block * BLOCK + found.trailing_zeros() as usize;
                hits.push(Hit { word: first + at as Row, value: answers.values()[at] });
                found &= found - 1;
            }
        }
    }

    /// Whether all keys were looked up.
    pub(crate) fn is_drained(&self) -> bool {
        self.next == self.words
    }
}
