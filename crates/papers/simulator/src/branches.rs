//! Branch prediction: a target buffer, histories, and a static rule for branches not in the buffer.
//!
//! ```text
//!   branch ── in the target buffer? ──yes──► counter[address ⊕ history] ≥ 2: taken
//!                    └──no──► backward: taken, forward: not (S2.15)
//! ```
//!
//! Counters of two bits by address and history (McFarling 1993, "gshare") stand for the two-level
//! predictors of the machines, whose details are not public.

use crate::cache::{Cache, Replacement, State};
use crate::core::Copies;
use crate::geometry::{Geometry, Sizes};
use crate::preset::{Branches, Preset, PresetError};

/// The branch predictor of a core.
#[derive(Debug, Clone)]
pub(crate) struct Predictor {
    targets: Copies<Cache>,
    /// Outcomes of the last branches.
    histories: Copies<u64>,
    counters: Copies<Vec<u8>>,
    mask: u64,
}

/// A branch instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchSite {
    pub(crate) address: u64,
    /// Whether its target lies before it.
    pub(crate) backward: bool,
}

/// The outcome of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) wrong: bool,
    /// The branch was not in the target buffer.
    pub(crate) no_target: bool,
}

impl Predictor {
    pub(crate) fn new(preset: &Preset, branches: &Branches) -> Result<Self, PresetError> {
        let threads = preset.threads;
        let Branches { targets, ways, history, history_sharing, targets_sharing, .. } = *branches;
        let bytes = u64::from(targets) * 64;
        let whole = Geometry::of(Sizes { bytes, ways, line: 64 });
        let whole = whole.map_err(|why| PresetError::Impossible {
            name: preset.name.clone(),
            what: "the target buffer".to_owned(),
            why,
        })?;
        let part = whole.split(targets_sharing.parts(threads));
        // Threads never share a history register, whether or not they share the counters.
        let counters = (1_u64 << history) / u64::from(history_sharing.parts(threads));
        let counters = 1_u64 << counters.max(1).ilog2();
        Ok(Self {
            targets: Copies::new(targets_sharing, threads, &Cache::new(part, Replacement::Lru)),
            histories: Copies::new(crate::preset::Sharing::Duplicated, threads, &0),
            counters: Copies::new(history_sharing, threads, &vec![1; counters as usize]),
            mask: counters - 1,
        })
    }

    /// Predicts a branch and trains the predictor with its outcome.
    pub(crate) fn guess(&mut self, thread: usize, site: BranchSite, taken: bool) -> Guess {
        let BranchSite { address: at, backward } = site;
        let targets = self.targets.of(thread);
        let known = targets.touch(at) != State::Invalid;
        let history = self.histories.of(thread);
        let counter = (at ^ *history) & self.mask;
        *history = *history << 1 | u64::from(taken);
        let counter = &mut self.counters.of(thread)[counter as usize];
        let guess = if known { *counter >= 2 } else { backward };
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        if taken && !known {
            targets.insert(at, State::Shared, ());
        }
        Guess { wrong: guess != taken, no_target: !known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Sharing;

    fn site(address: u64, backward: bool) -> BranchSite {
        BranchSite { address, backward }
    }

    fn predictor(targets: u32, history_sharing: Sharing) -> Predictor {
        let mut preset = crate::preset::tests::small();
        preset.threads = 2;
        let branches = Branches {
            targets,
            ways: 4,
            history: 8,
            mispredict: 10.0,
            history_sharing,
            targets_sharing: Sharing::Shared,
        };
        Predictor::new(&preset, &branches).unwrap()
    }

    #[test]
    fn unknown_branches_are_predicted_by_direction() {
        let mut predictor = predictor(512, Sharing::Shared);
        let wrong = |guess: Guess| (guess.wrong, guess.no_target);
        assert_eq!(wrong(predictor.guess(0, site(64, true), true)), (false, true));
        assert_eq!(wrong(predictor.guess(0, site(128, false), true)), (true, true));
        assert_eq!(wrong(predictor.guess(0, site(192, false), false)), (false, true));
        // Only taken branches enter the buffer.
        assert!(!predictor.guess(0, site(128, false), true).no_target);
        assert!(predictor.guess(0, site(192, false), false).no_target);
    }

    /// Taken three times, then not: eight bits of history tell where in the pattern one is.
    #[test]
    fn patterns_are_learnt() {
        let mut predictor = predictor(512, Sharing::Shared);
        let wrong: Vec<bool> =
            (0..400).map(|turn| predictor.guess(0, site(64, true), turn % 4 != 3).wrong).collect();
        assert!(wrong[200..].iter().all(|wrong| !wrong), "{wrong:?}");
    }

    /// More branches than the buffer holds, in a cycle: a larger one never misses more (A48).
    #[test]
    fn larger_buffers_miss_less() {
        let misses = |targets| {
            let mut predictor = predictor(targets, Sharing::Shared);
            let branches = (0..8000_u64).map(|turn| turn * 7919 % 1500);
            branches.filter(|at| predictor.guess(0, site(*at, false), true).no_target).count()
        };
        let counted: Vec<usize> = [512, 1024, 2048, 4096, 16384].map(misses).to_vec();
        assert!(counted.windows(2).all(|pair| pair[1] <= pair[0]), "{counted:?}");
        assert_eq!(counted[4], 1500);
        assert!(counted[0] > 2 * counted[4]);
    }

    /// One thread always takes the branch that the other never takes: they disturb each other in
    /// shared counters and not in their own.
    #[test]
    fn shared_counters_disturb() {
        let wrong = |sharing| {
            let mut predictor = predictor(512, sharing);
            predictor.guess(0, site(64, false), true);
            let turns = (0..200).map(|_| {
                // The histories differ, so the counters meet where they are equal: none taken.
                predictor.guess(1, site(64, false), false);
                predictor.guess(0, site(64, false), true)
            });
            turns.filter(|guess| guess.wrong).count()
        };
        assert!(wrong(Sharing::Duplicated) <= wrong(Sharing::Shared));
    }
}
