//! Logical CPUs: when each operation begins and ends.
//!
//! ```text
//!   begin    width uops a cycle, shared by the threads of a core, in the order of time
//!   loads    wait for their address; overlap within the window of operations in flight
//!   stores   wait in a buffer for their line, or for a buffer that gathers its stores, one after
//!            the other
//!   misses   as many outstanding as the core has room for
//! ```
//!
//! This is the interval model of an out-of-order core (Karkhanis and Smith, ISCA 2004): it begins
//! operations at full width until a waiting operation has filled the window. A window of 0 waits
//! for every access: a machine without overlap, on which measured and non-overlapped cycles are the
//! same (A19).

mod accesses;
mod build;
mod combining;
mod exposure;
mod fetch;
mod shared;
mod slots;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::VecDeque;

use crate::branches::{BranchSite, Predictor};
use crate::counts::{Cause, Counts};
use crate::hierarchy::Hierarchy;
use crate::line_history::LineHistory;
use crate::op::{Dependence, Op};
use crate::prefetcher::Streams;
use crate::preset::{Preset, Sharing};
use crate::reservation_table::{ReservationTable, SlotReservations};
use crate::ticks::Ticks;
use crate::tlb::Tlb;

use combining::CombiningBuffers;
use exposure::{Commits, Exposures};
use fetch::CodeRange;
use slots::Slots;

/// Times of announcements by 64-byte line. A set of 8,192 references has more than any other
/// schedule announces.
type Lines = LineHistory<{ 1 << 14 }>;

/// Instances of a core's structure, one for each thread or one for all of them.
#[derive(Debug, Clone)]
pub(crate) struct Copies<T> {
    all: Vec<T>,
    /// Bits of a thread's number that select the instance: none where all share one.
    mask: usize,
}

impl<T: Clone> Copies<T> {
    pub(crate) fn new(sharing: Sharing, threads: u32, one: &T) -> Self {
        let copies = sharing.copies(threads) as usize;
        let mask = if copies == 1 { 0 } else { usize::MAX };
        Self { all: vec![one.clone(); copies], mask }
    }

    #[inline(always)]
    pub(crate) fn of(&mut self, thread: usize) -> &mut T {
        &mut self.all[thread & self.mask]
    }
}

/// A physical core.
#[derive(Debug, Clone)]
struct Core {
    /// Reservations of the front end, which threads of a core share.
    front: ReservationTable,
    data_tlb: Copies<Tlb>,
    code_tlb: Option<Copies<Tlb>>,
    /// Page walks, of all threads.
    walkers: SlotReservations,
    /// Outstanding line fills.
    outstanding: Copies<SlotReservations>,
    /// Of stores, where these have buffers of their own.
    combining: Option<Copies<CombiningBuffers>>,
    predictor: Option<Predictor>,
    streams: Option<Streams>,
}

/// A load that has begun and is not done.
#[derive(Debug, Clone, Copy)]
struct LoadInFlight {
    /// Number of its operation.
    number: u64,
    /// Its number among loads.
    load: u64,
    done: Ticks,
    /// The cause of its wait; `None` for the nearest cache.
    cause: Option<Cause>,
}

/// A logical CPU.
#[derive(Debug, Clone)]
struct Cpu {
    /// Its core, and its thread number within it.
    place: (usize, usize),
    /// Earliest start of the next operation.
    now: Ticks,
    /// Start of its first operation.
    begun: Option<Ticks>,
    /// When the value loaded last can be used.
    loaded: Ticks,
    /// Loads in flight, oldest first.
    in_flight: VecDeque<LoadInFlight>,
    /// Number of the operation that can't begin before the oldest of them is done.
    room_to: u64,
    /// Number of the load that can't.
    load_room_to: u64,
    /// Completion times of the stores in the buffer, oldest first.
    store_buffer: VecDeque<Ticks>,
    announced: Lines,
    /// When all loads so far are done: none after them retires before.
    retired: Ticks,
    /// Cycles in which its operations begin and retire.
    slots: Slots,
    /// Lines of its loads, for machine clears.
    exposures: Exposures,
    /// Lines of its stores, for the same.
    commits: Commits,
    space: u16,
    /// Whether it has a thread to run.
    busy: bool,
    /// Whether no sibling is busy.
    alone: bool,
    /// Its share of the window, of the load buffer, and of the store buffer.
    window: u64,
    loads: u64,
    stores: usize,
    counts: Counts,
}

