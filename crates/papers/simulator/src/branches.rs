//! Branch prediction: a target buffer, histories, and a static rule for branches not in the buffer.
//!
//! ```text
//!   branch ── in the target buffer? ──yes──► counter ≥ 2: taken
//!                    └──no──► backward: taken, forward: not (S2.15)
//!
//!   global       counters[address ⊕ the last outcomes of all branches]
//!   per-branch   the branch's own counters[its own last outcomes], both in its entry of the buffer
//! ```
//!
//! Per-branch histories are the two-level adaptive prediction of Yeh and Patt (1991), which the
//! Pentium Pro has. Counters of two bits by address and history (McFarling 1993, "gshare") stand
//! for predictors whose details are not public. Entries of shared counters may be tagged by thread,
//! as those of a Pentium 4 (Marr et al. 2002): threads then take them from each other, and never
//! train each other's.

use crate::cache::{Cache, Replacement, State};
use crate::core::Copies;
use crate::geometry::{Geometry, Sizes};
use crate::preset::{Branches, Histories, OWN_HISTORY_MAX, Preset, PresetError};

/// The branch predictor of a core.
#[derive(Debug, Clone)]
pub(crate) struct Predictor {
    targets: Copies<Cache<Pattern>>,
    /// Bits of a branch's own history; 0 where histories are global.
    own_history: u32,
    /// Outcomes of the last branches.
    histories: Copies<u64>,
    counters: Copies<Counters>,
    mask: u64,
}

/// Counters of two bits by address and history.
#[derive(Debug, Clone)]
enum Counters {
    /// Each address and history has its place, whichever thread it is of.
    Untagged(Vec<u8>),
    /// As many, found by a tag with the thread's number: sets, as the target buffer has them.
    Tagged(Cache<u8>),
}

/// Bits of an address and a history below the number of a thread.
const THREAD_SHIFT: u32 = 32;

impl Counters {
    /// The guess of a place for a thread, which then knows the outcome.
    fn guess(&mut self, thread: usize, place: u64, taken: bool) -> bool {
        match self {
            Self::Untagged(counters) => {
                let counter = &mut counters[place as usize];
                let before = std::mem::replace(counter, trained(*counter, taken));
                before >= 2
            }
            Self::Tagged(entries) => {
                let entry = place | (thread as u64) << THREAD_SHIFT;
                if entries.touch(entry) == State::Invalid {
                    entries.insert(entry, State::Shared, trained(UNKNOWN, taken));
                    return UNKNOWN >= 2;
                }
                let before = entries.data(entry).unwrap_or(UNKNOWN);
                entries.set_data(entry, trained(before, taken));
                before >= 2
            }
        }
    }
}

/// Not taken, with doubt: a branch of which nothing is known.
const UNKNOWN: u8 = 1;

/// A branch's last outcomes, and a counter of two bits for each value of these.
#[derive(Debug, Clone, Copy, Default)]
struct Pattern {
    history: u32,
    counters: u32,
}

const _: () = assert!(2 << OWN_HISTORY_MAX <= u32::BITS, "the counters of a branch are a word");

impl Pattern {
    /// Of a branch that was taken once: with every history it is taken, with doubt.
    const TAKEN: Self = Self { history: 1, counters: 0xAAAA_AAAA };

    /// Whether it is taken by its history.
    const fn guess(self) -> bool {
        self.counters >> (2 * self.history) & 0b10 != 0
    }

    /// After one more outcome, with a history of `bits`.
    const fn trained(self, taken: bool, bits: u32) -> Self {
        let shift = 2 * self.history;
        let counter = trained((self.counters >> shift & 0b11) as u8, taken) as u32;
        let counters = self.counters & !(0b11 << shift) | counter << shift;
        Self { history: (self.history << 1 | taken as u32) & ((1 << bits) - 1), counters }
    }
}

