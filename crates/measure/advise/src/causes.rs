//! Why a server takes longer, or less long, than it did: from two captures.
//!
//! ```text
//! both captures ─► time of a transaction in parts, each with its change           parts.rs
//!                    │  no difference that two captures could not have by chance ─► no cause
//!                    ▼
//!  parts that changed ◄─ what changed beside time, and acts on them   candidates.rs
//!                    │                             differences.rs, documented.rs
//!                    └─► causes by their share of the difference; the rest is unexplained
//! ```
//!
//! A share is measured: the change of the parts that a cause is shown to act on, over the change of
//! the whole. Changes without such a part are listed, and have no share.
//!
//! Deliberately absent: a rule that was fitted to measured regressions.

mod candidates;
mod differences;
mod documented;
mod parts;
mod samples;
#[cfg(test)]
mod tests;

use serde::Serialize;
use workahead_study::capture::{Capture, WINDOWS_MIN};
use workahead_study::results::Results;
use workahead_study::statistics::{CONFIDENCE, Interval};

use crate::words::{significant, time};
use candidates::Candidate;
pub use candidates::ChangedValue;
use differences::{ComparisonCache, Pair};
pub use parts::{Change, Part};
use parts::{Parts, half};

/// Two captures of the same load may differ by this much: they lie apart in time, and no interval
/// of either knows what changed between them.
const MARGIN: f64 = 1.1;

/// How often chance alone may show a difference of the whole, or of a part.
const WHOLE_P: f64 = 0.001;
const PART_P: f64 = 0.01;

/// Parts below this share of the difference are not looked into.
const SHARE_MIN: f64 = 0.05;

/// Why a transaction takes another time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Causes {
    /// The answer in a sentence.
    pub sentence: String,
    /// The counted unit.
    pub counted: String,
    /// The time of a transaction in the server: sessions at work over transactions per second.
    pub time: Change,
    /// After over before, of geometric means of windows.
    pub ratio: f64,
    /// Its interval.
    pub ratio_interval: Interval,
    /// Per second, before and after.
    pub rates: (f64, f64),
    /// Whether the difference is more than two captures of the same have.
    pub is_shown: bool,
    /// The causes, that with the largest share first; empty unless a difference is shown. What is
    /// left over is the last.
    pub causes: Vec<Cause>,
    /// Every part of the time.
    pub parts: Vec<PartChange>,
    /// Other differences, whose share is unknown.
    pub changed: Vec<ChangedValue>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// In words.
    pub says: String,
    /// How it is known.
    pub basis: Basis,
    /// Its share of the difference; below 0 where it works against it.
    pub share: f64,
    /// The share's interval; none of what is left over.
    pub interval: Option<Interval>,
    /// The parts that are its share.
    pub parts: Vec<Part>,
    /// The evidence.
    pub evidence: Vec<String>,
    /// Others that may be it instead: the captures do not tell them apart.
    pub or: Vec<String>,
}

/// How a cause is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It changed, and a figure of its own shows that it acts.
    Shown,
    /// It changed, and is documented to act on what changed; nothing else is known to.
    Documented,
    /// Where the time went, without a change that is known to act there.
    Place,
    /// The remainder.
    Unexplained,
}

/// A part of the time and its change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartChange {
    /// The part.
    pub part: Part,
    /// Its change.
    #[serde(flatten)]
    pub change: Change,
    /// Whether it is more than chance.
    pub is_shown: bool,
}

/// Why two captures can't be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CausesError {
    /// They are of other products.
    #[error("one is of {before} and the other of {after}: capture the same server twice")]
    Products {
        /// Before.
        before: String,
        /// After.
        after: String,
    },
    /// Too little was seen.
    #[error(
        "the capture {which} has {windows} windows in which something ended, and {needed} are \
         needed: capture while the server has work, or longer (--for)"
    )]
    TooShort {
        /// `before` or `after`.
        which: &'static str,
        /// How many it has.
        windows: usize,
        /// How many it should have.
        needed: usize,
    },
    /// The server did nothing.
    #[error("no session was at work in the capture {which}: capture while the server has work")]
    Idle {
        /// `before` or `after`.
        which: &'static str,
    },
}

impl Causes {
    /// Of two captures.
    ///
    /// # Errors
    /// When they can't be compared.
    pub fn of(before: &Capture, after: &Capture) -> Result<Causes, CausesError> {
        Self::of_at_least(before, after, WINDOWS_MIN)
    }

    /// Of a cell of two results, whose repetitions are the windows.
    ///
    /// # Errors
    /// When they can't be compared.
    pub fn of_cells(
        (before, one): (&Results, usize),
        (after, other): (&Results, usize),
    ) -> Result<Causes, CausesError> {
        let (before, after) = (samples::of_cell(before, one), samples::of_cell(after, other));
        Self::of_at_least(&before, &after, SAMPLES_MIN)
    }

