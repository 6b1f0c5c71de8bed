//! Helpers that are slow, stop or die: the answer is the same, and the run ends.

mod helping;
mod posting;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use workahead_machine::cpus::CpuSet;
use workahead_machine::pin;

use super::run::run_loading;
use super::*;
use crate::Technique;
use crate::isa::Portable;
use crate::memory::Memory;
use crate::place::Place;
use crate::walk::{Row, Rows, Sink, Walk};

const ROWS: Row = 2000;

/// Every row asks for two cells of a table, one after the other, and emits their sum.
struct TwoCells<'a> {
    table: &'a [u64],
    /// The fault of a helper's copy when it starts a row; the main thread's has none.
    fault: &'a Fault,
    is_copy: bool,
}

/// The faults of the helper.
struct Fault {
    /// Calls of the helper so far.
    calls: AtomicU32,
    kind: Kind,
    /// Set when the main thread has emitted its last hit.
    done: Mutex<bool>,
    notified: Condvar,
    gave_up: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Takes a millisecond for each of its first loads: as many as the main thread needs for all.
    Slow,
    /// Stops at a load until the main thread has every hit.
    StopsAt(u32),
    /// Panics at a load.
    DiesAt(u32),
}

impl Fault {
    fn new(kind: Kind) -> Self {
        let (calls, gave_up) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { calls, kind, done: Mutex::new(false), notified: Condvar::new(), gave_up }
    }

    /// A load of the helper.
    fn happen(&self) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.kind {
            Kind::Slow if call < 50 => std::thread::sleep(Duration::from_millis(1)),
            Kind::StopsAt(at) if call == at => self.stop(),
            Kind::DiesAt(at) if call == at => std::panic::panic_any("the helper dies"),
            _ => {}
        }
    }

    /// Not for ever: a main thread that waits for the helper is to be a failed test, not a hang.
    fn stop(&self) {
        let patience = Duration::from_secs(20);
        let done = self.done.lock().unwrap();
        let waited = self.notified.wait_timeout_while(done, patience, |done| !*done).unwrap();
        self.gave_up.store(waited.1.timed_out(), Ordering::Relaxed);
    }
}

impl Clone for TwoCells<'_> {
    fn clone(&self) -> Self {
        Self { is_copy: true, ..*self }
    }
}

impl Walk for TwoCells<'_> {
    type Cursor = (Row, usize);
    type Hit = u64;
    type Asks = Place;

    fn start<M: Memory>(&mut self, row: Row, _: &mut M) -> (Self::Cursor, Place) {
        if self.is_copy {
            self.fault.happen();
        }
        let cell = row as usize * 2;
        ((row, cell), Place::of(&self.table[cell]))
    }

    fn step<M: Memory, S: Sink<u64>>(
        &mut self,
        (row, cell): &mut Self::Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let value = *memory.read(&self.table[*cell]);
        if cell.is_multiple_of(2) {
            *cell += 1;
            return Some(Place::of(&self.table[*cell]));
        }
        sink.emit(*row, value);
        None
    }
}

// SAFETY: the table is borrowed for as long as the walk exists.
unsafe impl Preloadable for TwoCells<'_> {}

/// Collects hits, and tells a stopped helper of the last.
struct Telling<'f> {
    hits: Vec<(Row, u64)>,
    fault: &'f Fault,
}

impl Sink<u64> for Telling<'_> {
    fn emit(&mut self, row: Row, hit: u64) {
        self.hits.push((row, hit));
        if self.hits.len() == ROWS as usize {
            *self.fault.done.lock().unwrap() = true;
            self.fault.notified.notify_all();
        }
    }
}

fn options(text: &str) -> Options {
    match text.parse().unwrap() {
        Technique::WorkAhead(options) => options,
        other => panic!("{other} has no set"),
    }
}

