//! Keys drawn at random: numbers, and texts of 12 bytes.

use std::hash::Hash;

/// Numbers from a seed (SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }
}

pub type Text = [u8; 12];

/// A key of the bench.
pub trait Key: Copy + Hash + Eq + Ord + 'static + MaybeBoost {
    const NAME: &'static str;
    /// The key of a number; no two numbers below 2^63 have the same.
    fn of(number: u64) -> Self;
    /// The number, for maps that take only those.
    fn as_number(&self) -> Option<u64>;
}

#[cfg(boost)]
pub use crate::boost::Boost as MaybeBoost;
#[cfg(not(boost))]
pub trait MaybeBoost {}
#[cfg(not(boost))]
impl<K> MaybeBoost for K {}

impl Key for u64 {
    const NAME: &'static str = "u64";
    fn of(number: u64) -> Self {
        number
    }
    fn as_number(&self) -> Option<u64> {
        Some(*self)
    }
}

impl Key for Text {
    const NAME: &'static str = "12 bytes";
    fn of(number: u64) -> Self {
        let mut text = *b"key:00000000";
        text[4..].copy_from_slice(&number.to_be_bytes());
        text
    }
    fn as_number(&self) -> Option<u64> {
        None
    }
}

/// Keys that are there (even numbers), and keys that are not (odd ones), in random order.
pub struct Keys<K> {
    pub there: Vec<K>,
    hits: Vec<K>,
    misses: Vec<K>,
}

impl<K: Key> Keys<K> {
    /// `count` keys, and probes for all rounds: a round that looked the same keys up as the one
    /// before would find their lines in the last-level cache.
    pub fn drawn(count: usize, (probes, rounds): (usize, usize)) -> Self {
        let mut random = Random(count as u64);
        let there: Vec<K> = (0..count).map(|_| K::of(random.number() & !1)).collect();
        let hits = (0..probes * (rounds + 1)).map(|_| there[random.below(count)]).collect();
        let misses = (0..probes * (rounds + 1)).map(|_| K::of(random.number() | 1)).collect();
        Self { there, hits, misses }
    }

    pub fn rounds(&self, of: Probes, probes: usize) -> Vec<&[K]> {
        let all = match of {
            Probes::Hits => &self.hits,
            Probes::Misses => &self.misses,
        };
        all.chunks(probes).collect()
    }
}

/// Keys that are there, or keys that are not.
#[derive(Clone, Copy)]
pub enum Probes {
    Hits,
    Misses,
}

impl Probes {
    pub fn name(self) -> &'static str {
        match self {
            Probes::Hits => "hits",
            Probes::Misses => "misses",
        }
    }
}
