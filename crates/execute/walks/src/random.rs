//! Numbers drawn from a seed, the same on every machine: inputs of tests, benches and studies.
//!
//! Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014 (SplitMix64).
//! Enough for tables of random keys; distributions are in `workloads`.

use alloc::vec::Vec;

/// A stream of numbers.
///
/// ```
/// use workahead_walks::random::Random;
/// let mut dice = Random::of(7);
/// assert!((0..100).all(|_| dice.below(6) < 6));
/// assert_eq!(Random::of(7).permutation(5).len(), 5);
/// ```
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, by the high half of a product (Lemire, 2019, without its rejection: of
    /// 2^32 draws, one number may come once more than another).
    ///
    /// # Panics
    /// If `end` is 0.
    pub const fn below(&mut self, end: u32) -> u32 {
        assert!(end > 0, "no number is below zero");
        (((self.number() >> 32) * end as u64) >> 32) as u32
    }

    /// The numbers `0..len` in random order (Fisher and Yates).
    pub fn permutation(&mut self, len: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..len).collect();
        for i in (1..len).rev() {
            numbers.swap(i as usize, self.below(i + 1) as usize);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_is_that_of_the_authors() {
        // The first numbers of the reference implementation for seed 1234567.
        let mut random = Random::of(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.number()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_permutation_holds_every_number_once_and_moves_most() {
        let mut numbers = Random::of(3).permutation(1000);
        assert!((0..).zip(&numbers).filter(|(at, number)| at == *number).count() < 10);
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..1000));
    }

    #[test]
    fn every_number_below_the_end_is_drawn_about_as_often() {
        let mut random = Random::of(9);
        let mut counts = [0; 7];
        for _ in 0..7000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
