//! The hash function that indexes use unless they are given another.
//!
//! Words are folded in one after the other by a wide product, both halves of which are kept (the
//! folded multiply of wyhash, foldhash and others). Integers and short byte strings take one
//! product a word. An index has a seed of its own with the feature `std`; it makes collisions hard
//! to prepare, and does not withstand those who can watch it for long. Who fears them takes
//! another `BuildHasher`.

use core::hash::{BuildHasher, Hasher};

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const LAST_MULTIPLIER: u64 = 0xD6E8_FEB8_6659_FD93;

#[inline(always)]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

/// Seeds of the hash function of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldedState {
    seed: u64,
}

impl FoldedState {
    /// The function of a seed: the same on every machine of the same pointer width and byte order.
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self { seed }
    }
}

impl Default for FoldedState {
    /// A seed from the system with the feature `std`; without it always the same.
    fn default() -> Self {
        #[cfg(feature = "std")]
        let seed = std::hash::RandomState::new().hash_one(0);
        #[cfg(not(feature = "std"))]
        let seed = 0x2545_F491_4F6C_DD1D;
        Self::with_seed(seed)
    }
}

impl BuildHasher for FoldedState {
    type Hasher = FoldedHasher;

    #[inline(always)]
    fn build_hasher(&self) -> FoldedHasher {
        FoldedHasher { state: self.seed }
    }
}

/// The hash of one key while it is read.
#[derive(Debug, Clone)]
pub struct FoldedHasher {
    state: u64,
}

impl FoldedHasher {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.state = fold(self.state ^ word, MULTIPLIER);
    }
}

/// The first eight bytes.
#[inline(always)]
fn eight(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes were sliced"))
}

/// The first four bytes.
#[inline(always)]
fn four(bytes: &[u8]) -> u64 {
    u64::from(u32::from_ne_bytes(bytes[..4].try_into().expect("four bytes were sliced")))
}

impl Hasher for FoldedHasher {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        let length = bytes.len();
        self.state = self.state.wrapping_add(length as u64);
        // The last word reads bytes once more rather than fewer than eight.
        if length > 8 {
            let mut rest = bytes;
            while rest.len() > 8 {
                self.word(eight(rest));
                rest = &rest[8..];
            }
            self.word(eight(&bytes[length - 8..]));
        } else if length >= 4 {
            self.word(four(bytes) | four(&bytes[length - 4..]) << 32);
        } else if length > 0 {
            let middle = u64::from(bytes[length / 2]) << 8;
            self.word(u64::from(bytes[0]) | middle | u64::from(bytes[length - 1]) << 16);
        }
    }

    #[inline(always)]
    fn write_u8(&mut self, number: u8) {
        self.word(u64::from(number));
    }

    #[inline(always)]
    fn write_u16(&mut self, number: u16) {
        self.word(u64::from(number));
    }

    #[inline(always)]
    fn write_u32(&mut self, number: u32) {
        self.word(u64::from(number));
    }

    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        self.word(number);
    }

    #[inline(always)]
    fn write_u128(&mut self, number: u128) {
        self.word(number as u64);
        self.word((number >> 64) as u64);
    }

    #[inline(always)]
    fn write_usize(&mut self, number: usize) {
        self.word(number as u64);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        fold(self.state, LAST_MULTIPLIER)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "thousands of texts, and nothing unsafe")]
    fn texts_of_every_length_have_hashes_of_their_own() {
        let state = FoldedState::with_seed(1);
        let text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz".as_bytes();
        let parts = (0..=text.len()).flat_map(|end| (0..=end).map(move |start| &text[start..end]));
        let parts: HashSet<&[u8]> = parts.collect();
        let hashes: HashSet<u64> = parts.iter().map(|part| state.hash_one(part)).collect();
        assert_eq!(hashes.len(), parts.len());
    }

    #[test]
    fn every_bit_of_a_number_reaches_about_half_of_the_hash() {
        let state = FoldedState::with_seed(2);
        for number in 0..64_u64 {
            for bit in 0..64 {
                let changed = state.hash_one(number) ^ state.hash_one(number ^ 1 << bit);
                assert!((8..=56).contains(&changed.count_ones()), "{number} bit {bit}");
            }
        }
    }
}
