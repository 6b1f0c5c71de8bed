//! Structures that the threads of a core share: what one occupies is not available to the others.

use super::{Cpu, LoadInFlight, Processor};
use crate::counts::Cause;
use crate::ticks::Ticks;

impl Processor {
    /// Waits until the threads of a core occupy less than their shared window.
    pub(super) fn make_shared_room(&mut self, at: usize) {
        let held = |cpu: &Cpu, oldest: LoadInFlight| cpu.counts.uops - oldest.number + 1;
        self.share(at, self.parameters.window, held);
    }

    /// Waits until they occupy less than their shared load buffer, before a load begins.
    pub(super) fn make_shared_load_room(&mut self, at: usize) {
        let cpu = &mut self.cpus[at];
        cpu.begun.get_or_insert(cpu.now);
        let own = cpu.place;
        // The load that begins is not counted yet.
        let held = |cpu: &Cpu, oldest: LoadInFlight| {
            cpu.counts.loads - oldest.load + 1 + u64::from(cpu.place == own)
        };
        self.share(at, self.parameters.loads, held);
    }

    /// Waits until the threads of a core hold at most `limit` entries of a structure, with one for
    /// the operation that begins. A thread holds those from its oldest load in flight on.
    fn share(&mut self, at: usize, limit: u64, entries: impl Fn(&Cpu, LoadInFlight) -> u64) {
        loop {
            let cpu = &mut self.cpus[at];
            let now = cpu.now;
            while cpu.in_flight.front().is_some_and(|load| load.done <= now) {
                cpu.in_flight.pop_front();
            }
            // The operation that begins now needs a place, too.
            let mut held = u64::from(cpu.in_flight.is_empty());
            let mut first: Option<(Ticks, Option<Cause>)> = None;
            for sibling in self.siblings(at) {
                let cpu = &self.cpus[sibling];
                let Some(load) = cpu.oldest(now) else { continue };
                let LoadInFlight { done, cause, .. } = load;
                held += entries(cpu, load);
                let cause = if sibling == at { cause } else { Some(Cause::Sibling) };
                if first.is_none_or(|(earliest, _)| done < earliest) {
                    first = Some((done, cause));
                }
            }
            match first {
                Some((done, cause)) if held > limit => {
                    self.cpus[at].lose_or_compute(cause, done - now);
                }
                _ => return,
            }
        }
    }

    /// Waits until the shared store buffer has room.
    pub(super) fn make_shared_store(&mut self, at: usize) {
        loop {
            let now = self.cpus[at].now;
            let (mut held, mut first) = (0, Ticks::MAX);
            for sibling in self.siblings(at) {
                let waiting = self.cpus[sibling].store_buffer.iter().filter(|done| **done > now);
                for done in waiting {
                    held += 1;
                    first = first.min(*done);
                }
            }
            if held < self.parameters.stores {
                return;
            }
            self.cpus[at].lose(Cause::Stores, first - now);
        }
    }

    /// The logical CPUs of a CPU's core, including itself.
    #[inline(always)]
    pub(super) fn siblings(&self, at: usize) -> std::ops::Range<usize> {
        let (_, thread) = self.cpus[at].place;
        at - thread..at - thread + self.parameters.threads
    }
}

impl Cpu {
    /// The oldest load not done at `now`.
    fn oldest(&self, now: Ticks) -> Option<LoadInFlight> {
        self.in_flight.iter().find(|load| load.done > now).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Dependence, Op};
    use crate::preset::Sharing;
    use crate::preset::tests::small;
    use crate::ticks::CYCLE;

    /// Loads of one line that begin before the first is done, with a buffer of four of which the
    /// sibling has some.
    fn begun(sharing: Sharing, siblings: u64) -> usize {
        let mut preset = small();
        (preset.cores, preset.threads, preset.core.window) = (1, 2, 64);
        preset.core.window_sharing = Sharing::Duplicated;
        (preset.core.loads, preset.core.loads_sharing) = (4, sharing);
        let mut processor = Processor::new(&preset).unwrap();
        let load = |address| Op::Load { address, bytes: 4, after: Dependence::None };
        (0..siblings).for_each(|line| processor.run(1, load((1 << 20) + line * 64)));
        let all = (0..64).map(|word| {
            processor.run(0, load(word % 16 * 4));
            processor.now(0)
        });
        all.take_while(|now| *now < 100 * CYCLE).count()
    }

    #[test]
    fn load_buffers() {
        let all = [Sharing::Shared, Sharing::Duplicated, Sharing::Split];
        assert_eq!(all.map(|sharing| begun(sharing, 0)), [4, 4, 2]);
        assert_eq!(all.map(|sharing| begun(sharing, 2)), [2, 4, 2]);
    }
}
