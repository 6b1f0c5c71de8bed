//! The most recently used keys, in constant time: a fully associative cache.
//!
//! ```text
//!   keys by hash ──► place        newest ⇄ … ⇄ oldest, linked by place
//! ```
//!
//! Hardware compares all entries at once. A model that compared one by one would spend its time
//! here.

use crate::line_history::fibonacci_hash;

/// End of a chain.
const NONE: u16 = u16::MAX;

/// A set of limited size that evicts the least recently used key.
#[derive(Debug, Clone)]
pub(crate) struct LruSet {
    entries: Vec<Entry>,
    used: usize,
    newest: u16,
    oldest: u16,
    /// First entry of each bucket.
    heads: Vec<u16>,
    shift: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    newer: u16,
    older: u16,
    /// Next entry of the same bucket.
    next: u16,
}

impl LruSet {
    /// An empty set for up to `entries` keys.
    ///
    /// # Panics
    /// Unless `1 <= entries <= 4096`.
    #[must_use]
    pub(crate) fn new(entries: usize) -> Self {
        assert!((1..=4096).contains(&entries), "{entries} entries");
        let buckets = (entries * 4).next_power_of_two();
        let empty = Entry { key: 0, newer: NONE, older: NONE, next: NONE };
        Self {
            entries: vec![empty; entries],
            used: 0,
            newest: NONE,
            oldest: NONE,
            heads: vec![NONE; buckets],
            shift: 64 - buckets.trailing_zeros(),
        }
    }

    /// Whether a key is in the set. Inserts it, or makes it the newest.
    #[inline(always)]
    pub(crate) fn touch(&mut self, key: u64) -> bool {
        if self.newest != NONE && self.entries[self.newest as usize].key == key {
            return true;
        }
        self.touch_older(key)
    }

    fn touch_older(&mut self, key: u64) -> bool {
        let bucket = self.bucket(key);
        let mut at = self.heads[bucket];
        while at != NONE && self.entries[at as usize].key != key {
            at = self.entries[at as usize].next;
        }
        if at != NONE {
            self.unlink(at);
            self.link(at);
            return true;
        }
        let at = match self.used < self.entries.len() {
            true => {
                self.used += 1;
                self.used as u16 - 1
            }
            false => self.give_up_oldest(),
        };
        self.entries[at as usize].key = key;
        self.entries[at as usize].next = self.heads[bucket];
        self.heads[bucket] = at;
        self.link(at);
        false
    }

    /// Whether a key is in the set, without marking it as used.
    #[must_use]
    pub(crate) fn holds(&self, key: u64) -> bool {
        let mut at = self.heads[self.bucket(key)];
        while at != NONE && self.entries[at as usize].key != key {
            at = self.entries[at as usize].next;
        }
        at != NONE
    }

    /// Removes all keys.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        (self.newest, self.oldest) = (NONE, NONE);
        self.heads.fill(NONE);
    }

    #[inline(always)]
    fn bucket(&self, key: u64) -> usize {
        (fibonacci_hash(key) >> self.shift) as usize
    }

    fn give_up_oldest(&mut self) -> u16 {
        let at = self.oldest;
        self.unlink(at);
        let Entry { key, next, .. } = self.entries[at as usize];
        let bucket = self.bucket(key);
        let mut before = self.heads[bucket];
        if before == at {
            self.heads[bucket] = next;
            return at;
        }
        while self.entries[before as usize].next != at {
            before = self.entries[before as usize].next;
        }
        self.entries[before as usize].next = next;
        at
    }

    fn unlink(&mut self, at: u16) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link(&mut self, at: u16) {
        let older = std::mem::replace(&mut self.newest, at);
        match older {
            NONE => self.oldest = at,
            older => self.entries[older as usize].newer = at,
        }
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, older);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_list_with_the_newest_in_front(
            keys in proptest::collection::vec(0_u64..40, 0..400), entries in 1_usize..20,
        ) {
            let mut lru_set = LruSet::new(entries);
            let mut list: Vec<u64> = Vec::new();
            for key in keys {
                let at = list.iter().position(|held| *held == key);
                prop_assert_eq!(lru_set.holds(key), at.is_some());
                prop_assert_eq!(lru_set.touch(key), at.is_some());
                at.map(|at| list.remove(at));
                list.insert(0, key);
                list.truncate(entries);
            }
        }
    }

    #[test]
    fn forgets_all() {
        let mut lru_set = LruSet::new(3);
        assert!(!lru_set.touch(7) && lru_set.touch(7));
        lru_set.clear();
        assert!(!lru_set.holds(7) && !lru_set.touch(7) && lru_set.touch(7));
    }
}