    fn of_at_least(
        before: &Capture,
        after: &Capture,
        needed: usize,
    ) -> Result<Causes, CausesError> {
        if before.software != after.software {
            let names = [before, after].map(|capture| capture.software.clone());
            let [before, after] = names;
            return Err(CausesError::Products { before, after });
        }
        for (which, capture) in [("before", before), ("after", after)] {
            let windows = capture.windows.iter().filter(|window| window.ended > 0.0).count();
            if windows < needed {
                return Err(CausesError::TooShort { which, windows, needed });
            }
        }
        let parts = Parts::of(before, after);
        for (which, time_s) in [("before", parts.total.before_s), ("after", parts.total.after_s)] {
            if time_s <= 0.0 {
                return Err(CausesError::Idle { which });
            }
        }
        Ok(Self::compared((before, after), &parts))
    }

    fn compared((before, after): (&Capture, &Capture), parts: &Parts) -> Causes {
        let time = parts.total;
        let found = parts.ratio();
        let ratio = found.map_or(1.0, |found| found.ratio);
        let is_sure = found.and_then(|found| found.p).is_some_and(|p| p < WHOLE_P);
        // A mean that goes the other way is that of one window.
        let is_one_way = (ratio > 1.0) == (time.difference_s() > 0.0);
        let is_shown = is_sure && is_one_way && !(1.0 / MARGIN..=MARGIN).contains(&ratio);
        let (known, is_slower) = (ComparisonCache::default(), time.difference_s() > 0.0);
        let pair = Pair { before, after, is_slower, known: &known };
        let causes = if is_shown { ranked(pair, parts) } else { Vec::new() };
        let part = |(part, change): &(Part, Change)| PartChange {
            part: *part,
            change: *change,
            is_shown: parts.is_shown(*part, change, PART_P),
        };
        let is_named = |changed: &ChangedValue| {
            causes.iter().any(|cause| cause.says.starts_with(&changed.name))
        };
        let mut changed = candidates::settings(pair);
        changed.extend(candidates::facts(pair));
        changed.retain(|changed| !is_named(changed));
        let rate = |capture: &Capture| capture.ended() / capture.seconds();
        let unknown = Interval { low: 0.0, high: f64::MAX };
        let mut causes = Causes {
            sentence: String::new(),
            counted: after.counted.clone(),
            time,
            ratio,
            ratio_interval: found.and_then(|found| found.interval).unwrap_or(unknown),
            rates: (rate(before), rate(after)),
            is_shown,
            causes,
            parts: parts.changes.iter().map(part).collect(),
            changed,
            notes: Vec::new(),
        };
        causes.sentence = sentence(pair, &causes);
        causes.notes = notes(pair, &causes);
        causes
    }
}

/// Causes that can't be told apart: no more are named.
const OTHERS_MAX: usize = 20;

/// Three repetitions have a spread.
const SAMPLES_MIN: usize = 3;

/// The causes by their shares, and what is left over.
fn ranked(pair: Pair<'_>, parts: &Parts) -> Vec<Cause> {
    let whole_s = parts.total.difference_s();
    let mut open: Vec<(Part, f64)> = parts
        .changes
        .iter()
        .filter(|(part, change)| parts.is_shown(*part, change, PART_P))
        .map(|(part, change)| (*part, change.difference_s() / whole_s))
        .filter(|(_, share)| share.abs() >= SHARE_MIN)
        .collect();
    open.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()));
    let candidates = candidates::of(pair);
    let named = named(&candidates, &mut open);
    let mut causes: Vec<Cause> = named
        .into_iter()
        .map(|CauseGroup { basis, candidates, parts: of }| {
            let (first, others) = candidates.split_first().expect("at least one was found");
            let mut or: Vec<String> =
                others.iter().take(OTHERS_MAX).map(|one| one.says.clone()).collect();
            if let Some(more @ 1..) = others.len().checked_sub(OTHERS_MAX) {
                or.push(format!("one of {more} more"));
            }
            Cause {
                or,
                evidence: first.evidence.clone(),
                ..cause(parts, first.says.clone(), basis, of)
            }
        })
        .collect();
    // The use of the server's time without a stated reason is not a cause.
    let is_place = |part: &Part| ![Part::Rest, Part::Working, Part::Other].contains(part);
    let places = open.into_iter().filter(|(part, _)| is_place(part));
    causes.extend(places.map(|(part, _)| {
        let evidence = pair.work().into_iter().filter(|_| part == Part::Cpu).collect();
        let says = place(pair, part);
        Cause { evidence, ..cause(parts, says, Basis::Place, vec![part]) }
    }));
    causes.sort_by(|one, other| other.share.abs().total_cmp(&one.share.abs()));
    let explained: f64 = causes.iter().map(|cause| cause.share).sum();
    causes.push(Cause {
        says: "unexplained".to_owned(),
        basis: Basis::Unexplained,
        share: 1.0 - explained,
        interval: None,
        parts: Vec::new(),
        evidence: Vec::new(),
        or: Vec::new(),
    });
    causes
}

/// Candidates that say the same or can't be told apart, and the parts that they take.
struct CauseGroup<'a> {
    basis: Basis,
    candidates: Vec<&'a Candidate>,
    parts: Vec<Part>,
}

