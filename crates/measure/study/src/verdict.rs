//! Our figure beside the paper's: *agrees*, *disagrees*, *cannot be said here*.
//!
//! The rule, per cell of a claim, with our 95 % interval of the ratio:
//!
//! ```text
//!   the claim needs what this run does not have     cannot be said here
//!   no ratio of ours, or fewer than two pairs       cannot be said here
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
//! ```
//!
//! A model always gives the same result: its interval is the ratio itself. Where the paper says
//! faster or slower it counts as 2 % wide to either side ([`RESOLVED`]): any input makes that
//! difference.
//!
//! "Agrees" is about the side of 1: other processors give other factors, so sizes are shown side by
//! side and not judged. A claim on several cells agrees when all do, disagrees when one does.

use serde::Serialize;

use crate::paper::{Claim, Direction, Requirement};
use crate::record::Host;
use crate::statistics::{Interval, Ratio};

/// Ratios this near to 1 are "the same".
pub const SAME: f64 = 1.05;

/// The least ratio that a model distinguishes from 1.
///
/// A default: the model's latencies are calibrated within 2 %, and no difference of its outcomes
/// that is smaller can be distinguished from one of its inputs.
pub const RESOLVED: f64 = 1.02;

/// The three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Our interval lies on the paper's side.
    Agrees,
    /// It does not.
    Disagrees,
    /// This run is inconclusive.
    CannotBeSaidHere,
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

/// A word with its reason, for one claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Index of the claim in the study.
    pub claim: usize,
    /// The word.
    pub word: Word,
    /// Why, one line.
    pub reason: String,
    /// Evidence tier of ours.
    pub tier: String,
    /// Its cells, with our ratios against the claim's baseline.
    pub cells: Vec<(usize, Option<Ratio>)>,
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
pub fn judge(claim: &Claim, ratio: Option<Ratio>) -> (Word, String) {
    let Some(direction) = direction(claim) else {
        return (Word::CannotBeSaidHere, "the paper gives no figure to compare with".to_owned());
    };
    let Some(ratio) = ratio else {
        return (Word::CannotBeSaidHere, "there is no ratio of ours".to_owned());
    };
    let Some(interval) = ratio.interval else {
        return (Word::CannotBeSaidHere, "one repetition gives no interval".to_owned());
    };
    let resolved = match interval.low < interval.high {
        true => interval,
        false => Interval { low: interval.low / RESOLVED, high: interval.high * RESOLVED },
    };
    let (word, why) = match direction {
        Direction::Faster => one_side(resolved, claim.ratio),
        Direction::Slower => {
            let mirrored = Interval { low: 1.0 / resolved.high, high: 1.0 / resolved.low };
            one_side(mirrored, claim.ratio.map(f64::recip))
        }
        Direction::Same => the_same(interval),
        Direction::NotFaster => no_better(interval),
    };
    let judged = Judged { ratio: ratio.ratio, interval, direction, word, why };
    (word, judged.reason())
}

/// A ratio with the word for it.
struct Judged {
    ratio: f64,
    interval: Interval,
    direction: Direction,
    word: Word,
    why: &'static str,
}

impl Judged {
    /// The ratio, and why this word.
    fn reason(&self) -> String {
        let Self { ratio, interval: Interval { low, high }, why, .. } = self;
        let is_exact = low >= high;
        // A difference that small needs another digit.
        let of_a_side = matches!(self.direction, Direction::Faster | Direction::Slower);
        if is_exact && of_a_side && (1.0 / RESOLVED..RESOLVED).contains(ratio) {
            return format!("×{ratio:.3}, modelled: {why}; a model resolves no less than 2 %");
        }
        match self.word {
            _ if is_exact => format!("×{ratio:.2}, modelled: {why}"),
            Word::CannotBeSaidHere => {
                format!("×{ratio:.2} ({low:.2} to {high:.2}): {why}; more repetitions may help")
            }
            _ => format!("×{ratio:.2} ({low:.2} to {high:.2}): {why}"),
        }
    }
}

/// A claim without its size, reduced to its direction.
pub fn direction_only(claim: &Claim) -> Claim {
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

/// One word for several cells: all must agree, one disagrees for all.
pub fn together(judged: &[(Word, String)]) -> (Word, String) {
    together_as(judged, "cells")
}

/// As [`together`], for several of `noun`.
pub fn together_as(judged: &[(Word, String)], noun: &str) -> (Word, String) {
    let first = |word: Word| judged.iter().find(|(candidate, _)| *candidate == word);
    let count = |word: Word| judged.iter().filter(|(candidate, _)| *candidate == word).count();
    let found = [Word::Disagrees, Word::CannotBeSaidHere, Word::Agrees].into_iter().find_map(first);
    match (judged, found) {
        ([(word, reason)], _) => (*word, reason.clone()),
        (_, Some((word, reason))) => {
            let of = format!("{} of {} {noun}, e.g. {reason}", count(*word), judged.len());
            (*word, of)
        }
        (_, None) => (Word::CannotBeSaidHere, "the claim matches no cell of ours".to_owned()),
    }
}

#[cfg(test)]
mod tests;
