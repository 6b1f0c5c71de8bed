//! The memory bus: requests are served one at a time and wait for each other.
//!
//! ```text
//!   request ──waits──► bus free ──transfer──► free for the next
//!     └────────── waited + memory's own latency ──────────► ready
//! ```
//!
//! Latency rises with use because requests wait for each other (Keeton et al. 1998, tables 6, 7).

use crate::preset::Memory;
use crate::reservation_table::{ReservationTable, SlotReservations};
use crate::ticks::{Ticks, cycles, ticks};

/// A bus with memory behind it.
#[derive(Debug, Clone)]
pub struct Bus {
    latency: Ticks,
    dirty_latency: Ticks,
    transfer: Ticks,
    message: Ticks,
    taken: ReservationTable,
    /// Outstanding requests.
    requests: SlotReservations,
    /// Counts so far.
    pub counts: BusCounts,
}

/// Counts of a bus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Lines read.
    pub reads: u64,
    /// Reads served by a cache that had modified the line.
    pub dirty: u64,
    /// Lines written back.
    pub writes: u64,
    /// Requests to invalidate other copies of a line, without reading it.
    pub upgrades: u64,
    /// Upgrades of a line that no other cache had: MSI sends them, MESI does not.
    pub upgrades_alone: u64,
    /// Lines read ahead.
    pub prefetches: u64,
    /// Ticks during which the bus was occupied.
    pub busy: Ticks,
    /// Sum of the latencies of all reads (S2.10).
    pub waited: Ticks,
}

impl BusCounts {
    /// Mean cycles from a read request to its answer (S2.10; Keeton et al. 1998, table 7); `None`
    /// if nothing was read.
    ///
    /// The paper divides the cycles in which each processor had reads on the bus by their number.
    /// Where reads of one processor overlap, that counts their common time once and this counts it
    /// for each.
    #[must_use]
    pub fn memory_latency(&self) -> Option<f64> {
        (self.reads > 0).then(|| cycles(self.waited) / self.reads as f64)
    }

    /// Fraction of `time` in which the bus was occupied (S2.11; table 6); `None` if `time` is 0.
    ///
    /// Not doubled: the paper does so because its counters saw half of the time in which the bus
    /// was occupied, and the model sees all of it.
    #[must_use]
    pub fn utilisation(&self, time: Ticks) -> Option<f64> {
        (time > 0).then(|| self.busy as f64 / time as f64)
    }
}

