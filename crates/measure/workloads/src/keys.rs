//! Keys for joins and lookups, from a seed: the same on every machine.
//!
//! Different random keys come from a *bijection* of their position, not from drawing and throwing
//! duplicates away: any length, no memory, and keys that are certainly absent cost the same.
//!
//! ```text
//! position 0..len          ──► mixed by seed ──► present key     top bit of the position 0
//! position 0..len, top bit ──► mixed by seed ──► absent key      … 1: never a present key
//! ```
//!
//! ```
//! use workahead_workloads::keys::{Pick, Probes, UniqueKeys};
//! let build = UniqueKeys::<u64>::new(1000, 7)?;
//! let probes = Probes { rows: 5000, hit_rate: 0.1, pick: Pick::Zipf(1.0), seed: 8 };
//! let keys = probes.keys(&build)?;
//! let present: std::collections::HashSet<u64> = build.iter().collect();
//! assert_eq!(keys.iter().filter(|&key| present.contains(key)).count(), 500);
//! # Ok::<(), workahead_workloads::WorkloadError>(())
//! ```

mod probes;
mod zipf;

use std::marker::PhantomData;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::WorkloadError;
pub use probes::{Pick, Probes};
pub use zipf::Zipf;

/// The use of a generator: each has its own stream of the seed, so that adding one does not
/// change the others.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
enum Stream {
    Unique = 1,
    Uniform = 2,
    Permutation = 3,
    Hits = 4,
    Picks = 5,
    Scatter = 6,
}

fn generator(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream as u64);
    generator
}

/// An integer that is a key: `u32` or `u64`.
pub trait Key: Copy + Ord + std::hash::Hash + std::fmt::Debug + sealed::Bits {}
impl Key for u32 {}
impl Key for u64 {}

mod sealed {
    /// The bits of a key.
    pub trait Bits: Sized {
        /// How many.
        const BITS: u32;
        /// The low bits of a number.
        fn low(bits: u64) -> Self;
        /// A bijection of the width's numbers that looks random.
        fn mixed(bits: u64) -> Self;
    }

    impl Bits for u32 {
        const BITS: u32 = 32;
        fn low(bits: u64) -> Self {
            bits as u32
        }
        /// Multiply and xor-shift, each invertible modulo 2³² (Wellons' `lowbias32` constants).
        fn mixed(bits: u64) -> Self {
            let mut x = bits as u32;
            x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
            x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
            x ^ (x >> 16)
        }
    }

    impl Bits for u64 {
        const BITS: u32 = 64;
        fn low(bits: u64) -> Self {
            bits
        }
        /// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): invertible modulo 2⁶⁴.
        fn mixed(bits: u64) -> Self {
            let mut x = bits;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        }
    }
}

/// Different random keys, each computed from its position: nothing is stored.
#[derive(Debug, Clone, Copy)]
pub struct UniqueKeys<K> {
    len: u64,
    whiten: u64,
    _key: PhantomData<K>,
}

impl<K: Key> UniqueKeys<K> {
    /// Most different keys: half of the width's numbers, the other half being certain misses.
    pub const MOST: u64 = 1 << (K::BITS - 1);

    /// `len` keys that `seed` determines. A longer run begins with the keys of a shorter one.
    ///
    /// # Errors
    /// When `len` exceeds [`MOST`](Self::MOST).
    pub fn new(len: u64, seed: u64) -> Result<Self, WorkloadError> {
        if len > Self::MOST {
            let most = Self::MOST;
            return Err(WorkloadError::TooManyKeys { keys: len, bits: K::BITS, most });
        }
        // Every bit but the top one, which tells present from absent, may change.
        let whiten = generator(seed, Stream::Unique).random::<u64>() & (Self::MOST - 1);
        Ok(Self { len, whiten, _key: PhantomData })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The key at a position below [`MOST`](Self::MOST).
    #[must_use]
    pub fn present(&self, position: u64) -> K {
        debug_assert!(position < Self::MOST);
        K::mixed(position ^ self.whiten)
    }

    /// A key that is not among the present ones, for any position below [`MOST`](Self::MOST);
    /// different positions give different keys.
    #[must_use]
    pub fn absent(&self, position: u64) -> K {
        debug_assert!(position < Self::MOST);
        K::mixed(position ^ self.whiten ^ Self::MOST)
    }

    /// All keys in order of position.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = K> + use<'_, K> {
        (0..self.len as usize).map(|position| self.present(position as u64))
    }
}

/// Keys drawn uniformly from `1..=largest`, with repeats.
///
/// # Errors
/// When `largest` is zero or does not fit the key.
pub fn uniform<K: Key>(rows: usize, largest: u64, seed: u64) -> Result<Vec<K>, WorkloadError> {
    if largest == 0 {
        return Err(WorkloadError::Nothing("key"));
    }
    if K::BITS < u64::BITS && largest >> K::BITS != 0 {
        let most = (1 << K::BITS) - 1;
        return Err(WorkloadError::TooManyKeys { keys: largest, bits: K::BITS, most });
    }
    let mut generator = generator(seed, Stream::Uniform);
    Ok((0..rows).map(|_| K::low(generator.random_range(1..=largest))).collect())
}

/// The numbers `0..len` in random order: unclustered row ids.
#[must_use]
pub fn permutation(len: u32, seed: u64) -> Vec<u32> {
    shuffled(len, &mut generator(seed, Stream::Permutation))
}

fn shuffled(len: u32, generator: &mut ChaCha8Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len).collect();
    order.shuffle(generator);
    order
}

#[cfg(test)]
mod tests;
