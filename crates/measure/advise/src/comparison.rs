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
//!
//! A level that falls short is neither the answer nor the best one, whatever comes: it is not
//! sampled any more (a race; Maron and Moore, Artificial Intelligence Review 11, 1997). Levels are
//! compared over the rounds that both have.

use std::collections::BTreeMap;

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
    /// Logarithms of throughputs: of a level, by round.
    logs: Vec<BTreeMap<u32, f64>>,
    /// The part of another's throughput that suffices.
    share: f64,
}

impl Comparison {
    /// Levels from small to large, each with its throughputs by round. `within` is the difference
    /// of no matter, such as 0.05.
    pub(crate) fn new(levels: Vec<BTreeMap<u32, f64>>, within: f64) -> Comparison {
        let log = |level: BTreeMap<u32, f64>| -> BTreeMap<u32, f64> {
            level.into_iter().map(|(round, value)| (round, value.ln())).collect()
        };
        Comparison { logs: levels.into_iter().map(log).collect(), share: 1.0 - within }
    }

    /// Rounds of all levels that may be the answer.
    pub(crate) fn rounds(&self) -> usize {
        self.racing().map(|level| self.logs[level].len()).min().unwrap_or(0)
    }

    /// Rounds of a level.
    pub(crate) fn rounds_of(&self, level: usize) -> usize {
        self.logs[level].len()
    }

    /// Levels that do not fall short.
    pub(crate) fn racing(&self) -> impl Iterator<Item = usize> {
        let levels = 0..self.logs.len();
        levels.filter(|level| self.verdict(*level) != Verdict::FallsShort)
    }

    /// Whether its rounds are those of a look.
    pub(crate) fn is_look(&self) -> bool {
        let rounds = self.rounds();
        LOOKS.iter().any(|look| *look as usize == rounds)
    }

    /// The throughput of level `this` over that of `other`, and its interval.
    pub(crate) fn ratio(&self, this: usize, other: usize) -> Option<(f64, Interval)> {
        let logs = self.differences(this, other);
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let half = self.half_width(&logs)?;
        Some((mean.exp(), Interval { low: (mean - half).exp(), high: (mean + half).exp() }))
    }

    /// Of the rounds that both have.
    fn differences(&self, this: usize, other: usize) -> Vec<f64> {
        let other = &self.logs[other];
        let both = self.logs[this].iter();
        both.filter_map(|(round, this)| Some(this - other.get(round)?)).collect()
    }

    fn half_width(&self, logs: &[f64]) -> Option<f64> {
        let rounds = logs.len() as f64;
        Some(self.t(rounds - 1.0)? * sd(logs)? / rounds.sqrt())
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

    /// The level with the most throughput, in the rounds of all that do not fall short.
    pub(crate) fn best(&self) -> usize {
        let racing: Vec<usize> = self.racing().collect();
        let in_all = |round: &u32| racing.iter().all(|level| self.logs[*level].contains_key(round));
        let sum = |level: &usize| -> f64 {
            let logs = self.logs[*level].iter();
            logs.filter(|(round, _)| in_all(round)).map(|(_, log)| log).sum()
        };
        let best = racing.iter().max_by(|one, other| sum(one).total_cmp(&sum(other)));
        best.copied().unwrap_or(0)
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
        let open = self.racing().filter(|level| (least..=most).contains(level) && *level != best);
        let rounds = open.filter_map(|level| {
            let logs = self.differences(level, best);
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            let narrow = (mean - self.share.ln()).abs().max(-self.share.ln() / 4.0);
            let half = self.half_width(&logs)?;
            Some(logs.len() as f64 * (half / narrow).powi(2))
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
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = move || {
            let sum: f64 = (0..12).map(|_| random.random_range(0.0..1.0)).sum();
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

    /// The first rounds of levels.
    fn so_far(levels: &[Vec<f64>], rounds: usize) -> Vec<BTreeMap<u32, f64>> {
        let of = |level: &Vec<f64>| (0..).zip(level[..rounds].iter().copied()).collect();
        levels.iter().map(of).collect()
    }

    /// The answer at the first look that decides, after how many rounds and samples; of a level
    /// that falls short at a look there are no more.
    fn raced(levels: &[Vec<f64>]) -> Option<(usize, usize, usize)> {
        let mut lengths = vec![usize::MAX; levels.len()];
        LOOKS.iter().find_map(|look| {
            let rounds = *look as usize;
            let mut seen = so_far(levels, rounds);
            for (level, length) in seen.iter_mut().zip(&lengths) {
                level.retain(|round, _| (*round as usize) < *length);
            }
            let samples = seen.iter().map(BTreeMap::len).sum();
            let comparison = Comparison::new(seen, 0.05);
            assert!(comparison.is_look(), "{} of {rounds}", comparison.rounds());
            let racing: Vec<usize> = comparison.racing().collect();
            for (level, length) in lengths.iter_mut().enumerate() {
                if !racing.contains(&level) {
                    *length = (*length).min(rounds);
                }
            }
            Some((comparison.decided()?, rounds, samples))
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
                let runs = (0..200).map(|seed| raced(&simulated(&truth, noise, seed)));
                let decided: Vec<(usize, usize, usize)> = runs.flatten().collect();
                let wrong = decided.iter().filter(|said| said.0 != right(&truth)).count();
                assert!(wrong as f64 <= 200.0 * ERROR_RATE, "{truth:?}, {noise}: {wrong} wrong");
            }
        }
    }

    #[test]
    fn what_is_plain_is_decided_early() {
        let runs = (0..200).map(|seed| raced(&simulated(&[100.0, 190.0, 340.0], 0.02, seed)));
        let rounds: Vec<usize> = runs.map(|said| said.expect("it is plain").1).collect();
        let early = rounds.iter().filter(|rounds| **rounds <= 9).count();
        assert!(early > 150, "{early} of 200 within nine rounds");
    }

    /// Of eight levels those that fall short early are half of the samples of later rounds.
    #[test]
    fn levels_that_fall_short_take_no_time() {
        let truth = [20.0, 40.0, 70.0, 85.0, 94.0, 100.0, 100.0, 99.0];
        let runs = (0..50).filter_map(|seed| raced(&simulated(&truth, 0.03, seed)));
        let (mut samples, mut of_all) = (0, 0);
        for (_, rounds, taken) in runs {
            (samples, of_all) = (samples + taken, of_all + rounds * truth.len());
        }
        assert!(of_all > 0 && samples < of_all * 3 / 4, "{samples} of {of_all}");
    }

    #[test]
    fn what_is_not_decided_has_a_range_and_a_number_of_rounds() {
        let levels = simulated(&[60.0, 95.0, 100.0], 0.05, 1);
        let comparison = Comparison::new(so_far(&levels, 6), 0.05);
        assert_eq!(comparison.decided(), None);
        assert_eq!(comparison.range(), (1, 2));
        assert!(comparison.rounds_needed().unwrap() > 30.0);
        assert!(comparison.is_look());
    }

    #[test]
    fn rounds_that_a_level_lacks_are_left_out() {
        let of = |values: &[f64]| -> BTreeMap<u32, f64> { (0..).zip(values.to_vec()).collect() };
        let comparison = Comparison::new(vec![of(&[1.0, 1.0, 1.0]), of(&[2.0, 2.0])], 0.05);
        assert_eq!(comparison.differences(0, 1).len(), 2);
        assert_eq!(Comparison::new(vec![of(&[]), of(&[2.0])], 0.05).decided(), None);
    }
}
