//! A set of integers that lie close together: a bit for each number of their range.
//!
//! For a join that only asks whether a key is there. Where a slot of a [`Table`](super::Table) is
//! eight bytes, 64 keys share them: the keys of a dimension fit the first-level cache.

use std::sync::atomic::{AtomicU64, Ordering};

use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use super::atomics::atomics;
use crate::place::LINE_BYTES;
use crate::selection::{BLOCK, Blocks, SelectionVector};

const WORD_BITS: u64 = u64::BITS as u64;
const WORD_BYTES: usize = size_of::<u64>();

/// Most words of a set: as many bytes as the largest bucket table's.
const WORDS_MAX: u64 = 1 << 33;

/// A set of the 64-bit keys of a range.
///
/// ```
/// use workahead_machine::pages::Pages;
/// use workahead_walks::perfect_hash::set::KeySet;
/// let lowest = -1_i64 as u64;
/// let mut set = KeySet::for_span(lowest, 3, &Pages::Small.into())?;
/// set.shared().add(&[2, 0, lowest, 0]);
/// assert_eq!(set.len(), 3);
/// assert!(set.has(2) && !set.has(1) && !set.has(3));
/// # Ok::<(), workahead_machine::pages::AllocationError>(())
/// ```
pub struct KeySet {
    /// One more than the range needs, which stays empty: for what is out of range.
    words: PageBuffer<u64>,
    lowest: u64,
}

/// A set lent to threads that fill it.
#[derive(Clone, Copy)]
pub struct SharedKeySet<'s> {
    words: &'s [AtomicU64],
    lowest: u64,
}

impl KeySet {
    /// Bytes of a set whose highest key is so much above its lowest; `None` where there can be no
    /// such set.
    #[must_use]
    pub fn bytes_for(span: u64) -> Option<usize> {
        let words = span / WORD_BITS + 2;
        (words <= WORDS_MAX).then_some(words as usize * WORD_BYTES)
    }

    /// An empty set for keys from `lowest` to `span` above it, through zero if need be.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    ///
    /// # Panics
    /// If [`bytes_for`](Self::bytes_for) the span is `None`.
    pub fn for_span(lowest: u64, span: u64, pages: &Supply) -> Result<Self, AllocationError> {
        let bytes = Self::bytes_for(span).expect("the span was looked at before");
        Ok(Self { words: pages.zeroed(bytes / WORD_BYTES)?, lowest })
    }

    /// Lends the set to threads that fill it together.
    pub fn shared(&mut self) -> SharedKeySet<'_> {
        SharedKeySet { words: atomics(&mut self.words), lowest: self.lowest }
    }

    /// Keys in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// All the memory of the set.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// The line that a look-up of a key touches, by its number in the set.
    #[must_use]
    pub fn line(&self, key: u64) -> usize {
        place(self.lowest, self.words.len(), key).0 * WORD_BYTES / LINE_BYTES
    }

    /// Whether a key is in the set.
    #[must_use]
    #[inline(always)]
    pub fn has(&self, key: u64) -> bool {
        let (word, bit) = place(self.lowest, self.words.len(), key);
        self.words[word] >> bit & 1 != 0
    }
}

impl SharedKeySet<'_> {
    /// Adds keys; any thread any of them.
    ///
    /// # Panics
    /// When a key is out of range.
    pub fn add(&self, keys: &[u64]) {
        for key in keys {
            let (word, bit) = place(self.lowest, self.words.len(), *key);
            assert!(word + 1 < self.words.len(), "key {key} is out of the set's range");
            let word = &self.words[word];
            // Most keys repeat: a line that is not written stays with every thread.
            if word.load(Ordering::Relaxed) >> bit & 1 == 0 {
                word.fetch_or(1 << bit, Ordering::Relaxed);
            }
        }
    }
}

/// The word and the bit of a key: in the last word if it is out of range.
#[inline(always)]
fn place(lowest: u64, words: usize, key: u64) -> (usize, u64) {
    let at = key.wrapping_sub(lowest);
    ((at / WORD_BITS).min(words as u64 - 1) as usize, at % WORD_BITS)
}

/// Looks up every key: what is found has no value. The order of `selection` is that of `keys`.
#[inline(always)]
pub fn look_up(set: &KeySet, keys: &[u64], selection: &mut SelectionVector) {
    let blocks = Blocks::of(keys);
    let (found, _) = selection.begin(keys.len());
    for (number, found) in found.iter_mut().enumerate() {
        let keys: &[u64; BLOCK] = blocks.block(number);
        let bits = keys
            .iter()
            .enumerate()
            .fold(0, |bits, (row, key)| bits | u64::from(set.has(*key)) << row);
        *found = bits & blocks.bits(number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use workahead_machine::pages::Pages;

    use super::*;
    use crate::random::Random;

    #[test]
    fn a_set_has_what_was_added_by_any_thread() {
        for (lowest, span) in
            [(0, 0), (5, 63), (5, 64), (-1000_i64 as u64, 5000), (u64::MAX - 9, 300)]
        {
            let mut random = Random::of(span);
            let keys: Vec<u64> = (0..span / 3 + 1)
                .map(|_| lowest.wrapping_add(random.number() % (span + 1)))
                .collect();
            let mut set = KeySet::for_span(lowest, span, &Pages::Small.into()).unwrap();
            assert!(set.is_empty());
            let shared = set.shared();
            std::thread::scope(|scope| {
                let halves = keys.split_at(keys.len() / 2);
                scope.spawn(move || shared.add(halves.0));
                shared.add(halves.1);
            });
            let expected: BTreeSet<u64> = keys.iter().copied().collect();
            assert_eq!(set.len(), expected.len());
            let probes: Vec<u64> = (0..span + 200)
                .map(|at| lowest.wrapping_add(at).wrapping_sub(100))
                .chain([0, u64::MAX, 1 << 63])
                .collect();
            let mut selection = SelectionVector::default();
            look_up(&set, &probes, &mut selection);
            for (key, (found, _)) in probes.iter().zip(selection.each()) {
                assert_eq!(found, expected.contains(key), "{key} of {lowest} + {span}");
                assert!(set.line(*key) * LINE_BYTES < set.bytes());
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of the set's range")]
    fn a_key_out_of_range_is_refused() {
        KeySet::for_span(10, 500, &Pages::Small.into()).unwrap().shared().add(&[600]);
    }
}
