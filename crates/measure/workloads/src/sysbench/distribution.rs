//! Which row is next: uniform, about the middle, or mostly a few.
//!
//! ```text
//! uniform   every row as likely
//! gaussian  the mean of 12 uniform numbers: a bell over the whole table
//! special   25 % as gaussian; 75 % uniform in the 1 % of rows in the middle (the default of both)
//! ```
//!
//! sysbench's `--oltp-dist-type` (0.4) and `--rand-type` (1.0) with their default parameters
//! (`dist-iter` 12, `dist-pct` 1, `dist-res` 75). The two versions differ in rounding at the ends.

use super::Flavour;
use crate::random::Random;

/// Numbers that a mean is taken of.
const ITERATIONS: u32 = 12;
/// Of a hundred draws, this number is special.
const SPECIAL_DRAWS: i64 = 75;

/// A distribution of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Every row as likely.
    Uniform,
    /// A bell.
    Gaussian,
    /// Mostly a few rows in the middle.
    Special,
}

impl Distribution {
    /// A row from 1 to `rows`.
    #[must_use]
    pub fn row(self, random: &mut Random, rows: u32, flavour: Flavour) -> u32 {
        let rows = i64::from(rows);
        let row = match self {
            Self::Uniform => random.within(1, rows),
            Self::Gaussian => bell(random, rows, flavour),
            Self::Special if random.percent(100 - SPECIAL_DRAWS) => bell(random, rows, flavour),
            Self::Special => {
                let few = (rows / 100).max(1);
                rows / 2 - rows / 200 + random.within(0, few - 1)
            }
        };
        row.clamp(1, rows) as u32
    }
}

/// The mean of uniform numbers. 0.4 adds whole numbers and cuts the fraction of their mean off,
/// 1.0 adds fractions.
fn bell(random: &mut Random, rows: i64, flavour: Flavour) -> i64 {
    match flavour {
        Flavour::V04 => {
            (0..ITERATIONS).map(|_| random.within(1, rows)).sum::<i64>() / i64::from(ITERATIONS)
        }
        Flavour::V10 => {
            let sum: f64 = (0..ITERATIONS).map(|_| random.unit()).sum();
            1 + (sum / f64::from(ITERATIONS) * rows as f64) as i64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share_of_middle(distribution: Distribution, flavour: Flavour) -> f64 {
        let mut random = Random::new(1, 0, 0);
        let row = |_| distribution.row(&mut random, 10_000, flavour);
        let middle = (0..50_000).map(row).filter(|row| (4_950..5_050).contains(row)).count();
        middle as f64 / 50_000.0
    }

    #[test]
    fn the_middle_hundredth_gets_its_share() {
        for flavour in [Flavour::V04, Flavour::V10] {
            let uniform = share_of_middle(Distribution::Uniform, flavour);
            assert!((uniform - 0.01).abs() < 0.003, "{uniform}");
            // The deviation of a mean of 12 is a twelfth of the width: 0.01 / (√2π / 12).
            let gaussian = share_of_middle(Distribution::Gaussian, flavour);
            assert!((gaussian - 0.048).abs() < 0.006, "{gaussian}");
            let special = share_of_middle(Distribution::Special, flavour);
            assert!((special - 0.762).abs() < 0.01, "{special}");
        }
    }

    proptest! {
        #[test]
        fn rows_are_in_the_table(
            seed: u64, rows in 1_u32..3_000,
            distribution in prop::sample::select(vec![
                Distribution::Uniform, Distribution::Gaussian, Distribution::Special,
            ]),
            old: bool,
        ) {
            let flavour = if old { Flavour::V04 } else { Flavour::V10 };
            let mut random = Random::new(seed, 0, 0);
            for _ in 0..20 {
                let row = distribution.row(&mut random, rows, flavour);
                prop_assert!((1..=rows).contains(&row));
            }
        }
    }
}