/// The candidates for the parts that grew, which `open` loses to them.
fn named<'a>(candidates: &'a [Candidate], open: &mut Vec<(Part, f64)>) -> Vec<CauseGroup<'a>> {
    let mut named: Vec<CauseGroup<'a>> = Vec::new();
    // First what is shown to act on a part; then those also have the parts that they are documented
    // to act on; then what is only documented.
    let rounds: [(Basis, Round); 3] = [
        (Basis::Shown, |candidate, part, _| candidate.shown.contains(&part)),
        (Basis::Shown, |candidate, part, named| named && candidate.documented.contains(&part)),
        (Basis::Documented, |candidate, part, _| candidate.documented.contains(&part)),
    ];
    for (basis, round) in rounds {
        open.retain(|(part, share)| {
            if *share < 0.0 {
                return true;
            }
            let is_named = |candidate: &Candidate| {
                named
                    .iter()
                    .any(|CauseGroup { candidates, .. }| candidates[0].says == candidate.says)
            };
            let fits = |one: &&Candidate| round(one, *part, is_named(one));
            let fits: Vec<&Candidate> = candidates.iter().filter(fits).collect();
            let Some(best) = fits.iter().map(|candidate| candidate.order).min() else {
                return true;
            };
            let fits: Vec<&Candidate> =
                fits.into_iter().filter(|candidate| candidate.order == best).collect();
            let is_same = |named: &&mut CauseGroup<'_>| {
                fits.iter().any(|fit| fit.says == named.candidates[0].says)
            };
            let same = named.iter_mut().find(is_same);
            match same {
                Some(same) => same.parts.push(*part),
                None => named.push(CauseGroup { basis, candidates: fits, parts: vec![*part] }),
            }
            false
        });
    }
    named
}

/// Whether a candidate takes a part, also by whether it is named already.
type Round = fn(&Candidate, Part, bool) -> bool;

fn cause(parts: &Parts, says: String, basis: Basis, of: Vec<Part>) -> Cause {
    let (share, error) = parts.share(&of);
    let half = half(error, parts.total.degrees, 1.0 - CONFIDENCE);
    let interval = Some(Interval { low: share - half, high: share + half });
    Cause { says, basis, share, interval, parts: of, evidence: Vec::new(), or: Vec::new() }
}

/// Where time went, in words, when nothing that changed is known to act there.
fn place(pair: Pair<'_>, part: Part) -> String {
    let rate = |capture: &Capture| capture.ended() / capture.seconds();
    match part {
        Part::Cpu => match pair.work() {
            Some(_) => {
                "another amount of work for each of them, by no change that was seen".to_owned()
            }
            None => "the same work takes another time on the CPUs".to_owned(),
        },
        Part::Load => format!(
            "another load: {} {}/s, then {}",
            significant(rate(pair.before)),
            pair.after.counted,
            significant(rate(pair.after))
        ),
        part => part.name().to_owned(),
    }
}

fn sentence(pair: Pair<'_>, causes: &Causes) -> String {
    let unit = pair.unit();
    let article = if unit.starts_with(['a', 'e', 'i', 'o', 'u']) { "An" } else { "A" };
    let ms = [&causes.time.before_s, &causes.time.after_s].map(|time_s| time(*time_s));
    let times = format!("{} in the server before, {} after", ms[0], ms[1]);
    let interval = causes.ratio_interval;
    if !causes.is_shown {
        return format!(
            "No difference is shown: {} {unit} took {times}, {} to {} times as long, which two \
             captures of the same server can have.",
            article.to_lowercase(),
            significant(interval.low),
            significant(interval.high)
        );
    }
    let how = format!(
        "{article} {unit} takes {} times as long ({} to {}; {times})",
        significant(causes.ratio),
        significant(interval.low),
        significant(interval.high)
    );
    let Some(first) = causes.causes.iter().find(|cause| cause.basis != Basis::Unexplained) else {
        return format!("{how}; nothing that the captures have explains it.");
    };
    let share = percent(first.share);
    match first.basis {
        Basis::Place => format!("{how}; {share} of that is {}.", first.says),
        _ => format!("{how}; {share} of that by {}.", first.says),
    }
}

/// `87 %`.
fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn notes(pair: Pair<'_>, causes: &Causes) -> Vec<String> {
    let mut notes = Vec::new();
    notes.push(format!(
        "{} {}/s before, {} after; captured for {:.0} s and {:.0} s.",
        significant(causes.rates.0),
        causes.counted,
        significant(causes.rates.1),
        pair.before.seconds(),
        pair.after.seconds()
    ));
    if causes.is_shown {
        notes.extend(pair.statement().map(|says| format!("Most of it in one statement: {says}.")));
    }
    for (which, capture) in [("before", pair.before), ("after", pair.after)] {
        notes.extend(
            capture.lost.iter().map(|lost| format!("The capture {which} ended early: {lost}.")),
        );
        notes.extend(capture.missing.iter().map(|missing| format!("Not seen {which}: {missing}.")));
    }
    notes.push(
        "The captures are not paired: whatever else differed between their times is in the \
         difference too."
            .to_owned(),
    );
    notes
}