/// Runs all rows beside a helper with a fault; what it served, and how often it loaded.
fn run_beside(technique: &str, kind: Kind) -> (Option<HelperRun>, u32) {
    let table: Vec<u64> = (0..u64::from(ROWS) * 2).collect();
    let fault = &Fault::new(kind);
    let walk = &mut TwoCells { table: &table, fault, is_copy: false };
    let rows = &mut Rows::range(0..ROWS);
    let allowed: CpuSet = pin::affinity().unwrap();
    let placement = Placement { helper_cpu: allowed.iter().last().unwrap(), allowed: &allowed };
    let mut sink = Telling { hits: Vec::new(), fault };
    let served = if technique == "direct-helper" {
        run_direct(Portable, walk, rows, (64, Throttle::best()), placement, &mut sink).unwrap()
    } else {
        let how = (options(technique), placement);
        let load = |_| fault.happen();
        run_loading(Portable, (walk, rows), how, &mut sink, load).unwrap()
    };
    let mut hits = sink.hits;
    hits.sort_unstable();
    let expected = (0..ROWS).map(|row| (row, u64::from(row) * 2 + 1));
    assert!(hits.into_iter().eq(expected), "{technique}, {kind:?}: the hits");
    let gave_up = fault.gave_up.load(Ordering::Relaxed);
    assert!(!gave_up, "{technique}, {kind:?}: the main thread waits for the helper");
    (served, fault.calls.load(Ordering::Relaxed))
}

const UNLOCKED: [&str; 9] = [
    "work-ahead:size=32,wait=throttle",
    "work-ahead:size=32,direction=forward,wait=serialize",
    "work-ahead:size=128",
    "work-ahead:size=1,direction=forward",
    "work-ahead:size=7,wait=none",
    "work-ahead:size=7,states=apart",
    "work-ahead:size=64,wait=sleep,dedupe=helper",
    "work-ahead:size=1024,direction=forward,wait=none,dedupe=post",
    "direct-helper",
];
const LOCKED: &str = "work-ahead:size=64,guard=mutex";

#[test]
fn a_slow_helper_changes_nothing() {
    for technique in UNLOCKED.into_iter().chain([LOCKED]) {
        let (served, calls) = run_beside(technique, Kind::Slow);
        assert!(served.is_some(), "{technique}: it lived to report");
        assert!(calls > 0 || served.unwrap().report.entries_loaded == 0);
    }
}

#[test]
fn a_stopped_helper_is_not_waited_for() {
    for technique in UNLOCKED {
        for at in [0, 1, 100] {
            let (served, _) = run_beside(technique, Kind::StopsAt(at));
            assert!(served.is_some(), "{technique}: it lived to report");
        }
    }
}

#[test]
fn a_dead_helper_changes_nothing() {
    for technique in UNLOCKED.into_iter().chain([LOCKED]) {
        for at in [0, 100] {
            let (served, calls) = run_beside(technique, Kind::DiesAt(at));
            // It may not have come so far before the run was over.
            assert!(served.is_none() || calls <= at, "{technique}: a dead helper reports");
        }
    }
}

/// Emits a few hits, then panics.
struct Panicking(u32);

impl Sink<u64> for Panicking {
    fn emit(&mut self, _: Row, _: u64) {
        self.0 -= 1;
        assert!(self.0 > 0, "the main thread dies");
    }
}

#[test]
fn a_dead_main_thread_leaves_no_helper_behind() {
    let table: Vec<u64> = vec![0; ROWS as usize * 2];
    let allowed = pin::affinity().unwrap();
    let placement = Placement { helper_cpu: allowed.iter().last().unwrap(), allowed: &allowed };
    for technique in UNLOCKED.into_iter().chain([LOCKED]) {
        let technique: Technique = technique.parse().unwrap();
        let fault = Fault::new(Kind::StopsAt(u32::MAX));
        let died = std::panic::catch_unwind(|| {
            let walk = &mut TwoCells { table: &table, fault: &fault, is_copy: false };
            let (rows, sink) = (&mut Rows::range(0..ROWS), &mut Panicking(100));
            crate::technique::run(technique, Portable, walk, rows, placement, sink).is_ok()
        });
        assert!(died.is_err(), "{technique}: the panic is the caller's");
    }
}

#[test]
fn a_cpu_that_is_not_allowed_is_an_error_before_anything_runs() {
    let allowed = pin::affinity().unwrap();
    let none = CpuSet::from_iter([]);
    let placement = Placement { helper_cpu: allowed.first().unwrap(), allowed: &none };
    let (table, fault) = (vec![0; 8], Fault::new(Kind::Slow));
    for technique in ["work-ahead", "direct-helper"] {
        let technique: Technique = technique.parse().unwrap();
        let walk = &mut TwoCells { table: &table, fault: &fault, is_copy: false };
        let (rows, mut hits) = (&mut Rows::range(0..4), Vec::new());
        let run = crate::technique::run(technique, Portable, walk, rows, placement, &mut hits);
        assert!(run.is_err() && hits.is_empty() && rows.left() == 4, "{technique}");
    }
}
