//! Structures that the threads of a core share: what one occupies is not available to the others.

use super::{Cpu, LoadInFlight, Processor};
use crate::counts::Cause;
use crate::ticks::Ticks;

impl Processor {
    /// Waits until the threads of a core occupy less than their shared window.
    pub(super) fn make_shared_room(&mut self, at: usize) {
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
                let LoadInFlight { number, done, cause } = load;
                held += cpu.counts.uops - number + 1;
                let cause = if sibling == at { cause } else { Some(Cause::Sibling) };
                if first.is_none_or(|(earliest, _)| done < earliest) {
                    first = Some((done, cause));
                }
            }
            match first {
                Some((done, cause)) if held > self.parameters.window => {
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
