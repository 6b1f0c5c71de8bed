//! Searches the bonus and the limit for a load (the paper's future work: "a helper thread mechanism
//! to automatically tune agg_bonus").
//!
//! ```text
//!        limit ▲   · · · · · · ·      1  every third bonus at a middle limit
//!              │   · · · ◇─○ · ·      2  every third limit at the best of them
//!              │   ●───●───◆───●      3  from there to the best neighbour, in steps of 2, then 1
//!              └──────────────────► bonus        both in powers of two; bonus 0 comes first
//! ```
//!
//! Step 2 is also taken at the best bonus with too long a delay: a lower limit shortens it.
//!
//! The caller runs its load by a proposal and reports the outcome; a setting with too long a delay
//! is worse than any other. Powers of two, since a load reacts to the order of magnitude: a time
//! slice, a working set, a queue. No setting is tried twice, so the search ends after at most as
//! many trials as there are settings.

use std::collections::{BTreeMap, BTreeSet};

use crate::{BONUS_MAX, Tunables};

/// Place in the grid: exponents of bonus and limit.
type Place = (usize, usize);

/// Bonuses: none, then from an eighth of a slice up to 1024 slices.
const BONUSES: usize = 15;
/// Limits: 1 to 1024.
const LIMITS: usize = 11;
/// The limit at which bonuses are compared first: 64.
const LIMIT_FIRST: usize = 6;
/// Of bonuses and limits, every fourth is tried first.
const STRIDE: usize = 3;

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The objective to maximise: throughput or a substitute.
    pub objective: f64,
    /// Delay of other threads before they ran, in nanoseconds: a high percentile.
    pub delay_ns: u64,
}

/// The search, one proposal at a time.
///
/// ```
/// use workahead_policy::{Outcome, Tunables, Tuner};
/// let mut tuner = Tuner::new(Tunables::default(), 4_000_000, 20_000_000);
/// while let Some(proposal) = tuner.proposal() {
///     let objective = 1.0 / (1.0 + proposal.bonus_ns.abs_diff(8_000_000) as f64);
///     tuner.learn(Outcome { objective, delay_ns: proposal.bonus_ns });
/// }
/// assert_eq!(tuner.best().unwrap().0.bonus_ns, 8_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct Tuner {
    base: Tunables,
    slice_ns: u64,
    delay_max_ns: u64,
    known: BTreeMap<Place, Outcome>,
    pending: Vec<Place>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Bonuses,
    Limits,
    /// Neighbours at this distance.
    Neighbours(usize),
    Done,
}

impl Tuner {
    /// A search for a load with time slices of `slice_ns`, in which others may wait at most
    /// `delay_max_ns`. Other parameters are those of `base`.
    #[must_use]
    pub fn new(base: Tunables, slice_ns: u64, delay_max_ns: u64) -> Self {
        let mut tuner = Self {
            base,
            slice_ns,
            delay_max_ns,
            known: BTreeMap::new(),
            pending: Vec::new(),
            phase: Phase::Bonuses,
        };
        tuner.pending = (0..BONUSES).step_by(STRIDE).map(|bonus| (bonus, LIMIT_FIRST)).collect();
        tuner.pending.reverse();
        tuner
    }

    /// The next trial; `None` when the search is over.
    #[must_use]
    pub fn proposal(&self) -> Option<Tunables> {
        self.pending.last().map(|place| self.tunables(*place))
    }

    /// Reports the outcome of the proposal. Ignored without one.
    pub fn learn(&mut self, outcome: Outcome) {
        let Some(place) = self.pending.pop() else { return };
        self.known.insert(place, outcome);
        while self.pending.is_empty() && self.phase != Phase::Done {
            self.turn();
        }
    }

    /// The best so far with its outcome; `None` before the first trial.
    #[must_use]
    pub fn best(&self) -> Option<(Tunables, Outcome)> {
        self.best_place().map(|place| (self.tunables(place), self.known[&place]))
    }

    /// Number of settings tried.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.known.len()
    }

    /// Starts the next phase when all settings of one are known.
    fn turn(&mut self) {
        let Some(best) = self.best_place() else { return };
        match self.phase {
            Phase::Bonuses => {
                self.phase = Phase::Limits;
                // A bonus with too long a delay may do with a lower limit.
                let fastest = self.best_by(|one, other| one.objective > other.objective);
                let bonuses: BTreeSet<usize> =
                    fastest.into_iter().chain([best]).map(|at| at.0).collect();
                let limits = || (0..LIMITS).step_by(STRIDE);
                self.ask(
                    bonuses.into_iter().flat_map(|bonus| limits().map(move |limit| (bonus, limit))),
                );
            }
            Phase::Limits => {
                self.phase = Phase::Neighbours(2);
                self.ask(neighbours(best, 2));
            }
            // The best hasn't moved.
            Phase::Neighbours(step) => {
                self.ask(neighbours(best, step));
                if self.pending.is_empty() {
                    self.phase = if step > 1 { Phase::Neighbours(step - 1) } else { Phase::Done };
                }
            }
            Phase::Done => {}
        }
    }

    fn ask(&mut self, places: impl Iterator<Item = Place>) {
        let known = &self.known;
        self.pending.extend(places.filter(|place| !known.contains_key(place)));
        self.pending.reverse();
    }

    /// The largest objective of those with allowed delay; if there are none, the smallest delay. Of
    /// equals the smallest bonus and limit, which disturb others least.
    fn best_place(&self) -> Option<Place> {
        let allowed = |outcome: &Outcome| outcome.delay_ns <= self.delay_max_ns;
        let better = |one: &Outcome, other: &Outcome| match (allowed(one), allowed(other)) {
            (true, true) => one.objective > other.objective,
            (false, false) => one.delay_ns < other.delay_ns,
            (one, _) => one,
        };
        self.best_by(better)
    }

    /// The first that is not beaten by another.
    fn best_by(&self, better: impl Fn(&Outcome, &Outcome) -> bool) -> Option<Place> {
        let mut places = self.known.iter();
        let first = places.next()?;
        let best =
            places.fold(first, |best, next| if better(next.1, best.1) { next } else { best });
        Some(*best.0)
    }

    fn tunables(&self, (bonus, limit): Place) -> Tunables {
        let eighth = self.slice_ns / 8;
        let bonus_ns = match bonus {
            0 => 0,
            power => eighth.saturating_mul(1 << (power - 1)).min(BONUS_MAX),
        };
        Tunables { bonus_ns, limit: 1 << limit, ..self.base }
    }
}

