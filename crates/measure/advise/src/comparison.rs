//! Which level suffices: a test after some of the rounds, with one error rate for all of them.
//!
//! A level *suffices* if its throughput is at least a share of every other level's: 0.95 of it
//! where 5 % are of no matter. The answer is the smallest level that does. For two levels i and j
//! the logarithms of the paired ratios have a t interval around their mean, and
//!
//! ```text
//! suffices   for every j:  lower end of i / j  ≥  the share
//! falls short   for some j:  upper end of i / j  <  the share
//! ```
//!
//! There are as many looks as [`LOOKS`], and n (n - 1) / 2 pairs of n levels; each interval has
//! that part of [`ERROR_RATE`] (Bonferroni's inequality), so that all of them hold together, at all
//! looks, with the rest of the probability. What is decided early is therefore as sure as what is
//! decided at the end. The price is wider intervals: four rounds decide only what is plain.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use workahead_study::statistics::{Interval, sd};

/// Rounds after which it is looked.
pub const LOOKS: [u32; 6] = [4, 6, 9, 13, 20, 30];

/// How often an answer may be wrong.
pub(crate) const ERROR_RATE: f64 = 0.05;

/// A level's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does as much as any other, but for the share.
    Suffices,
    /// Another does more, by more than the share.
    FallsShort,
    /// The intervals include both.
    Undecided,
}

/// Levels compared, each with a throughput a round.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// Logarithms of throughputs: a level, a round.
    logs: Vec<Vec<f64>>,
    /// What part of another's throughput suffices.
    share: f64,
}

impl Comparison {
    /// Levels from small to large, each with the throughputs of the same rounds. Rounds that a
    /// level lacks are left out. `within` is the difference of no matter, such as 0.05.
    pub(crate) fn new(levels: &[Vec<f64>], within: f64) -> Comparison {
        let rounds = levels.iter().map(Vec::len).min().unwrap_or(0);
        let logs = levels.iter().map(|level| level[..rounds].iter().map(|v| v.ln()).collect());
        Comparison { logs: logs.collect(), share: 1.0 - within }
    }

