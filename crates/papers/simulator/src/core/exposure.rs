//! Memory-order machine clears: loads that a sibling's store overtakes (S4.15).
//!
//! ```text
//!   load     issued ├────────── exposed ──────────┤ retires, behind all loads before it
//!   store                    │ leaves its buffer: clears, for a load has read too early
//!   store                                             │ leaves later: clears nothing
//! ```
//!
//! A load is done out of order and retires in order (Zhou et al. 2005, section 3: "due to potential
//! out-of-order execution, modified shared variables can lead to accessing memory in an incorrect
//! order"; Intel SDM volume 2B, PAUSE: the clear comes "when exiting the loop"). CPUs run ahead of
//! each other, so that either of the two may be known first: each looks for the other.

use super::{Cpu, Processor};
use crate::counts::Cause;
use crate::line_history::LineHistory;
use crate::ticks::Ticks;

/// Lines remembered. An exposure is over within a few hundred cycles, in which no window holds as
/// many loads.
const PLACES: usize = 1024;

/// By line, when it was exposed.
pub(super) type Exposures = LineHistory<PLACES, Exposure>;

/// By line, when the last store to it left the store buffer.
pub(super) type Commits = LineHistory<PLACES>;

/// From when until when a load may have read too early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Exposure {
    /// It was issued.
    pub(super) from: Ticks,
    /// It and all loads before it are done.
    pub(super) until: Ticks,
}

impl Exposure {
    const fn holds(&self, when: Ticks) -> bool {
        self.from <= when && when < self.until
    }

    /// With an earlier load of the same line that meets it: exposed from the first to the last.
    fn with(self, before: Option<Self>) -> Self {
        match before {
            Some(Self { from, until }) if until >= self.from => {
                Self { from: from.min(self.from), until: until.max(self.until) }
            }
            _ => self,
        }
    }
}

impl Processor {
    /// Exposes a load to the stores of siblings.
    pub(super) fn expose(&mut self, at: usize, address: u64, exposure: Exposure) {
        let overtakes = |sibling: usize| {
            let commit = self.cpus[sibling].commits.last(address);
            sibling != at && commit.is_some_and(|when| exposure.holds(when))
        };
        let storing = self.siblings(at).find(|sibling| overtakes(*sibling));
        let exposures = &mut self.cpus[at].exposures;
        exposures.note(address, exposure.with(exposures.last(address)));
        if let Some(storing) = storing {
            self.clear_load(at, address);
            self.cpus[storing].clear_own(self.parameters.clear);
        }
    }

    /// A store that leaves its buffer at `commit` clears the core's pipeline if siblings have
    /// loads that read its line before and have not retired.
    pub(super) fn overtake(&mut self, at: usize, address: u64, commit: Ticks) {
        self.cpus[at].commits.note(address, commit);
        let mut cleared = false;
        for sibling in self.siblings(at) {
            let exposure = self.cpus[sibling].exposures.last(address);
            if sibling != at && exposure.is_some_and(|exposure| exposure.holds(commit)) {
                self.clear_load(sibling, address);
                cleared = true;
            }
        }
        if cleared {
            self.cpus[at].clear_own(self.parameters.clear);
        }
    }

    /// Clears a CPU at a fixed cost (S4.31); the load is issued again after it.
    fn clear_load(&mut self, at: usize, address: u64) {
        let Self { cpus, parameters, .. } = self;
        let cpu = &mut cpus[at];
        cpu.pay(Cause::Clear, parameters.clear);
        let again = Exposure { from: cpu.now, until: cpu.now + parameters.nearest };
        cpu.exposures.note(address, again);
    }
}

