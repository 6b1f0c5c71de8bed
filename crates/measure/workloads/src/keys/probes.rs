//! Probe keys for a given build side: how many match, and which rows are popular.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Key, Stream, UniqueKeys, Zipf, generator, shuffled};
use crate::WorkloadError;

/// Which build row a matching probe finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pick {
    /// The build rows in their own order, again and again: clustered.
    InOrder,
    /// Every build row equally often, in no order: unclustered.
    Uniform,
    /// Some build rows much more often than others, by Zipf's law with this exponent; the popular
    /// rows are scattered over the build side.
    Zipf(f64),
}

/// Probe keys to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probes {
    /// How many.
    pub rows: usize,
    /// The share that matches, in `0..=1`: exactly this many, rounded, in random positions.
    pub hit_rate: f64,
    /// Which build rows are found.
    pub pick: Pick,
    /// Determines everything.
    pub seed: u64,
}

impl Probes {
    /// Random the keys. Misses are all different and no build side of the same seed has them.
    ///
    /// # Errors
    /// When the hit rate is not a share, the exponent is impossible, or matches are wanted from an
    /// empty build side.
    pub fn keys<K: Key>(&self, build: &UniqueKeys<K>) -> Result<Vec<K>, WorkloadError> {
        let hits = self.hits()?;
        if hits > 0 && build.is_empty() {
            return Err(WorkloadError::Nothing("build row"));
        }
        let mut picker = Picker::new(self.pick, build.len(), self.seed)?;
        let mut coins = generator(self.seed, Stream::Hits);
        let (mut hits_left, mut misses) = (hits as u64, 0);
        let keys = (0..self.rows).map(|row| {
            // Knuth's selection sampling (TAOCP 2, 3.4.2, algorithm S): exactly `hits` of `rows`.
            let rows_left = (self.rows - row) as u64;
            if hits_left > 0 && coins.random_range(0..rows_left) < hits_left {
                hits_left -= 1;
                build.present(picker.next())
            } else {
                misses += 1;
                build.absent((misses - 1) % UniqueKeys::<K>::MOST)
            }
        });
        Ok(keys.collect())
    }

    /// How many probes match.
    ///
    /// # Errors
    /// When the hit rate is not a share.
    pub fn hits(&self) -> Result<usize, WorkloadError> {
        if !(0.0..=1.0).contains(&self.hit_rate) {
            return Err(WorkloadError::HitRate(self.hit_rate));
        }
        Ok((self.rows as f64 * self.hit_rate).round() as usize)
    }
}

/// Random build positions.
enum Picker {
    InOrder { next: u64, rows: u64 },
    Uniform { random: ChaCha8Rng, rows: u64 },
    Zipf { random: ChaCha8Rng, law: Zipf, scatter: Vec<u32> },
}

impl Picker {
    fn new(pick: Pick, rows: u64, seed: u64) -> Result<Self, WorkloadError> {
        let random = generator(seed, Stream::Picks);
        Ok(match pick {
            Pick::InOrder => Self::InOrder { next: 0, rows },
            Pick::Uniform => Self::Uniform { random, rows },
            Pick::Zipf(exponent) => {
                // Beyond u32 the tail is too thin to be distinguished from this.
                let ranks = u32::try_from(rows).unwrap_or(u32::MAX);
                let law = Zipf::new(ranks.max(1), exponent)?;
                let scatter = shuffled(ranks, &mut generator(seed, Stream::Scatter));
                Self::Zipf { random, law, scatter }
            }
        })
    }

    /// The next position. Only called when there is a build row.
    fn next(&mut self) -> u64 {
        match self {
            Self::InOrder { next, rows } => {
                let position = *next;
                *next = (position + 1) % *rows;
                position
            }
            Self::Uniform { random, rows } => random.random_range(0..*rows),
            Self::Zipf { random, law, scatter } => u64::from(scatter[law.draw(random) as usize]),
        }
    }
}