    /// Complete rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.logs.first().map_or(0, Vec::len)
    }

    /// Whether its rounds are those of a look.
    pub(crate) fn is_look(&self) -> bool {
        LOOKS.iter().any(|look| *look as usize == self.rounds())
    }

    /// The throughput of level `this` over that of `other`, and its interval.
    pub(crate) fn ratio(&self, this: usize, other: usize) -> Option<(f64, Interval)> {
        let logs = self.differences(this, other);
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let half = self.half_width(sd(&logs)?)?;
        Some((mean.exp(), Interval { low: (mean - half).exp(), high: (mean + half).exp() }))
    }

    fn differences(&self, this: usize, other: usize) -> Vec<f64> {
        self.logs[this].iter().zip(&self.logs[other]).map(|(this, other)| this - other).collect()
    }

    fn half_width(&self, sd: f64) -> Option<f64> {
        let rounds = self.rounds() as f64;
        Some(self.t(rounds - 1.0)? * sd / rounds.sqrt())
    }

    /// The t value of an interval among all pairs at all looks.
    fn t(&self, freedom: f64) -> Option<f64> {
        let levels = self.logs.len() as f64;
        let intervals = LOOKS.len() as f64 * levels * (levels - 1.0) / 2.0;
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        Some(student.inverse_cdf(1.0 - ERROR_RATE / intervals / 2.0))
    }

    /// Where a level is.
    pub(crate) fn verdict(&self, level: usize) -> Verdict {
        let others = (0..self.logs.len()).filter(|other| *other != level);
        let ratios: Option<Vec<Interval>> =
            others.map(|other| Some(self.ratio(level, other)?.1)).collect();
        match ratios {
            Some(ratios) if ratios.iter().all(|ratio| ratio.low >= self.share) => Verdict::Suffices,
            Some(ratios) if ratios.iter().any(|ratio| ratio.high < self.share) => {
                Verdict::FallsShort
            }
            _ => Verdict::Undecided,
        }
    }

    /// The smallest level that suffices, once that is decided.
    pub(crate) fn decided(&self) -> Option<usize> {
        let (least, most) = self.range();
        (least == most).then_some(least)
    }

    /// The levels that the answer lies between: from the first that may suffice to the first that
    /// does, or to the last one.
    pub(crate) fn range(&self) -> (usize, usize) {
        let verdicts: Vec<Verdict> =
            (0..self.logs.len()).map(|level| self.verdict(level)).collect();
        let last = verdicts.len().saturating_sub(1);
        let first = |wanted: &dyn Fn(Verdict) -> bool| verdicts.iter().position(|v| wanted(*v));
        let least = first(&|verdict| verdict != Verdict::FallsShort).unwrap_or(last);
        (least, first(&|verdict| verdict == Verdict::Suffices).unwrap_or(last).max(least))
    }

    /// The level with the most throughput.
    pub(crate) fn best(&self) -> usize {
        let sum = |level: &usize| self.logs[*level].iter().sum::<f64>();
        let levels = 0..self.logs.len();
        levels.max_by(|one, other| sum(one).total_cmp(&sum(other))).unwrap_or(0)
    }

    /// About how many rounds it takes to see what is not decided: until each such interval is as
    /// narrow as its mean is far from the share, or as a quarter of what does not matter. `None` if
    /// nothing is undecided.
    pub(crate) fn rounds_needed(&self) -> Option<f64> {
        let (least, most) = self.range();
        if least == most {
            return None;
        }
        let best = self.best();
        let rounds = (least..=most).filter(|level| *level != best).filter_map(|level| {
            let logs = self.differences(level, best);
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            let narrow = (mean - self.share.ln()).abs().max(-self.share.ln() / 4.0);
            let half = self.half_width(sd(&logs)?)?;
            Some(self.rounds() as f64 * (half / narrow).powi(2))
        });
        rounds.max_by(f64::total_cmp).map(f64::ceil)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Throughputs around true ones: a drift that all levels of a round share, and each its own
    /// noise; now and then a round in which one level was disturbed.
    fn simulated(truth: &[f64], noise: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut draws = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = move || {
            let sum: f64 = (0..12).map(|_| draws.random_range(0.0..1.0)).sum();
            sum - 6.0
        };
        let mut levels = vec![Vec::new(); truth.len()];
        for _ in 0..*LOOKS.last().unwrap() {
            let drift = 0.1 * normal();
            for (level, mean) in levels.iter_mut().zip(truth) {
                let disturbed = if normal() > 2.5 { 0.9 } else { 1.0 };
                level.push(mean * disturbed * (drift + noise * normal()).exp());
            }
        }
        levels
    }

    /// What is said at the first look that decides, and after how many rounds.
    fn asked(levels: &[Vec<f64>]) -> Option<(usize, usize)> {
        LOOKS.iter().find_map(|look| {
            let rounds = *look as usize;
            let so_far: Vec<Vec<f64>> = levels.iter().map(|l| l[..rounds].to_vec()).collect();
            Some((Comparison::new(&so_far, 0.05).decided()?, rounds))
        })
    }

    fn right(truth: &[f64]) -> usize {
        let best = truth.iter().copied().fold(0.0, f64::max);
        truth.iter().position(|mean| *mean >= 0.95 * best).unwrap()
    }

    #[test]
    fn wrong_answers_are_as_rare_as_promised() {
        for truth in [
            vec![100.0, 190.0, 340.0, 350.0],
            vec![100.0, 100.0],
            vec![100.0, 114.0],
            // Just on either side of what does not matter.
            vec![94.5, 100.0],
            vec![95.5, 100.0],
            vec![80.0, 96.0, 100.0, 99.0, 90.0],
        ] {
            for noise in [0.01, 0.03, 0.08] {
                let runs = (0..200).map(|seed| asked(&simulated(&truth, noise, seed)));
                let decided: Vec<(usize, usize)> = runs.flatten().collect();
                let wrong = decided.iter().filter(|said| said.0 != right(&truth)).count();
                assert!(wrong as f64 <= 200.0 * ERROR_RATE, "{truth:?}, {noise}: {wrong} wrong");
            }
        }
    }

    #[test]
    fn what_is_plain_is_decided_early() {
        let runs = (0..200).map(|seed| asked(&simulated(&[100.0, 190.0, 340.0], 0.02, seed)));
        let rounds: Vec<usize> = runs.map(|said| said.expect("it is plain").1).collect();
        let early = rounds.iter().filter(|rounds| **rounds <= 9).count();
        assert!(early > 150, "{early} of 200 within nine rounds");
    }

    #[test]
    fn what_is_not_decided_has_a_range_and_a_number_of_rounds() {
        let levels = simulated(&[60.0, 95.0, 100.0], 0.05, 1);
        let few: Vec<Vec<f64>> = levels.iter().map(|level| level[..6].to_vec()).collect();
        let comparison = Comparison::new(&few, 0.05);
        assert_eq!(comparison.decided(), None);
        assert_eq!(comparison.range(), (1, 2));
        assert!(comparison.rounds_needed().unwrap() > 30.0);
        assert!(comparison.is_look());
    }

    #[test]
    fn rounds_that_a_level_lacks_are_left_out() {
        let comparison = Comparison::new(&[vec![1.0, 1.0, 1.0], vec![2.0, 2.0]], 0.05);
        assert_eq!(comparison.rounds(), 2);
        assert_eq!(Comparison::new(&[vec![], vec![2.0]], 0.05).decided(), None);
    }
}