impl Bus {
    /// Idle.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self {
            latency: ticks(memory.latency),
            dirty_latency: ticks(memory.dirty_latency),
            transfer: ticks(memory.transfer),
            message: ticks(memory.message),
            taken: ReservationTable::default(),
            requests: SlotReservations::new(memory.outstanding as usize, ticks(memory.latency)),
            counts: BusCounts::default(),
        }
    }

    /// Reads a line requested at `now`; returns when it can be used.
    pub fn read(&mut self, now: Ticks, is_dirty: bool) -> Ticks {
        let requested = self.requests.free_from(now);
        let begun = self.take(requested, self.transfer);
        let latency = match is_dirty {
            true => self.dirty_latency,
            false => self.latency,
        };
        let ready = begun + latency;
        self.requests.take(requested, ready);
        self.counts.reads += 1;
        self.counts.dirty += u64::from(is_dirty);
        self.counts.waited += ready - now;
        ready
    }

    /// Prefetches a line; returns when it arrives. No thread waits for it.
    pub fn prefetch(&mut self, now: Ticks) -> Ticks {
        self.counts.prefetches += 1;
        self.take(now, self.transfer) + self.latency
    }

    /// Writes a line back; no thread waits for it.
    pub fn write(&mut self, now: Ticks) {
        self.counts.writes += 1;
        self.take(now, self.transfer);
    }

    /// Invalidates the other copies of a line; returns when that is done.
    pub fn upgrade(&mut self, now: Ticks, is_alone: bool) -> Ticks {
        self.counts.upgrades += 1;
        self.counts.upgrades_alone += u64::from(is_alone);
        self.take(now, self.message) + self.message
    }

    /// Occupies the bus for `length` at the first free moment from `now` on; returns when that
    /// begins.
    fn take(&mut self, now: Ticks, length: Ticks) -> Ticks {
        self.counts.busy += length;
        self.taken.take(now, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Protocol;
    use crate::ticks::CYCLE;

    fn bus(outstanding: u32) -> Bus {
        Bus::new(&Memory {
            latency: 100.0,
            transfer: 10.0,
            message: 2.0,
            outstanding,
            dirty_latency: 150.0,
            protocol: Protocol::Mesi,
        })
    }

    #[test]
    fn requests_wait_for_each_other() {
        let mut bus = bus(0);
        assert_eq!(bus.read(0, false), 100 * CYCLE);
        // The bus is taken for 10 cycles by the first, for 10 more by the second.
        assert_eq!(bus.read(4 * CYCLE, false), 110 * CYCLE);
        assert_eq!(bus.read(5 * CYCLE, true), 170 * CYCLE);
        // After them, the bus is free.
        assert_eq!(bus.read(500 * CYCLE, false), 600 * CYCLE);
        let BusCounts { reads, dirty, busy, waited, .. } = bus.counts;
        assert_eq!((reads, dirty, busy), (4, 1, 40 * CYCLE));
        assert_eq!(waited, (100 + 106 + 165 + 100) * CYCLE);
        // A24: the reported latency is the mean of these four; the bus was occupied for 40 of 600
        // cycles.
        assert_eq!(bus.counts.memory_latency(), Some(471.0 / 4.0));
        assert_eq!(bus.counts.utilisation(600 * CYCLE), Some(40.0 / 600.0));
        assert_eq!(BusCounts::default().memory_latency(), None);
        assert_eq!(BusCounts::default().utilisation(0), None);
    }

    /// A request for a later time does not delay a request for an earlier one made afterwards.
    #[test]
    fn requests_are_answered_in_the_order_of_time() {
        for outstanding in [0, 1] {
            let mut bus = bus(outstanding);
            assert_eq!(bus.read(1000 * CYCLE, false), 1100 * CYCLE);
            assert_eq!(bus.read(0, false), 100 * CYCLE);
        }
    }

    /// A request that goes out late, because its address is known late, doesn't delay those before
    /// it.
    #[test]
    fn late_requests_leave_room() {
        let mut bus = bus(0);
        assert_eq!(bus.read(500 * CYCLE, false), 600 * CYCLE);
        assert_eq!(bus.read(0, false), 100 * CYCLE);
        // Between 10 and 500 is room for one that begins by 490.
        assert_eq!(bus.read(489 * CYCLE, false), 589 * CYCLE);
        assert_eq!(bus.read(485 * CYCLE, false), 610 * CYCLE);
        assert_eq!(bus.counts.busy, 40 * CYCLE);
    }

    #[test]
    fn requests_of_one_moment_go_one_after_the_other() {
        let mut bus = bus(0);
        let begun: Vec<u64> = (0..40).map(|_| bus.read(0, false) / CYCLE - 100).collect();
        assert_eq!(begun, (0..40).map(|at| at * 10).collect::<Vec<u64>>());
    }

    #[test]
    fn takes_as_many_requests_as_it_may() {
        let mut bus = bus(2);
        bus.read(0, false);
        bus.read(0, false);
        // The third waits for the first's answer at 100, the fourth for the second's at 110.
        assert_eq!(bus.read(0, false), 200 * CYCLE);
        assert_eq!(bus.read(0, false), 210 * CYCLE);
    }

    #[test]
    fn messages_keep_it_shorter_than_lines() {
        let mut bus = bus(0);
        assert_eq!(bus.upgrade(0, true), 2 * CYCLE);
        bus.write(0);
        assert_eq!(bus.read(0, false), 112 * CYCLE);
        assert_eq!((bus.counts.upgrades, bus.counts.upgrades_alone, bus.counts.writes), (1, 1, 1));
    }
}
