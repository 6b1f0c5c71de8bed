//! The way to memory: one request after the other, and how long it takes when others ask too.
//!
//! ```text
//!   asked ──waits──► bus free ──transfer──► free for the next
//!     └────────── waited + memory's own latency ──────────► ready
//! ```
//!
//! Latency rises with use because requests wait for each other (Keeton et al. 1998, tables 6, 7).

use std::collections::VecDeque;

use crate::preset::Memory;
use crate::ticks::{Ticks, ticks};

/// A bus with memory behind it.
#[derive(Debug, Clone)]
pub struct Bus {
    latency: Ticks,
    dirty_latency: Ticks,
    transfer: Ticks,
    message: Ticks,
    calendar: Calendar,
    /// When each of the requests on the bus is answered, oldest first; as many as it takes.
    answers: VecDeque<Ticks>,
    outstanding: usize,
    /// What it did so far.
    pub counts: BusCounts,
}

/// What a bus did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Lines read.
    pub reads: u64,
    /// Of those, answered by a cache that had changed the line.
    pub dirty: u64,
    /// Lines written back.
    pub writes: u64,
    /// Requests for a line to be given up by others, without reading it.
    pub upgrades: u64,
    /// Of those, where nobody else had it: what MSI asks and MESI does not.
    pub upgrades_alone: u64,
    /// Lines read ahead.
    pub prefetches: u64,
    /// Ticks for which it was taken.
    pub busy: Ticks,
    /// Ticks of all reads from asking to the answer (S2.10).
    pub waited: Ticks,
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
            calendar: Calendar::new(ticks(memory.transfer.max(memory.message))),
            answers: VecDeque::new(),
            outstanding: memory.outstanding as usize,
            counts: BusCounts::default(),
        }
    }

    /// Reads a line, asked for at `now`: when it can be used.
    pub fn read(&mut self, now: Ticks, is_dirty: bool) -> Ticks {
        let asked = self.admitted(now);
        let begun = self.take(asked, self.transfer);
        let latency = match is_dirty {
            true => self.dirty_latency,
            false => self.latency,
        };
        let ready = begun + latency;
        self.answers.push_back(ready);
        self.counts.reads += 1;
        self.counts.dirty += u64::from(is_dirty);
        self.counts.waited += ready - now;
        ready
    }

    /// Reads a line ahead of its use: when it is there. Nobody waits.
    pub fn prefetch(&mut self, now: Ticks) -> Ticks {
        self.counts.prefetches += 1;
        self.take(now, self.transfer) + self.latency
    }

    /// Writes a line back; nobody waits for it.
    pub fn write(&mut self, now: Ticks) {
        self.counts.writes += 1;
        self.take(now, self.transfer);
    }

    /// Asks others to give a line up: when they have.
    pub fn upgrade(&mut self, now: Ticks, is_alone: bool) -> Ticks {
        self.counts.upgrades += 1;
        self.counts.upgrades_alone += u64::from(is_alone);
        self.take(now, self.message) + self.message
    }

    /// When a request asked for at `now` may go on the bus.
    fn admitted(&mut self, now: Ticks) -> Ticks {
        if self.outstanding == 0 {
            self.answers.clear();
            return now;
        }
        while self.answers.front().is_some_and(|answer| *answer <= now) {
            self.answers.pop_front();
        }
        if self.answers.len() < self.outstanding {
            return now;
        }
        // The one that has to be answered first makes room.
        let at = self.answers.len() - self.outstanding;
        self.answers.drain(..at);
        self.answers.pop_front().unwrap_or(now).max(now)
    }

    /// Takes the bus for a while from when it is free: when that was.
    fn take(&mut self, now: Ticks, length: Ticks) -> Ticks {
        self.counts.busy += length;
        self.calendar.take(now, length)
    }
}

/// When the bus is taken, by stretches of time: a request that will come late, because it waits for
/// its address, keeps nobody from the bus before.
#[derive(Debug, Clone)]
struct Calendar {
    /// Number of the stretch and until when the bus is taken in it.
    stretches: Vec<(u64, Ticks)>,
    length: Ticks,
}

/// Stretches that are remembered.
const STRETCHES: usize = 512;

/// Transfers of a stretch.
const TRANSFERS: Ticks = 16;

impl Calendar {
    fn new(transfer: Ticks) -> Self {
        Self { stretches: vec![(0, 0); STRETCHES], length: (transfer * TRANSFERS).max(1) }
    }

    fn take(&mut self, now: Ticks, length: Ticks) -> Ticks {
        let mut number = now / self.length;
        loop {
            let (held, free) = &mut self.stretches[number as usize % STRETCHES];
            if *held > number {
                // Long ago, by a CPU that is far behind: who was on the bus then is forgotten.
                return now;
            }
            if *held < number {
                (*held, *free) = (number, 0);
            }
            let begun = now.max(*free).max(number * self.length);
            let end = (number + 1) * self.length;
            if begun < end {
                *free = begun + length;
                let over = *free;
                if over > end {
                    self.carry(number + 1, over);
                }
                return begun;
            }
            number += 1;
        }
    }

    /// A transfer goes on into the next stretch.
    fn carry(&mut self, number: u64, until: Ticks) {
        let (held, free) = &mut self.stretches[number as usize % STRETCHES];
        match (*held).cmp(&number) {
            std::cmp::Ordering::Less => (*held, *free) = (number, until),
            std::cmp::Ordering::Equal => *free = until.max(*free),
            std::cmp::Ordering::Greater => {}
        }
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
        // After them, nobody is in the way.
        assert_eq!(bus.read(500 * CYCLE, false), 600 * CYCLE);
        let BusCounts { reads, dirty, busy, waited, .. } = bus.counts;
        assert_eq!((reads, dirty, busy), (4, 1, 40 * CYCLE));
        assert_eq!(waited, (100 + 106 + 165 + 100) * CYCLE);
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

    /// A request of the future, whose address is not known yet, is no obstacle now.
    #[test]
    fn late_requests_keep_nobody_waiting() {
        let mut bus = bus(0);
        assert_eq!(bus.read(10_000 * CYCLE, false), 10_100 * CYCLE);
        assert_eq!(bus.read(0, false), 100 * CYCLE);
        assert_eq!(bus.read(10_001 * CYCLE, false), 10_110 * CYCLE);
        // A stretch has sixteen transfers; the seventeenth is in the next.
        let mut bus = self::bus(0);
        let begun: Vec<u64> = (0..40).map(|_| bus.read(0, false) / CYCLE - 100).collect();
        assert_eq!(begun, (0..40).map(|at| at * 10).collect::<Vec<u64>>());
    }
}