/// Places at a distance in one direction, or in both at once.
fn neighbours(place: Place, step: usize) -> impl Iterator<Item = Place> {
    let around = move |at: usize, count: usize| {
        [at.checked_sub(step), Some(at), Some(at + step).filter(|at| *at < count)]
            .into_iter()
            .flatten()
    };
    around(place.0, BONUSES)
        .flat_map(move |bonus| around(place.1, LIMITS).map(move |limit| (bonus, limit)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLICE: u64 = 4_000_000;

    /// Searches a surface over the exponents; returns the best found and the trials it took.
    fn search(delay_max: u64, surface: impl Fn(usize, usize) -> Outcome) -> (Place, usize) {
        let mut tuner = Tuner::new(Tunables::default(), SLICE, delay_max);
        let place = |tunables: &Tunables| {
            let bonus = match tunables.bonus_ns / (SLICE / 8) {
                0 => 0,
                eighths => eighths.ilog2() as usize + 1,
            };
            (bonus, tunables.limit.ilog2() as usize)
        };
        let mut tried = Vec::new();
        while let Some(proposal) = tuner.proposal() {
            let (bonus, limit) = place(&proposal);
            assert!(!tried.contains(&(bonus, limit)), "tried twice: {bonus} {limit}");
            tried.push((bonus, limit));
            tuner.learn(surface(bonus, limit));
        }
        assert_eq!(tuner.trials(), tried.len());
        (place(&tuner.best().unwrap().0), tried.len())
    }

    fn free(objective: f64) -> Outcome {
        Outcome { objective, delay_ns: 0 }
    }

    #[test]
    fn a_load_that_gains_nothing_keeps_plain_fair_queueing() {
        let (best, trials) = search(0, |_, _| free(1.0));
        assert_eq!(best, (0, 0));
        assert!(trials < 30, "{trials}");
    }

    #[test]
    fn delays_bound_the_search() {
        // More bonus is always better, and increases the delay: the largest allowed one.
        let surface =
            |bonus, _| Outcome { objective: bonus as f64, delay_ns: 1_000 * bonus as u64 };
        assert_eq!(search(7_000, surface).0.0, 7);
        // At the first limit every bonus delays others too long, at lower ones not.
        let surface = |bonus: usize, limit: usize| Outcome {
            objective: bonus.min(8) as f64 + 0.1 * limit as f64,
            delay_ns: if bonus == 0 { 0 } else { 1_000 * limit as u64 },
        };
        let (place, trials) = search(2_000, surface);
        assert_eq!(place, (8, 2));
        assert!(trials < 80, "{trials}");
        // None is allowed: the one with the least delay.
        let surface = |bonus, _| Outcome { objective: bonus as f64, delay_ns: 10 + bonus as u64 };
        assert_eq!(search(5, surface).0.0, 0);
    }

    #[test]
    fn without_a_proposal_nothing_is_learnt() {
        let mut tuner = Tuner::new(Tunables::default(), SLICE, 0);
        assert!(tuner.best().is_none());
        while tuner.proposal().is_some() {
            tuner.learn(free(1.0));
        }
        let best = tuner.best();
        tuner.learn(free(2.0));
        assert_eq!(tuner.best(), best);
    }

    proptest! {
        /// On surfaces with one top, ridged or flat far from it, the best found is within 5 % of
        /// the optimum.
        #[test]
        fn one_top_is_found(
            top in (0..BONUSES, 0..LIMITS),
            width in (2.0..6.0_f64, 2.0..6.0_f64),
            height in 0.0..2.0_f64,
        ) {
            let surface = |bonus: usize, limit: usize| {
                let x = (bonus as f64 - top.0 as f64) / width.0;
                let y = (limit as f64 - top.1 as f64) / width.1;
                1.0 + height * (-x * x - y * y).exp()
            };
            let (found, trials) = search(0, |bonus, limit| free(surface(bonus, limit)));
            prop_assert!(surface(found.0, found.1) >= 0.95 * (1.0 + height), "{found:?}");
            prop_assert!(trials < 80, "{trials}");
        }
    }
}
