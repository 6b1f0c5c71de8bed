//! Our figure beside the paper's, in two words: a direction and a size.
//!
//! *Direction* is *agrees*, *disagrees* or *cannot be said here*. The rule, per cell of a claim,
//! with our 95 % interval of the ratio:
//!
//! ```text
//!   the claim needs what this run does not have     cannot be said here
//!   no figure of ours, or fewer than two pairs      cannot be said here
//!   the paper says faster (ratio > 1):
//!       interval wholly above 1                     agrees
//!       interval wholly below 1                     disagrees
//!       includes 1, excludes the paper's ratio      disagrees: an effect that size is not here
//!       includes 1 and the paper's ratio            cannot be said here: too wide
//!   the paper says slower: mirrored
//!   the paper says the same (within 5 %):
//!       interval wholly within 1/1.05 … 1.05        agrees
//!       interval wholly outside                     disagrees
//!       else                                        cannot be said here
//!   the paper prints a value (cycles, misses, a share), ours over it:
//!       interval wholly within 1/1.25 … 1.25        agrees
//!       interval wholly outside                     disagrees
//!       else                                        cannot be said here
//! ```
//!
//! *Size* is how far our ratio or value is from a printed one, as a factor to either side, by the
//! end of the interval that is farther: *within 10 %*, *within 25 %*, *within 2×*; *beyond* where
//! all of the interval is more than twice or less than half; *no figure* where the paper prints
//! none, we have none, or the interval is too wide for any of these. A ratio of 1.07 for 1.49
//! agrees in direction and is within 2× in size: neither word replaces the other.
//!
//! A model always gives the same result: its interval is the ratio itself. Where the paper says
//! faster or slower it counts as 2 % wide to either side ([`RESOLVED`]): any input makes that
//! difference.
//!
//! "Up to" is a statement about one cell among many, and judged at ours with the most extreme ratio
//! ([`Extent`]); the best of many measured cells is far from 1 by chance, so that its p value is
//! multiplied by their number (Bonferroni) before it agrees with a side. All other claims on
//! several cells agree when all do and disagree when one does; their size is the worst of them.
//!
//! Nothing against something is a ratio too: where the baseline has none at all, ours is ∞.

use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Direction, Extent, Requirement};
use crate::record::Host;
use crate::statistics::{Interval, Ratio};

/// Ratios this near to 1 are "the same".
pub const SAME: f64 = 1.05;

/// Values this near to the paper's agree with it.
///
/// A default: processors, compilers and versions of a server change a count by some tenths; more
/// than a quarter is another profile.
pub(crate) const NEAR: f64 = 1.25;

/// The least ratio that a model distinguishes from 1.
///
/// A default: the model's latencies are calibrated within 2 %, and no difference of its outcomes
/// that is smaller can be distinguished from one of its inputs.
pub const RESOLVED: f64 = 1.02;

/// How often chance alone may put the best of many cells on the paper's side.
const P_MAX: f64 = 0.05;

/// The word for the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Our interval lies on the paper's side.
    Agrees,
    /// This run is inconclusive.
    CannotBeSaidHere,
    /// It does not.
    Disagrees,
}

impl Word {
    /// As reports print it.
    pub fn text(self) -> &'static str {
        match self {
            Word::Agrees => "agrees",
            Word::Disagrees => "disagrees",
            Word::CannotBeSaidHere => "cannot be said here",
        }
    }
}

/// The word for the size: how far ours is from the printed figure, as a factor to either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Size {
    /// Up to 1.1.
    #[serde(rename = "within 10 %")]
    Within10,
    /// Up to 1.25.
    #[serde(rename = "within 25 %")]
    Within25,
    /// Up to 2.
    #[serde(rename = "within 2×")]
    Within2x,
    /// More than 2.
    #[serde(rename = "beyond")]
    Beyond,
    /// One of the two is missing, or ours is too uncertain.
    #[serde(rename = "no figure")]
    NoFigure,
}

