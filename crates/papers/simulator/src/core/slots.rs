//! Slots of a cycle: in which cycles micro-operations begin, and how many retire.
//!
//! ```text
//!   begin    ▓▓▓ ▓▓▓ ▓░░ ░░░ ░░░ ▓▓▓      a third of a cycle each, at a width of three
//!   retire       ▓▓░ ░░░ ░░░ ▓▓▓ ▓▓▓      in order, no sooner than a cycle later, behind loads
//! ```
//!
//! Both ends of the pipeline have the same width here, as on a Pentium 4 and a Pentium Pro: what
//! begins at full width retires at full width, so that retirement never adds to the time. It says
//! when (Keeton et al. 1998, figures 6 and 7).

use crate::counts::{Counts, RETIRED_MOST};
use crate::ticks::{CYCLE, Ticks};

/// The two ends of a CPU's pipeline.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slots {
    /// End of the last cycle in which an operation began.
    begun: Ticks,
    /// When the last operation has retired.
    retired: Ticks,
    /// End of the cycle in which it does, and how many retire in it so far.
    retiring: Ticks,
    count: u64,
}

impl Slots {
    /// Operations begin from `from` until `until`.
    #[inline(always)]
    pub(super) fn begin(&mut self, from: Ticks, until: Ticks, counts: &mut Counts) {
        if until > self.begun {
            let first = self.begun.max(from / CYCLE * CYCLE);
            self.begun = until.next_multiple_of(CYCLE);
            counts.begun_cycles += (self.begun - first) / CYCLE;
        }
    }

    /// Operations retire, each for `slot` ticks, the first no sooner than at `done`.
    #[inline(always)]
    pub(super) fn retire(&mut self, uops: u32, slot: Ticks, done: Ticks, counts: &mut Counts) {
        let (at, length) = (self.retired.max(done), Ticks::from(uops) * slot);
        self.retired = at + length;
        // Most retire in the same cycle as those before, or fill the next: without a division.
        if at == self.retiring && length <= CYCLE {
            self.end_cycle(counts);
            (self.retiring, self.count) = (at + CYCLE, u64::from(uops));
        } else if at + CYCLE >= self.retiring && self.retired <= self.retiring {
            self.count += u64::from(uops);
        } else {
            self.retire_from(at, uops, slot, counts);
        }
    }

    /// Operations retire from a time on, cycle by cycle.
    #[inline(never)]
    fn retire_from(&mut self, mut at: Ticks, uops: u32, slot: Ticks, counts: &mut Counts) {
        let mut left = u64::from(uops);
        while left > 0 {
            let end = (at / CYCLE + 1) * CYCLE;
            if end != self.retiring {
                self.end_cycle(counts);
                self.retiring = end;
            }
            let here = left.min((end - at).div_ceil(slot));
            (self.count, left) = (self.count + here, left - here);
            at += here * slot;
            // Of whole cycles the number is enough.
            let whole = left * slot / CYCLE;
            if whole > 1 {
                self.end_cycle(counts);
                let full = CYCLE / slot;
                counts.retired_cycles[place(full)] += whole - 1;
                (left, at) = (left - (whole - 1) * full, at + (whole - 1) * CYCLE);
                self.retiring = (at / CYCLE + 1) * CYCLE;
            }
        }
    }

    fn end_cycle(&mut self, counts: &mut Counts) {
        if self.count > 0 {
            counts.retired_cycles[place(self.count)] += 1;
        }
        self.count = 0;
    }
}

/// The place of a cycle in which a number of operations retire.
const fn place(count: u64) -> usize {
    if count as usize > RETIRED_MOST { RETIRED_MOST - 1 } else { count as usize - 1 }
}

#[cfg(test)]
mod tests {
    use crate::core::Processor;
    use crate::op::{Dependence, Op};
    use crate::preset::tests::small;

    /// A width of three: cycles in which operations begin, and those in which one, two and three
    /// retire. The last to retire are not counted before their cycle ends.
    fn ran(ops: &[Op]) -> (u64, [u64; 3]) {
        let mut preset = small();
        (preset.core.width, preset.core.window) = (3, 64);
        let mut processor = Processor::new(&preset).unwrap();
        ops.iter().for_each(|op| processor.run(0, *op));
        let counts = processor.counts(0);
        (counts.begun_cycles, counts.retired_cycles)
    }

    /// By hand: ten operations begin in cycles 0 to 3 and retire in 1 to 4, the last of them alone.
    #[test]
    fn computation_begins_and_retires_at_full_width() {
        assert_eq!(ran(&[Op::Compute { uops: 10 }]), (4, [0, 0, 3]));
        let one = Op::Compute { uops: 1 };
        assert_eq!(ran(&[one; 10]), (4, [0, 0, 3]));
        assert_eq!(ran(&[Op::Compute { uops: 10 }, Op::Idle { cycles: 20 }, one]), (5, [1, 0, 3]));
    }

    /// By hand: two operations begin with a load from memory, which is done at 120 1/3 with its
    /// translation. It retires alone in the two slots that are left of that cycle with the first
    /// of those behind it, and the rest later: 2, 3, 3, and the last two not yet.
    #[test]
    fn nothing_retires_behind_a_load() {
        let load = Op::Load { address: 0, bytes: 4, after: Dependence::None };
        let (begun, retired) = ran(&[load, Op::Compute { uops: 9 }]);
        assert_eq!((begun, retired), (4, [0, 1, 2]));
    }
}