impl Cpu {
    /// The clear of the CPU that stored: the pipeline is that of the whole core.
    fn clear_own(&mut self, cost: Ticks) {
        self.counts.clears += 1;
        self.pay(Cause::Clear, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Dependence, Op};
    use crate::preset::tests::small;
    use crate::ticks::{CYCLE, cycles};

    const SLOT: u64 = 0;
    const FAR: u64 = 1 << 20;

    fn load(address: u64) -> Op {
        Op::Load { address, bytes: 4, after: Dependence::None }
    }

    /// Two threads with a window of 64 and 8 stores; the pages of both lines are known, and the
    /// line of `SLOT` is modified in the cache that they share. Returns it at cycle 1000.
    fn two() -> Processor {
        let mut preset = small();
        (preset.cores, preset.threads) = (1, 2);
        (preset.core.window, preset.core.stores, preset.core.pause_drains) = (64, 8, true);
        let mut processor = Processor::new(&preset).unwrap();
        processor.run(1, load(FAR + 4032));
        processor.run(1, Op::Store { address: SLOT, bytes: 4 });
        for cpu in 0..2 {
            processor.drain(cpu);
            processor.idle_until(cpu, 1000 * CYCLE);
        }
        processor
    }

    /// Clears of CPU 1, which stores to `SLOT` at a cycle after 1000, when CPU 0 has done `ops`.
    fn clears(ops: &[Op], stores_at: u64) -> u64 {
        let mut processor = two();
        ops.iter().for_each(|op| processor.run(0, *op));
        processor.idle_until(1, (1000 + stores_at) * CYCLE);
        processor.run(1, Op::Store { address: SLOT, bytes: 4 });
        processor.counts(1).clears
    }

    /// By hand: a load begins at 1000, is issued at 1001 and done at 1003, as L1 takes 2.
    #[test]
    fn a_load_is_exposed_until_it_is_done() {
        let mut processor = two();
        processor.run(0, load(SLOT));
        let exposure = processor.cpus[0].exposures.last(SLOT).unwrap();
        assert_eq!([exposure.from, exposure.until].map(cycles), [1001.0, 1003.0]);
        // A store behind it begins a cycle later and leaves at 1004; one before it leaves at 1003,
        // when the load, a cycle later, is not done.
        assert_eq!(clears(&[load(SLOT)], 0), 0);
        let mut processor = two();
        processor.run(1, Op::Store { address: SLOT, bytes: 4 });
        processor.run(0, load(SLOT));
        assert_eq!(processor.counts(1).clears, 1);
    }

    /// By hand: a load from memory begins at 1000, is issued at 1001 and done at 1101; the one
    /// behind it is issued at 1002, done at 1004 and retires at 1101.
    #[test]
    fn a_load_retires_behind_those_before_it() {
        let ops = [load(FAR), load(SLOT)];
        let mut processor = two();
        ops.iter().for_each(|op| processor.run(0, *op));
        let exposure = processor.cpus[0].exposures.last(SLOT).unwrap();
        assert_eq!([exposure.from, exposure.until].map(cycles), [1002.0, 1101.0]);
        // Stores begin one cycle later than they are run, and take two: they leave at 1097 to 1101.
        assert_eq!([4, 97, 98].map(|late| clears(&ops, late)), [1, 1, 0]);
        // The other way round: the load that was exposed has retired before the miss began.
        assert_eq!(clears(&[load(SLOT), load(FAR)], 4), 0);
    }

    /// A PAUSE lets the loads before it retire: the load after it is exposed for its own time only.
    #[test]
    fn a_pause_leaves_nothing_exposed() {
        let ops = [load(FAR), Op::Pause { cycles: 10 }, load(SLOT)];
        let mut processor = two();
        ops.iter().for_each(|op| processor.run(0, *op));
        let exposure = processor.cpus[0].exposures.last(SLOT).unwrap();
        // The miss is done at 1101, the pause ends at 1111, the load is issued at 1112.
        assert_eq!([exposure.from, exposure.until].map(cycles), [1112.0, 1114.0]);
        assert_eq!([50, 105].map(|late| clears(&ops, late)), [0, 0]);
    }

    /// It makes no difference which of the two is run first.
    #[test]
    fn the_store_may_be_run_first() {
        let mut processor = two();
        processor.run(0, load(FAR));
        // Leaves at 1053, while a load that is run later has been waiting since 1002.
        processor.idle_until(1, 1050 * CYCLE);
        processor.run(1, Op::Store { address: SLOT, bytes: 4 });
        assert_eq!(processor.counts(1).clears, 0);
        processor.run(0, load(SLOT));
        assert_eq!(processor.counts(1).clears, 1);
        for cpu in 0..2 {
            assert_eq!(cycles(processor.counts(cpu).stalled[Cause::Clear as usize]), 200.0);
        }
    }

    /// A load that was cleared is issued again: the next store of a row of them clears nothing.
    #[test]
    fn a_cleared_load_is_issued_again() {
        let mut processor = two();
        [load(FAR), load(SLOT)].iter().for_each(|op| processor.run(0, *op));
        processor.idle_until(1, 1010 * CYCLE);
        for _ in 0..3 {
            processor.run(1, Op::Store { address: SLOT, bytes: 4 });
        }
        assert_eq!(processor.counts(1).clears, 1);
    }
}
