//! Chance for clients and rows: the same on every machine, from a seed and a stream.
//!
//! ChaCha with eight rounds, as for keys: streams of one seed are independent by construction, so
//! that every client and every table has its own and none depends on how fast another was.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The numbers of a stream of a seed. Workloads keep streams apart by a constant of their own
    /// in the upper half and a table or client in the lower.
    #[must_use]
    pub fn new(seed: u64, purpose: u32, number: u32) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(u64::from(purpose) << 32 | u64::from(number));
        Self(generator)
    }

    /// A whole number from `low` to `high`, both included, each as likely.
    ///
    /// # Panics
    /// When `low` exceeds `high`.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// True with this probability in percent.
    pub fn percent(&mut self, percent: i64) -> bool {
        self.within(1, 100) <= percent
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        use rand_chacha::rand_core::Rng;
        self.0.fill_bytes(bytes);
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        use rand::seq::SliceRandom;
        items.shuffle(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let first = |seed, purpose, number| {
            let mut random = Random::new(seed, purpose, number);
            [random.within(0, i64::MAX - 1), random.within(0, i64::MAX - 1)]
        };
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        for other in [first(2, 2, 3), first(1, 3, 3), first(1, 2, 4), first(1, 3, 2)] {
            assert_ne!(first(1, 2, 3), other);
        }
    }

    #[test]
    fn shares_and_ends_are_met() {
        let mut random = Random::new(7, 0, 0);
        let hits = (0..100_000).filter(|_| random.percent(10)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
        let ends: Vec<i64> = (0..100).map(|_| random.within(-1, 1)).collect();
        assert!([-1, 0, 1].iter().all(|end| ends.contains(end)));
    }
}
