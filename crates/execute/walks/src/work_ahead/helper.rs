//! The helper thread: read a slot, load what it points to, move on. Nothing it does is seen.

use std::time::Duration;

use super::slots::{SharedSlots, Slots, dummy};
use super::throttle::Throttle;
use crate::place::{LINE_BYTES, References};

/// Which way the helper goes round the array, the main thread going forward (§4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// With the main thread: it "paves the way", and meets it in lock step when speeds are near.
    Forward,
    /// Against it: the two meet once a lap. The paper's choice.
    Backward,
}

/// The helper's action at a slot it has loaded before (§4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Loads it again and moves on.
    None,
    /// Executes `pauses` pause instructions between looks, until the slot changes. One on a
    /// Pentium 4; a pause costs 40 to 140 cycles since Skylake, so the count is calibrated.
    Spin {
        /// Pause instructions between two looks.
        pauses: u32,
    },
    /// Gives the core to its sibling between looks, until the slot changes.
    Throttle(Throttle),
    /// Sleeps between looks: considered and not adopted by the paper, since the time would need
    /// tuning and the operating system decides when it ends.
    Sleep(Duration),
}

/// Whether the helper skips lines it has just loaded (the paper's appendix: it lost).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// Loads every pointer.
    Nothing,
    /// Remembers the last lines loaded and skips them.
    RecentLines,
}

/// Lines a de-duplicating helper remembers: a power of two that fits L1 with room to spare.
pub const RECENT_LINES: usize = 512;

/// Commands to a helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Helper {
    /// Which way round.
    pub direction: Direction,
    /// The action at an unchanged slot.
    pub wait: Wait,
    /// Whether to de-duplicate.
    pub skip: Skip,
}

/// The counts of a helper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HelperReport {
    /// Entries whose pointers were loaded.
    pub entries_loaded: u64,
    /// Looks at an unchanged slot while waiting.
    pub waits: u64,
    /// Laps of the array.
    pub laps: u64,
}

impl Helper {
    /// Serves `slots` until the main thread finishes. `touch` loads an address: the real load in
    /// production, an observer in tests.
    ///
    /// The helper stores nothing that anyone else can see (its report and its copies are its own).
    pub fn run<A: References>(
        &self,
        slots: &Slots<A>,
        mut touch: impl FnMut(usize),
    ) -> HelperReport {
        let shared = slots.shared();
        let mut report = HelperReport::default();
        let mut last_seen = vec![dummy(); slots.entries()];
        let mut recent = vec![0usize; RECENT_LINES];
        let mut entry = 0;
        loop {
            if slots.is_finished() {
                return report;
            }
            // Only the first pointer tells whether a slot changed, and the dummy never does (§4.4).
            let first = match self.changed(slots, (&shared, entry), last_seen[entry], &mut report) {
                Some(first) => first,
                None => return report,
            };
            last_seen[entry] = first;
            self.load((&shared, entry), first, &mut recent, &mut touch);
            report.entries_loaded += 1;
            let laps = report.laps;
            entry = self.next(entry, slots.entries(), &mut report);
            if cfg!(loom) && report.laps > laps {
                // A helper that never waits would keep the model checker on one lap for ever.
                pause();
            }
        }
    }

    /// Loads every pointer of an entry, the padding too: no branch on how many are valid (§4.1).
    #[inline(always)]
    fn load<A: References>(
        &self,
        (shared, entry): (&SharedSlots<'_, A>, usize),
        first: usize,
        recent: &mut [usize],
        touch: &mut impl FnMut(usize),
    ) {
        let _held = shared.hold(entry);
        for k in 0..A::MOST {
            let address = if k == 0 { first } else { shared.pointer(entry, k) };
            let line = address / LINE_BYTES;
            match self.skip {
                Skip::RecentLines
                    if std::mem::replace(&mut recent[line % RECENT_LINES], line) == line => {}
                Skip::RecentLines | Skip::Nothing => touch(address),
            }
        }
    }

    /// Waits, if set to, until a slot's first pointer differs from the last one loaded there.
    /// `None` when the main thread finished meanwhile.
    #[inline(always)]
    fn changed<A: References>(
        &self,
        slots: &Slots<A>,
        (shared, entry): (&SharedSlots<'_, A>, usize),
        last: usize,
        report: &mut HelperReport,
    ) -> Option<usize> {
        loop {
            let first = {
                let _held = shared.hold(entry);
                shared.pointer(entry, 0)
            };
            if first != last || first == dummy() {
                return Some(first);
            }
            match self.wait {
                Wait::None => return Some(first),
                Wait::Spin { pauses } => {
                    for _ in 0..pauses {
                        pause();
                    }
                }
                Wait::Throttle(throttle) => throttle.wait(shared.address(entry)),
                Wait::Sleep(time) => std::thread::sleep(time),
            }
            report.waits += 1;
            if slots.is_finished() {
                return None;
            }
        }
    }

    #[inline(always)]
    fn next(&self, entry: usize, entries: usize, report: &mut HelperReport) -> usize {
        let (next, wrapped) = match self.direction {
            Direction::Forward if entry + 1 == entries => (0, true),
            Direction::Forward => (entry + 1, false),
            Direction::Backward if entry == 0 => (entries - 1, true),
            Direction::Backward => (entry - 1, false),
        };
        report.laps += u64::from(wrapped);
        next
    }
}

#[cfg(not(loom))]
#[inline(always)]
pub(super) fn pause() {
    std::hint::spin_loop();
}

/// Under the model checker a pause lets the other thread run, or the spin would never end.
#[cfg(loom)]
pub(super) fn pause() {
    loom::thread::yield_now();
}
