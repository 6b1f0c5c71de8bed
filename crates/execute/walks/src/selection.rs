//! Selection vectors: which keys of a vector are in a table, as a bit for each, and their values.
//!
//! All kinds of joins can use them: semi, anti and mark joins the bits, the others the values, both
//! in the order of the keys (Boncz, Zukowski, Nes, *MonetDB/X100*, CIDR 2005).

/// Keys of a block: their bits are one word.
pub const BLOCK: usize = u64::BITS as usize;

/// Which keys of a vector were found, and their values.
#[derive(Debug, Clone, Default)]
pub struct SelectionVector {
    found: Vec<u64>,
    values: Vec<u64>,
    keys: usize,
}

impl SelectionVector {
    /// Bit `i % 64` of word `i / 64` is set where key `i` is in the table; the last word's others
    /// are clear.
    #[must_use]
    pub fn found(&self) -> &[u64] {
        &self.found
    }

    /// The value of each key that is in the table; of the others, anything.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values[..self.keys]
    }

    /// The values, which are then no longer here.
    #[must_use]
    pub fn take_values(&mut self) -> Vec<u64> {
        self.values.truncate(std::mem::take(&mut self.keys));
        self.found.clear();
        std::mem::take(&mut self.values)
    }

    /// The words of [`found`](Self::found), each with the values of its keys.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.found.iter().copied().zip(self.values().chunks(BLOCK))
    }

    /// Whether each key is in the table, and its value or anything, in order.
    #[cfg(test)]
    pub(crate) fn each(&self) -> impl Iterator<Item = (bool, u64)> {
        self.blocks().flat_map(|(found, values)| {
            values.iter().enumerate().map(move |(at, value)| (found >> at & 1 != 0, *value))
        })
    }

    /// Place and value of each key that is in the table, in order: fast if they are few.
    pub fn hits_each(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let places = self.found.iter().enumerate().flat_map(|(block, found)| {
            let mut rest = *found;
            std::iter::from_fn(move || {
                let at = (rest != 0).then(|| block * BLOCK + rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(at)
            })
        });
        places.map(|at| (at, self.values[at]))
    }

    /// Drops the keys whose bit is not set, in words like those of [`found`](Self::found).
    pub fn retain(&mut self, words: impl Iterator<Item = u64>) {
        self.found.iter_mut().zip(words).for_each(|(found, word)| *found &= word);
    }

    /// How many keys are in the table.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.found.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Keeps the found keys for which something holds, by their place and value. What that reads is
    /// announced a block ahead. Both are evaluated for the other keys too, with value 0: there is
    /// no branch on what was found.
    #[inline]
    pub fn confirm(&mut self, announce: impl Fn(u64), holds: impl Fn(usize, u64) -> bool) {
        let values = &self.values[..self.keys];
        let of = |found: u64, at: usize| {
            let bit = at % BLOCK;
            if found >> bit & 1 == 0 { 0 } else { values[at] }
        };
        let places = |block: usize| block * BLOCK..((block + 1) * BLOCK).min(values.len());
        let announce_block = |found: &[u64], block: usize| {
            if let Some(found) = found.get(block) {
                places(block).for_each(|at| announce(of(*found, at)));
            }
        };
        announce_block(&self.found, 0);
        for block in 0..self.found.len() {
            announce_block(&self.found, block + 1);
            let found = self.found[block];
            let held = places(block)
                .fold(0, |held, at| held | u64::from(holds(at, of(found, at))) << (at % BLOCK));
            self.found[block] &= held;
        }
    }

    /// Makes room for a given number of keys: nothing found yet, values anything, whole blocks of
    /// both.
    pub(crate) fn begin(&mut self, keys: usize) -> (&mut [u64], &mut [[u64; BLOCK]]) {
        let blocks = keys.div_ceil(BLOCK);
        self.keys = keys;
        self.found.clear();
        self.found.resize(blocks, 0);
        self.values.resize(blocks * BLOCK, 0);
        (&mut self.found, self.values.as_chunks_mut().0)
    }
}

/// Keys by blocks: the last is filled up with zeros, and another of zeros may be requested.
pub(crate) struct Blocks<'a> {
    whole: &'a [[u64; BLOCK]],
    last: [u64; BLOCK],
    rest: usize,
}

impl<'a> Blocks<'a> {
    #[inline(always)]
    pub(crate) fn of(keys: &'a [u64]) -> Self {
        let (whole, rest) = keys.as_chunks::<BLOCK>();
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        Self { whole, last, rest: rest.len() }
    }

    /// Blocks with keys in them.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.whole.len() + usize::from(self.rest > 0)
    }

    /// A block.
    #[inline(always)]
    pub(crate) fn block(&self, number: usize) -> &[u64; BLOCK] {
        self.whole.get(number).unwrap_or(&self.last)
    }

    /// The bits of a block's keys.
    #[inline(always)]
    pub(crate) fn bits(&self, number: usize) -> u64 {
        if number < self.whole.len() { u64::MAX } else { (1 << self.rest) - 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn found_keys_are_kept_if_confirmed_and_prefetched_before() {
        for keys in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7] {
            let mut selection = SelectionVector::default();
            let (found, values) = selection.begin(keys);
            for key in 0..keys {
                found[key / BLOCK] |= u64::from(key % 3 > 0) << (key % BLOCK);
                values[key / BLOCK][key % BLOCK] = key as u64 + 1;
            }
            let announced = RefCell::new(vec![false; keys + 1]);
            selection.confirm(
                |value| announced.borrow_mut()[value as usize] = true,
                |key, value| {
                    assert_eq!(value, if key % 3 > 0 { key as u64 + 1 } else { 0 });
                    assert!(announced.borrow()[value as usize]);
                    value % 2 == 0
                },
            );
            let kept: Vec<bool> = selection.each().take(keys).map(|(found, _)| found).collect();
            let expected: Vec<bool> = (0..keys).map(|key| key % 3 > 0 && key % 2 == 1).collect();
            assert_eq!(kept, expected);
            assert_eq!(selection.hits(), expected.iter().filter(|kept| **kept).count());
            let places = |keys: std::ops::Range<usize>| keys.filter(|key| expected[*key]);
            assert!(selection.hits_each().eq(places(0..keys).map(|key| (key, key as u64 + 1))));
            selection.retain(std::iter::repeat(u64::MAX >> 32));
            let places = places(0..keys).filter(|key| key % BLOCK < 32);
            assert!(selection.hits_each().map(|(key, _)| key).eq(places));
        }
    }
}