impl Size {
    /// As reports print it.
    pub fn text(self) -> &'static str {
        match self {
            Size::Within10 => "within 10 %",
            Size::Within25 => "within 25 %",
            Size::Within2x => "within 2×",
            Size::Beyond => "beyond",
            Size::NoFigure => "no figure",
        }
    }

    /// Of an interval of ours from the paper's figure.
    fn of(paper: f64, Interval { low, high }: Interval) -> Size {
        // Nothing against something, or no number at all.
        let factor = |ours: f64| match (ours / paper).max(paper / ours) {
            factor if factor.is_finite() => factor,
            _ => f64::INFINITY,
        };
        let (one, other) = (factor(low), factor(high));
        let includes = low <= paper && paper <= high;
        match (one.max(other), one.min(other)) {
            (farther, _) if farther <= 1.1 => Size::Within10,
            (farther, _) if farther <= NEAR => Size::Within25,
            (farther, _) if farther <= 2.0 => Size::Within2x,
            (_, nearer) if nearer > 2.0 && !includes => Size::Beyond,
            _ => Size::NoFigure,
        }
    }

    /// Of one figure of ours, without an interval, from the paper's.
    #[must_use]
    pub fn of_figures(paper: f64, ours: f64) -> Size {
        Size::of(paper, Interval::at(ours))
    }

    /// The worst of several; of those without a figure only where none has one.
    pub fn worst(sizes: impl IntoIterator<Item = Size>) -> Size {
        sizes.into_iter().filter(|size| *size != Size::NoFigure).max().unwrap_or(Size::NoFigure)
    }
}

/// Both words and why, for one cell, one claim or one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The word for the direction.
    pub direction: Word,
    /// The word for the size.
    pub size: Size,
    /// Why, one line, with our figure.
    pub reason: String,
}

impl Judgement {
    /// Where nothing can be said, and why.
    #[must_use]
    pub fn unsaid(reason: impl Into<String>) -> Judgement {
        let (direction, size) = (Word::CannotBeSaidHere, Size::NoFigure);
        Judgement { direction, size, reason: reason.into() }
    }

    /// Both words: `agrees, within 25 %`.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{}, {}", self.direction.text(), self.size.text())
    }
}

/// The judgement of one claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Index of the claim in the study.
    pub claim: usize,
    /// Both words and why.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Evidence tier of ours.
    pub tier: String,
    /// Its cells, with our ratios: against the claim's baseline, or against the paper's value.
    pub cells: Vec<(usize, Option<Ratio>)>,
}

/// Where a figure of ours is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A machine, whose samples differ.
    Measured,
    /// A model, which always gives the same.
    Modelled,
}

impl Origin {
    /// Of a run's host.
    #[must_use]
    pub fn of(host: &Host) -> Origin {
        if host.is_modelled() { Origin::Modelled } else { Origin::Measured }
    }
}

/// The first requirement of a claim that the run lacks, in words.
pub fn missing(needs: &[Requirement], host: &Host) -> Option<String> {
    // A model has siblings, and counts whatever happens in it.
    let lacks = |need: &&Requirement| match need {
        Requirement::Siblings => !host.siblings && !host.is_modelled(),
        Requirement::Counters => !host.counters && !host.is_modelled(),
        Requirement::Model => !host.is_modelled(),
    };
    needs.iter().find(lacks).map(|need| match need {
        Requirement::Siblings => "no two CPUs of this machine are seen to share a core".to_owned(),
        Requirement::Counters => {
            format!("it takes hardware counters ({})", host.tier_reason)
        }
        Requirement::Model => "it takes a modelled machine".to_owned(),
    })
}