/// A counter of two bits after an outcome.
const fn trained(counter: u8, taken: bool) -> u8 {
    match (taken, counter) {
        (true, 0..3) => counter + 1,
        (false, 1..) => counter - 1,
        _ => counter,
    }
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
        let own_history = match branches.histories {
            Histories::Global => 0,
            Histories::PerBranch => history,
        };
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
        let one = match branches.history_tagged {
            false => Counters::Untagged(vec![UNKNOWN; counters as usize]),
            true => {
                let ways = u64::from(ways).min(counters) as u32;
                let entries = Geometry::of(Sizes { bytes: counters * 64, ways, line: 64 });
                let entries = entries.map_err(|why| PresetError::Impossible {
                    name: preset.name.clone(),
                    what: "the counters of branches".to_owned(),
                    why,
                })?;
                Counters::Tagged(Cache::new(entries, Replacement::Lru))
            }
        };
        Ok(Self {
            targets: Copies::new(targets_sharing, threads, &Cache::new(part, Replacement::Lru)),
            histories: Copies::new(crate::preset::Sharing::Duplicated, threads, &0),
            counters: Copies::new(history_sharing, threads, &one),
            mask: counters - 1,
            own_history,
        })
    }

    /// Predicts a branch and trains the predictor with its outcome.
    pub(crate) fn guess(&mut self, thread: usize, site: BranchSite, taken: bool) -> Guess {
        let BranchSite { address: at, backward } = site;
        let known = self.targets.of(thread).touch(at) != State::Invalid;
        let counted = match self.own_history {
            0 => self.guess_by_all(thread, at, taken),
            bits => self.guess_by_own(thread, at, taken, bits),
        };
        let guess = if known { counted } else { backward };
        if taken && !known {
            self.targets.of(thread).insert(at, State::Shared, Pattern::TAKEN);
        }
        Guess { wrong: guess != taken, no_target: !known }
    }

    /// By the outcomes of all branches.
    fn guess_by_all(&mut self, thread: usize, at: u64, taken: bool) -> bool {
        let history = self.histories.of(thread);
        let place = (at ^ *history) & self.mask;
        *history = *history << 1 | u64::from(taken);
        self.counters.of(thread).guess(thread, place, taken)
    }

    /// By the outcomes of the branch itself, if it is in the buffer.
    fn guess_by_own(&mut self, thread: usize, at: u64, taken: bool, bits: u32) -> bool {
        let targets = self.targets.of(thread);
        let Some(pattern) = targets.data(at) else { return false };
        targets.set_data(at, pattern.trained(taken, bits));
        pattern.guess()
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
            histories: Histories::Global,
            history_tagged: false,
        };
        Predictor::new(&preset, &branches).unwrap()
    }

    /// The same with four bits of each branch's own history.
    fn per_branch() -> Predictor {
        let mut predictor = predictor(512, Sharing::Shared);
        predictor.own_history = 4;
        predictor
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

    /// By hand: a branch enters when it is taken, with counters of 2 and a history of 0001. Taken
    /// again by counter 2 of 0001, which becomes 3; not taken at 0011, whose 2 becomes 1; taken at
    /// 0110, whose 2 becomes 3; and at 1101.
    #[test]
    fn a_branch_has_its_own_history() {
        let mut predictor = per_branch();
        let outcomes = [true, true, false, true, true];
        let wrong = outcomes.map(|taken| predictor.guess(0, site(64, true), taken).wrong);
        assert_eq!(wrong, [false, false, true, false, false]);
        let pattern = predictor.targets.of(0).data(64).unwrap();
        assert_eq!(pattern.history, 0b1011);
        let counter = |history: u32| pattern.counters >> (2 * history) & 3;
        let counters = [0b0001, 0b0011, 0b0110, 0b1101, 0b1111].map(counter);
        assert_eq!(counters, [3, 1, 3, 3, 2]);
    }

    /// Branches between that go at random make a global history useless, and leave a branch's own
    /// alone.
    #[test]
    fn own_histories_see_no_other_branch() {
        let wrong = |mut predictor: Predictor| {
            let mut random = workahead_walks::random::Random::of(7);
            let mut wrong = 0;
            for turn in 0..2000 {
                for other in 0..8 {
                    predictor.guess(0, site(1024 + other, true), random.number() & 1 == 1);
                }
                wrong += u32::from(predictor.guess(0, site(64, true), turn % 4 != 3).wrong);
            }
            wrong
        };
        let (global, own) = (wrong(predictor(512, Sharing::Shared)), wrong(per_branch()));
        assert!(own < 20 && global > 200, "{global} {own}");
    }

    /// Two threads at one place, which one always takes and the other never: tagged, the second
    /// finds nothing known of it, which is not taken; untagged, it finds what the first knows.
    #[test]
    fn tagged_entries_are_of_one_thread() {
        let guesses = |mut counters: Counters| {
            let turns = [(0, true), (0, true), (1, false), (0, true)];
            turns.map(|(thread, taken)| counters.guess(thread, 0, taken))
        };
        assert_eq!(guesses(Counters::Untagged(vec![UNKNOWN; 4])), [false, true, true, true]);
        assert_eq!(guesses(tagged(4)), [false, true, false, true]);
    }

    /// Four entries hold what one thread knows of four places. Where the sibling has four of its
    /// own, both find nothing.
    #[test]
    fn tagged_entries_are_shared() {
        let known = |threads: usize| {
            let mut counters = tagged(4);
            for turn in 0..12 {
                for thread in 0..threads {
                    counters.guess(thread, turn % 4, true);
                }
            }
            (0..4).filter(|place| counters.guess(0, *place, true)).count()
        };
        assert_eq!([known(1), known(2)], [4, 0]);
    }

    fn tagged(entries: u64) -> Counters {
        let sizes = Sizes { bytes: entries * 64, ways: 4, line: 64 };
        Counters::Tagged(Cache::new(Geometry::of(sizes).unwrap(), Replacement::Lru))
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
