//! A Bloom filter of one word a key: what is not in a table is not looked for.
//!
//! ```text
//! hash ─┬─ high bits ─► word     ┌─ 64 bits ─┬─ … ─┐
//!       └─ ×, high bits: 4 × 6 ─►│ 1..1.1..1 │     │    all four set? perhaps ─► survivors
//!                                └───────────┴─────┘    one clear?   certainly not
//! ```
//!
//! A table of eight-byte keys and values is some 20 to 30 times as large as eight bits a key. Where
//! few probes hit, most of them end in this smaller thing, in a nearer cache, and only
//! survivors are looked up in the table. Where many hit, the second look-up is a loss: the caller
//! watches the rate of survivors.
//!
//! All bits of a key lie in one word (*register-blocked*: Lang, Neumann, Kemper, Boncz,
//! *Performance-Optimal Filtering: Bloom Overtakes Cuckoo at High Throughput*, VLDB 2019; blocking:
//! Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, WEA 2007), so a test
//! is one load and one comparison. It costs false positives: about 4 % at 8 bits a key, 1 % at 16.

#[cfg(test)]
mod tests;

use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use crate::hash::hash_u64;
use crate::memory::{Memory, Prefetching, ToL1};
use crate::place::{Intent, Place};
use crate::selection::{BLOCK, Blocks};
use crate::walk::Row;

/// Room that a filter takes for each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits {
    /// A byte.
    Eight,
    /// Two: fewer false positives, where the filter stays in cache all the same.
    Sixteen,
}

impl Bits {
    fn number(self) -> usize {
        match self {
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }
}

/// A set that says "certainly not" or "perhaps".
///
/// ```
/// use workahead_machine::pages::Pages;
/// use workahead_walks::bloom::{Bits, Filter};
/// let mut filter = Filter::for_keys(100, Bits::Sixteen, Pages::Small)?;
/// filter.insert(0..100);
/// assert!((0..100).all(|key| filter.may_hold(key)), "never a false negative");
/// assert!((100..200).filter(|key| filter.may_hold(*key)).count() < 10);
/// # Ok::<(), workahead_machine::pages::AllocationError>(())
/// ```
pub struct Filter {
    words: PageBuffer<u64>,
}

impl Filter {
    /// An empty filter with room for `keys` keys.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    pub fn for_keys(
        keys: usize,
        bits: Bits,
        pages: impl Into<Supply>,
    ) -> Result<Self, AllocationError> {
        let words = Self::bytes_for(keys, bits) / size_of::<u64>();
        Ok(Self { words: pages.into().zeroed(words)? })
    }

    /// Bytes of a filter for a given number of keys.
    #[must_use]
    pub fn bytes_for(keys: usize, bits: Bits) -> usize {
        let words = keys.div_ceil(BLOCK / bits.number()).max(1);
        words * size_of::<u64>()
    }

    /// All the memory of the filter.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.bytes()
    }

    /// Adds keys.
    pub fn insert(&mut self, keys: impl IntoIterator<Item = u64>) {
        let mut memory = Prefetching::<ToL1>::default();
        // A ring of those whose word was announced.
        let (mut ring, mut count) = ([(0, 0); BLOCK], 0);
        for key in keys {
            let next = self.bits_of(key);
            memory.fetch(Place::of(&self.words[next.0]), Intent::Write);
            // Nothing is added to word zero before the ring is full.
            let (word, bits) = std::mem::replace(&mut ring[count % BLOCK], next);
            self.words[word] |= bits;
            count += 1;
        }
        ring.iter().for_each(|(word, bits)| self.words[*word] |= bits);
    }

    /// Whether a key may be there. False only if it is not.
    #[must_use]
    pub fn may_hold(&self, key: u64) -> bool {
        let (word, bits) = self.bits_of(key);
        self.words[word] & bits == bits
    }

    /// A key's word and its bits in it.
    #[inline(always)]
    fn bits_of(&self, key: u64) -> (usize, u64) {
        let hash = hash_u64(key);
        let word = (u128::from(hash) * self.words.len() as u128) >> 64;
        // The word took the high bits: these are of all of them.
        let mixed = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 40;
        let bit = |number: u32| 1_u64 << (mixed >> (6 * number) & 63);
        (word as usize, bit(0) | bit(1) | bit(2) | bit(3))
    }
}

/// Keys that may be in a table, and their rows.
#[derive(Debug, Clone, Default)]
pub struct Survivors {
    rows: Vec<Row>,
    keys: Vec<u64>,
    len: usize,
}

impl Survivors {
    /// Their places among the keys tested, ascending.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows[..self.len]
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys[..self.len]
    }
}

/// Keeps the keys that may be there. Words of the next 64 keys are announced while these 64 are
/// tested; no branch depends on what is read.
#[inline(always)]
pub fn filter_keys<M: Memory>(
    filter: &Filter,
    keys: &[u64],
    memory: &mut M,
    survivors: &mut Survivors,
) {
    let blocks = Blocks::of(keys);
    let room = blocks.count() * BLOCK;
    survivors.rows.resize(room.max(survivors.rows.len()), 0);
    survivors.keys.resize(room.max(survivors.keys.len()), 0);
    let mut announced = |key: u64| {
        let (word, bits) = filter.bits_of(key);
        memory.fetch(Place::of(&filter.words[word]), Intent::Read);
        (word, bits)
    };
    let mut ahead = blocks.block(0).map(&mut announced);
    let mut kept = 0;
    for number in 0..blocks.count() {
        let (keys, next) = (blocks.block(number), blocks.block(number + 1));
        let mut perhaps = 0;
        for row in 0..BLOCK {
            let (word, bits) = ahead[row];
            perhaps |= u64::from(filter.words[word] & bits == bits) << row;
            ahead[row] = announced(next[row]);
        }
        perhaps &= blocks.bits(number);
        let first = number * BLOCK;
        // At most as many are kept as were tested: there is room for a whole block.
        let rows: &mut [Row] = &mut survivors.rows[kept..first + BLOCK];
        let to: &mut [u64] = &mut survivors.keys[kept..first + BLOCK];
        for ((row, to_row), to_key) in { BitsOf(perhaps) }.zip(rows).zip(to) {
            *to_row = first as Row + row;
            *to_key = keys[row as usize % BLOCK];
        }
        kept += perhaps.count_ones() as usize;
    }
    survivors.len = kept;
}

/// The places of a word's bits, ascending.
struct BitsOf(u64);

impl Iterator for BitsOf {
    type Item = u32;
    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let at = self.0.trailing_zeros();
        let any = self.0 != 0;
        self.0 &= self.0.wrapping_sub(1);
        any.then_some(at)
    }
}