/// A machine that executes operations.
#[derive(Debug, Clone)]
pub struct Processor {
    cores: Vec<Core>,
    cpus: Vec<Cpu>,
    /// Caches and the bus.
    pub hierarchy: Hierarchy,
    preset: Preset,
    parameters: CoreParameters,
}

/// The parameters that every operation needs.
#[derive(Debug, Clone, Copy)]
struct CoreParameters {
    /// Threads of a core.
    threads: usize,
    uop: Ticks,
    nearest: Ticks,
    nearest_code: Ticks,
    line: u64,
    code_line: u64,
    /// Micro-operations of a line of the nearest cache for code; 0 where it holds bytes.
    code_uops: u64,
    /// Whether only misses of that cache are translated.
    code_tlb_on_misses: bool,
    /// Caches between a core and memory, for data.
    depth: usize,
    /// Of a core; a thread may have a share of it.
    window: u64,
    /// Whether the threads of a core share one window.
    window_shared: bool,
    /// Of a core; a thread may have a share of it.
    loads: u64,
    loads_shared: bool,
    stores: usize,
    stores_shared: bool,
    drops_hints: bool,
    pause_drains: bool,
    clear: Ticks,
    data_tlb_cost: Ticks,
    code_tlb_cost: Ticks,
    mispredict: Ticks,
}

/// A logical CPU that executes an operation, with its core and the caches.
struct CpuContext<'p> {
    at: usize,
    cpu: &'p mut Cpu,
    core: &'p mut Core,
    hierarchy: &'p mut Hierarchy,
    parameters: &'p CoreParameters,
}

impl Processor {
    /// The modelled machine.
    #[must_use]
    pub fn preset(&self) -> &Preset {
        &self.preset
    }

    /// When a CPU can begin its next operation.
    #[inline(always)]
    #[must_use]
    pub fn now(&self, cpu: usize) -> Ticks {
        self.cpus[cpu].now
    }

    /// Leaves a CPU idle until a time.
    pub fn idle_until(&mut self, cpu: usize, then: Ticks) {
        let cpu = &mut self.cpus[cpu];
        cpu.now = cpu.now.max(then);
    }

    /// Switches a CPU to a thread of an address space.
    pub fn switch_to(&mut self, cpu: usize, space: u16) {
        let before = std::mem::replace(&mut self.cpus[cpu].space, space);
        if before != space && self.preset.tlb.flushed {
            let (core, thread) = self.cpus[cpu].place;
            let core = &mut self.cores[core];
            core.data_tlb.of(thread).clear();
            if let Some(tlb) = &mut core.code_tlb {
                tlb.of(thread).clear();
            }
        }
    }

    /// Sets whether a CPU has a thread to run. Where an idle CPU halts, its siblings get its share
    /// of split structures (Marr et al., Intel Technology Journal Q1 2002: single-task mode).
    pub fn set_busy(&mut self, cpu: usize, busy: bool) {
        self.cpus[cpu].busy = busy;
        let (core, _) = self.cpus[cpu].place;
        let threads = self.parameters.threads;
        let cpus = &mut self.cpus[core * threads..(core + 1) * threads];
        let busy = cpus.iter().filter(|cpu| cpu.busy).count().max(1) as u32;
        let part_of = if self.preset.core.halts { busy } else { threads as u32 };
        let core = &self.preset.core;
        for cpu in cpus {
            cpu.alone = busy == 1;
            cpu.window = u64::from(core.window / core.window_sharing.parts(part_of));
            // A buffer without entries in its description has as many as the window.
            cpu.loads = match core.loads {
                0 => u64::MAX,
                loads => u64::from(loads / core.loads_sharing.parts(part_of)),
            };
            cpu.stores = (core.stores / core.stores_sharing.parts(part_of)) as usize;
        }
    }

    /// Waits for all operations of a CPU to finish.
    pub fn drain(&mut self, cpu: usize) {
        self.cpus[cpu].drain();
    }