/// Judges one ratio.
pub fn judge(claim: &Claim, ratio: Option<Ratio>, origin: Origin) -> Judgement {
    let Some(expected) = ExpectedFigure::of(claim) else {
        return Judgement::unsaid("nothing of ours is compared with it");
    };
    let Some(ratio) = ratio else { return Judgement::unsaid("there is no figure of ours") };
    let Some(interval) = ratio.interval else {
        return Judgement::unsaid("one repetition gives no interval");
    };
    let resolved = match origin {
        Origin::Measured => interval,
        Origin::Modelled => {
            Interval { low: interval.low / RESOLVED, high: interval.high * RESOLVED }
        }
    };
    let (word, why) = match expected {
        ExpectedFigure::Value(_) => near(interval),
        ExpectedFigure::Side(Direction::Faster) => one_side(resolved, claim.ratio),
        ExpectedFigure::Side(Direction::Slower) => {
            let mirrored = Interval { low: 1.0 / resolved.high, high: 1.0 / resolved.low };
            one_side(mirrored, claim.ratio.map(f64::recip))
        }
        ExpectedFigure::Side(Direction::Same) => the_same(interval),
        ExpectedFigure::Side(Direction::NotFaster) => no_better(interval),
    };
    let size = match expected {
        ExpectedFigure::Value(_) => Size::of(1.0, interval),
        ExpectedFigure::Side(_) => {
            claim.ratio.map_or(Size::NoFigure, |paper| Size::of(paper, interval))
        }
    };
    let judged = JudgedRatio { ratio: ratio.ratio, interval, origin, expected, word, why };
    Judgement { direction: word, size, reason: judged.reason() }
}

/// Judges all cells of a claim together: each of them, or the most extreme one.
pub(crate) fn judge_cells(
    claim: &Claim,
    cells: &[(usize, Option<Ratio>)],
    origin: Origin,
) -> Judgement {
    let known = cells.iter().filter_map(|(_, ratio)| *ratio);
    let by_ratio = |one: &Ratio, other: &Ratio| one.ratio.total_cmp(&other.ratio);
    let (extreme, name) = match claim.at {
        Extent::Every => {
            let judged = cells.iter().map(|(_, ratio)| judge(claim, *ratio, origin));
            return together(&judged.collect::<Vec<_>>());
        }
        Extent::Most => (known.max_by(by_ratio), "largest"),
        Extent::Least => (known.min_by(by_ratio), "smallest"),
    };
    if cells.is_empty() {
        return together(&[]);
    }
    let judged = judge(claim, extreme, origin);
    let of = cells.len();
    let p = extreme.and_then(|ratio| ratio.p).unwrap_or(0.0) * of as f64;
    let is_of_a_side = ExpectedFigure::of(claim).is_some_and(ExpectedFigure::is_of_a_side);
    match judged.direction {
        Word::Agrees if is_of_a_side && origin == Origin::Measured && p > P_MAX => Judgement {
            direction: Word::CannotBeSaidHere,
            reason: format!("{}, as the {name} of {of} cells may by chance", judged.reason),
            ..judged
        },
        _ if of > 1 && extreme.is_some() => {
            Judgement { reason: format!("{}, the {name} of {of} cells", judged.reason), ..judged }
        }
        _ => judged,
    }
}

/// A paper's figure, as it is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ExpectedFigure {
    /// A value of a measure.
    Value(f64),
    /// A side of 1.
    Side(Direction),
}

impl ExpectedFigure {
    fn is_of_a_side(self) -> bool {
        matches!(self, ExpectedFigure::Side(Direction::Faster | Direction::Slower))
    }

    fn of(claim: &Claim) -> Option<ExpectedFigure> {
        claim.value.map(ExpectedFigure::Value).or(direction(claim).map(ExpectedFigure::Side))
    }
}

/// A ratio with the word for it.
struct JudgedRatio {
    ratio: f64,
    interval: Interval,
    origin: Origin,
    expected: ExpectedFigure,
    word: Word,
    why: &'static str,
}

impl JudgedRatio {
    /// The figure, and why this word.
    fn reason(&self) -> String {
        let Self { ratio, interval: Interval { low, high }, origin, why, expected, .. } = self;
        let is_exact = *origin == Origin::Modelled;
        if let ExpectedFigure::Value(value) = expected {
            let [ours, low, high] = [ratio, low, high].map(|of| significant(of * value));
            return match is_exact {
                true => format!("{ours}, modelled: {why}"),
                false => format!("{ours} ({low} to {high}): {why}"),
            };
        }
        // A difference that small needs another digit.
        if is_exact && expected.is_of_a_side() && (1.0 / RESOLVED..RESOLVED).contains(ratio) {
            return format!("×{ratio:.3}, modelled: {why}; a model resolves no less than 2 %");
        }
        let shown = times(*ratio);
        match self.word {
            _ if is_exact => format!("{shown}, modelled: {why}"),
            _ if low >= high => format!("{shown}: {why}"),
            Word::CannotBeSaidHere => {
                format!("{shown} ({low:.2} to {high:.2}): {why}; more repetitions may help")
            }
            _ => format!("{shown} ({low:.2} to {high:.2}): {why}"),
        }
    }
}

