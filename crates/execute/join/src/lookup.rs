//! Looks up a batch's keys, a vector at a time.

use workahead_walks::selection::SelectionVector;
use workahead_walks::walk::Row;

use crate::hash_table::HashTable;
use crate::keys::NormalizedKeys;

/// Length of a vector: long enough to amortise starting its loop, short enough for L1.
pub(crate) const VECTOR: usize = 1024;

/// The lookups of a batch, resumable.
#[derive(Default)]
pub(crate) struct Lookup {
    selection: SelectionVector,
    /// The next key, and the number of keys.
    next: usize,
    keys: usize,
}

/// A key that was found: its position among the batch's keys, and its entry's value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    pub(crate) key: Row,
    pub(crate) value: u64,
}

impl Lookup {
    /// Starts the lookups of a batch with this many keys.
    pub(crate) fn start(&mut self, keys: usize) {
        (self.next, self.keys) = (0, keys);
    }

    /// Looks up the next keys, at most `most`: the position of the first one, and the selection
    /// vector.
    pub(crate) fn vector(
        &mut self,
        table: &HashTable,
        keys: &NormalizedKeys,
        most: usize,
    ) -> (Row, &mut SelectionVector) {
        let first = self.next;
        let count = most.min(self.keys - first);
        self.next += count;
        table.look_up(&keys.values()[first..][..count], &mut self.selection);
        if let Some(mask) = keys.mask(first, count) {
            self.selection.retain(mask);
        }
        (first as Row, &mut self.selection)
    }

    /// Looks up the next vector of keys, and appends the hits.
    pub(crate) fn hits(&mut self, table: &HashTable, keys: &NormalizedKeys, hits: &mut Vec<Hit>) {
        let (first, selection) = self.vector(table, keys, VECTOR);
        hits.extend(selection.hits_each().map(|(at, value)| Hit { key: first + at as Row, value }));
    }

    /// The number of keys that were looked up.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    /// Whether all keys were looked up.
    pub(crate) fn is_drained(&self) -> bool {
        self.next == self.keys
    }
}