    /// Counts of a CPU so far; its last operations may still be in flight.
    #[must_use]
    pub fn counts(&self, cpu: usize) -> Counts {
        let Cpu { now, begun, counts, .. } = &self.cpus[cpu];
        Counts { ticks: begun.map_or(0, |begun| now - begun), ..*counts }
    }

    /// Executes one operation on a CPU.
    #[inline(always)]
    pub fn run(&mut self, cpu: usize, op: Op) {
        match op {
            Op::Compute { uops } => self.begin(cpu, uops).retire(uops),
            Op::Load { address, bytes, after } => {
                if self.parameters.loads_shared {
                    self.make_shared_load_room(cpu);
                }
                let mut turn = self.begin(cpu, 1);
                let exposure = turn.load(address, after);
                turn.retire(1);
                if !self.cpus[cpu].alone {
                    self.expose(cpu, address, exposure);
                }
                if self.is_longer(address, bytes) {
                    self.rest_of(address, bytes, |one, line| {
                        one.turn(cpu).load(line, Dependence::None);
                    });
                }
            }
            Op::Store { address, bytes } => {
                self.begin(cpu, 1).retire(1);
                self.store(cpu, address);
                if self.is_longer(address, bytes) {
                    self.rest_of(address, bytes, |one, line| one.store(cpu, line));
                }
            }
            Op::Announce { address, hint } => {
                let known = self.turn(cpu).announce(address);
                if hint {
                    let mut turn = self.begin(cpu, 1);
                    turn.retire(1);
                    turn.hint(address, known);
                }
            }
            Op::Branch { at, taken, back } => {
                // Loads that are done are not waited for.
                self.cpus[cpu].room_to = 0;
                let site = BranchSite { address: at, backward: back };
                let mut turn = self.begin(cpu, 1);
                turn.retire(1);
                turn.branch(site, taken);
            }
            Op::Fetch { address, bytes, density } => {
                self.turn(cpu).fetch(CodeRange { address, bytes, density });
            }
            Op::Pause { cycles } => {
                let mut turn = self.begin(cpu, 1);
                turn.retire(1);
                turn.pause(cycles);
            }
            Op::Idle { cycles } => self.turn(cpu).idle(cycles),
            Op::System(_) => {}
        }
    }

    #[inline(always)]
    fn turn(&mut self, at: usize) -> CpuContext<'_> {
        let Self { cpus, cores, hierarchy, parameters, .. } = self;
        let cpu = &mut cpus[at];
        let core = &mut cores[cpu.place.0];
        CpuContext { at, cpu, core, hierarchy, parameters }
    }

    /// Begins operations once the front end is free and the window has room.
    #[inline(always)]
    fn begin(&mut self, at: usize, uops: u32) -> CpuContext<'_> {
        if self.parameters.window_shared {
            // An operation that begins now counts as begun.
            self.cpus[at].count(uops);
            self.make_shared_room(at);
            let mut turn = self.turn(at);
            turn.take_front(uops);
            return turn;
        }
        let mut turn = self.turn(at);
        turn.cpu.count(uops);
        if turn.cpu.counts.uops >= turn.cpu.room_to {
            turn.cpu.make_room();
        }
        turn.take_front(uops);
        turn
    }

    /// Writes to the line of an address.
    #[inline(always)]
    fn store(&mut self, at: usize, address: u64) {
        let commit = self.turn(at).store(address);
        if self.parameters.stores > 0 {
            if self.parameters.stores_shared {
                self.make_shared_store(at);
            }
            self.cpus[at].store_buffer.push_back(commit);
        }
        if !self.cpus[at].alone {
            self.overtake(at, address, commit);
        }
    }

    /// Whether an access crosses a line boundary.
    #[inline(always)]
    const fn is_longer(&self, address: u64, bytes: u16) -> bool {
        (address & (self.parameters.line - 1)) + bytes as u64 > self.parameters.line
    }

    /// The lines after the first of a range of bytes.
    #[inline(never)]
    fn rest_of(&mut self, address: u64, bytes: u16, mut each: impl FnMut(&mut Self, u64)) {
        let last = address + u64::from(bytes) - 1;
        let mut next = (address & !(self.parameters.line - 1)) + self.parameters.line;
        while next <= last {
            each(self, next);
            next += self.parameters.line;
        }
    }
}