/// `×1.07`; nothing against something, and the other way round, in words.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio == f64::INFINITY => "×∞ (the other is 0)".to_owned(),
        0.0 => "×0 (there is none)".to_owned(),
        ratio if ratio < 0.1 => format!("×{ratio:.3}"),
        ratio => format!("×{ratio:.2}"),
    }
}

/// Three significant digits.
fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        large if large >= 100.0 => format!("{value:.0}"),
        large if large >= 10.0 => format!("{value:.1}"),
        large if large >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A claim without its size, reduced to its direction.
pub(crate) fn direction_only(claim: &Claim) -> Claim {
    Claim { direction: direction(claim), ratio: None, ..claim.clone() }
}

/// The paper's direction: its own, or that of its ratio.
fn direction(claim: &Claim) -> Option<Direction> {
    let of_ratio = |ratio: f64| match ratio {
        ratio if ratio > SAME => Direction::Faster,
        ratio if ratio < 1.0 / SAME => Direction::Slower,
        _ => Direction::Same,
    };
    claim.direction.or(claim.ratio.map(of_ratio))
}

fn one_side(interval: Interval, paper: Option<f64>) -> (Word, &'static str) {
    match paper {
        _ if interval.low > 1.0 => (Word::Agrees, "on the paper's side of 1"),
        _ if interval.high < 1.0 => (Word::Disagrees, "on the other side of 1"),
        Some(paper) if !interval.includes(paper) => {
            (Word::Disagrees, "no difference shown, and the paper's ratio is excluded")
        }
        _ => (Word::CannotBeSaidHere, "no difference shown"),
    }
}

fn the_same(interval: Interval) -> (Word, &'static str) {
    let Interval { low, high } = interval;
    match (1.0 / SAME, SAME) {
        (from, to) if low >= from && high <= to => {
            (Word::Agrees, "within 5 % of 1, as the paper's")
        }
        (from, to) if high < from || low > to => (Word::Disagrees, "more than 5 % from 1"),
        _ => (Word::CannotBeSaidHere, "too wide to tell from 1"),
    }
}

fn no_better(Interval { low, high }: Interval) -> (Word, &'static str) {
    match SAME {
        most if high <= most => (Word::Agrees, "no more than 5 % above 1, as the paper's"),
        most if low > most => (Word::Disagrees, "more than 5 % above 1"),
        _ => (Word::CannotBeSaidHere, "too wide to tell from 1"),
    }
}

/// Of a value: ours over the paper's.
fn near(Interval { low, high }: Interval) -> (Word, &'static str) {
    match (1.0 / NEAR, NEAR) {
        (from, to) if low >= from && high <= to => (Word::Agrees, "within 25 % of the paper's"),
        (from, _) if high < from => (Word::Disagrees, "less than the paper's by more than 25 %"),
        (_, to) if low > to => (Word::Disagrees, "more than the paper's by more than 25 %"),
        _ => (Word::CannotBeSaidHere, "too wide to tell from the paper's"),
    }
}

/// Both words for several cells: all must agree, one disagrees for all; the worst size.
pub fn together(judged: &[Judgement]) -> Judgement {
    let count = |word: Word| judged.iter().filter(|judged| judged.direction == word).count();
    match (judged, judged.iter().max_by_key(|judged| judged.direction)) {
        ([one], _) => one.clone(),
        (_, Some(worst)) => Judgement {
            direction: worst.direction,
            size: Size::worst(judged.iter().map(|judged| judged.size)),
            reason: format!(
                "{} of {} cells, e.g. {}",
                count(worst.direction),
                judged.len(),
                worst.reason
            ),
        },
        (_, None) => Judgement::unsaid("the claim matches no cell of ours"),
    }
}

#[cfg(test)]
mod tests;
