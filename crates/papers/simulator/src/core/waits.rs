//! Lost time of a logical CPU, by cause.

use super::accesses::AccessDelay;
use super::{Cpu, LoadInFlight};
use crate::counts::Cause;
use crate::ticks::Ticks;

impl Cpu {
    /// Adds lost time to a cause.
    #[inline(always)]
    pub(super) fn lose(&mut self, cause: Cause, length: Ticks) {
        self.now += length;
        self.counts.stalled[cause as usize] += length;
    }

    /// Adds lost time to a cause, or to computation where the nearest cache was waited for.
    pub(super) fn lose_or_compute(&mut self, cause: Option<Cause>, length: Ticks) {
        match cause {
            Some(cause) => self.lose(cause, length),
            None => {
                self.now += length;
                self.counts.computation += length;
            }
        }
    }

    /// Adds lost time that nothing could overlap.
    pub(super) fn pay(&mut self, cause: Cause, length: Ticks) {
        self.lose(cause, length);
        self.counts.penalty[cause as usize] += length;
    }

    /// Waits for an access, without overlap. The latency of the nearest cache is computation.
    pub(super) fn wait_for(&mut self, ready: Ticks, parts: &AccessDelay) {
        for (cause, length) in parts.each() {
            self.lose(cause, length);
        }
        let rest = ready.saturating_sub(self.now);
        self.now += rest;
        self.counts.computation += rest;
    }

    /// Puts the load of the operation that began last in flight.
    #[inline(always)]
    pub(super) fn issue_load(&mut self, done: Ticks, cause: Option<Cause>) {
        let load = LoadInFlight { number: self.counts.uops, load: self.counts.loads, done, cause };
        if self.in_flight.is_empty() {
            self.fill_up_to(load);
        }
        self.in_flight.push_back(load);
    }

    /// Sets how far operations can begin behind the oldest load in flight.
    #[inline(always)]
    const fn fill_up_to(&mut self, oldest: LoadInFlight) {
        self.room_to = oldest.number + self.window;
        self.load_room_to = oldest.load.saturating_add(self.loads);
    }

    /// Waits until the window has room for one more operation. With a window of 0, no operation
    /// stays in flight.
    #[inline]
    pub(super) fn make_room(&mut self) {
        self.leave_until(|cpu| cpu.room_to > cpu.counts.uops);
    }

    /// Waits until the load buffer has room for one more load.
    #[inline]
    pub(super) fn make_load_room(&mut self) {
        self.leave_until(|cpu| cpu.load_room_to > cpu.counts.loads);
    }

    /// Waits for loads, the oldest first, until there is room.
    #[inline(always)]
    fn leave_until(&mut self, is_room: impl Fn(&Self) -> bool) {
        while let Some(load) = self.in_flight.front().copied() {
            if load.done > self.now {
                self.fill_up_to(load);
                if is_room(self) {
                    return;
                }
                self.lose_or_compute(load.cause, load.done - self.now);
            }
            self.in_flight.pop_front();
        }
        (self.room_to, self.load_room_to) = (u64::MAX, u64::MAX);
    }

    /// Waits until `then` for loads in flight, the oldest first, as they would leave the window;
    /// the rest is the latency of the nearest cache.
    pub(super) fn wait_until(&mut self, then: Ticks) {
        while self.now < then {
            let now = self.now;
            let next = self.in_flight.iter().find(|load| load.done > now);
            let (done, cause) = next.map_or((then, None), |load| (load.done, load.cause));
            self.lose_or_compute(cause, done.min(then) - now);
        }
    }

    /// Waits for all loads in flight.
    pub(super) fn wait_for_loads(&mut self) {
        while let Some(load) = self.in_flight.pop_front() {
            self.lose_or_compute(load.cause, load.done.saturating_sub(self.now));
        }
        (self.room_to, self.load_room_to) = (u64::MAX, u64::MAX);
    }

    /// Waits for everything in flight.
    pub(super) fn drain(&mut self) {
        self.wait_for_loads();
        if let Some(done) = self.store_buffer.back().copied() {
            self.lose(Cause::Stores, done.saturating_sub(self.now));
        }
        self.store_buffer.clear();
    }
}
