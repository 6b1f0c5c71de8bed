//! Time that a logical CPU loses, and what it waits for.

use super::Cpu;
use super::accesses::Parts;
use crate::counts::Cause;
use crate::ticks::Ticks;

impl Cpu {
    /// Loses time.
    #[inline(always)]
    pub(super) fn lose(&mut self, cause: Cause, length: Ticks) {
        self.now += length;
        self.counts.stalled[cause as usize] += length;
    }

    /// Loses time to a cause; without one, it is what the nearest cache takes, which is
    /// computation.
    pub(super) fn lose_or_compute(&mut self, cause: Option<Cause>, length: Ticks) {
        match cause {
            Some(cause) => self.lose(cause, length),
            None => {
                self.now += length;
                self.counts.computation += length;
            }
        }
    }

    /// Loses time that nothing could overlap.
    pub(super) fn pay(&mut self, cause: Cause, length: Ticks) {
        self.lose(cause, length);
        self.counts.penalty[cause as usize] += length;
    }

    /// Waits for an access, without overlap. What the nearest cache takes is computation.
    pub(super) fn wait_for(&mut self, ready: Ticks, parts: &Parts) {
        for (cause, length) in parts.each() {
            self.lose(cause, length);
        }
        let rest = ready.saturating_sub(self.now);
        self.now += rest;
        self.counts.computation += rest;
    }

    /// A load is on its way, of the operation that began last.
    #[inline(always)]
    pub(super) fn fly(&mut self, done: Ticks, cause: Option<Cause>) {
        let number = self.counts.uops;
        if self.flying.is_empty() {
            self.room_to = number + self.window;
        }
        self.flying.push_back((number, done, cause));
    }

    /// Waits until fewer operations than the window holds are begun and not done. A window of 0
    /// has none that are.
    #[inline]
    pub(super) fn make_room(&mut self) {
        self.room_to = u64::MAX;
        while let Some((number, done, cause)) = self.flying.front().copied() {
            if done > self.now {
                self.room_to = number + self.window;
                if self.room_to > self.counts.uops {
                    return;
                }
                self.lose_or_compute(cause, done - self.now);
            }
            self.flying.pop_front();
        }
        self.room_to = u64::MAX;
    }

    /// Waits until then for loads on their way, the oldest first, as they would leave the window;
    /// what is left is what the nearest cache takes.
    pub(super) fn wait_until(&mut self, then: Ticks) {
        while self.now < then {
            let now = self.now;
            let next = self.flying.iter().find(|(_, done, _)| *done > now);
            let (done, cause) = next.map_or((then, None), |(_, done, cause)| (*done, *cause));
            self.lose_or_compute(cause, done.min(then) - now);
        }
    }

    /// Waits for everything that is on its way.
    pub(super) fn drain(&mut self) {
        while let Some((_, done, cause)) = self.flying.pop_front() {
            self.lose_or_compute(cause, done.saturating_sub(self.now));
        }
        if let Some(done) = self.storing.back().copied() {
            self.lose(Cause::Stores, done.saturating_sub(self.now));
        }
        self.storing.clear();
    }
}
