//! Logical CPUs: when each operation begins and ends.
//!
//! ```text
//!   begin    width uops a cycle, shared by the threads of a core, in the order of time
//!   loads    wait for their address; go on side by side within the window of begun operations
//!   stores   wait in a buffer for their line, one after the other
//!   misses   as many on their way as the core has room for
//! ```
//!
//! This is the interval view of an out-of-order core (Karkhanis and Smith, ISCA 2004): it begins
//! operations at full width until the window is full of one that waits. A window of 0 waits for
//! every access: a machine without overlap, on which measured and non-overlapped cycles are the
//! same (A19).

mod accesses;
mod build;
mod shared;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::VecDeque;

use crate::branches::Predictor;
use crate::counts::{Cause, Counts};
use crate::hierarchy::Hierarchy;
use crate::line_history::LineHistory;
use crate::op::{After, Op};
use crate::prefetcher::Streams;
use crate::preset::{Preset, Sharing};
use crate::reservation_table::{Places, ReservationTable};
use crate::ticks::Ticks;
use crate::tlb::Tlb;

/// What was announced or touched, by 64 bytes. A set of 8,192 references has more than any other
/// schedule announces.
type Lines = LineHistory<{ 1 << 14 }>;

/// Which of a core's copies of a structure a thread has.
#[derive(Debug, Clone)]
pub(crate) struct Copies<T> {
    all: Vec<T>,
    /// Bits of a thread's number that count: none where all have the same.
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

/// A core with its threads.
#[derive(Debug, Clone)]
struct Core {
    /// When the front begins operations of one of several threads.
    front: ReservationTable,
    data_tlb: Copies<Tlb>,
    code_tlb: Option<Copies<Tlb>>,
    /// Lines on their way.
    outstanding: Copies<Places>,
    predictor: Option<Predictor>,
    streams: Option<Streams>,
}

/// A logical CPU.
#[derive(Debug, Clone)]
struct Cpu {
    /// Its core, and which of its threads it is.
    place: (usize, usize),
    /// When the next operation can begin.
    now: Ticks,
    /// When it began its first.
    begun: Option<Ticks>,
    /// When what was loaded last can be used.
    chain: Ticks,
    /// Loads on their way: number of the operation, when it is done, and what it waits for; none
    /// where that is the nearest cache.
    flying: VecDeque<(u64, Ticks, Option<Cause>)>,
    /// The number of the operation for which the oldest of them has to be done.
    room_to: u64,
    /// When each store in the buffer is done, oldest first.
    storing: VecDeque<Ticks>,
    announced: Lines,
    /// Lines touched lately, for machine clears.
    touched: Lines,
    space: u16,
    /// Whether it has something to do.
    busy: bool,
    /// Whether no sibling has.
    alone: bool,
    /// Its part of the window, and of the stores.
    window: u64,
    stores: usize,
    counts: Counts,
}

/// A machine that runs operations.
#[derive(Debug, Clone)]
pub struct Processor {
    cores: Vec<Core>,
    cpus: Vec<Cpu>,
    /// Caches and the bus.
    pub hierarchy: Hierarchy,
    preset: Preset,
    shape: Shape,
}

/// What of a preset every operation asks for.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Threads of a core.
    threads: usize,
    uop: Ticks,
    nearest: Ticks,
    nearest_code: Ticks,
    line: u64,
    code_line: u64,
    /// Caches between a core and memory, for data.
    depth: usize,
    /// Of a core; a thread may have a part of it.
    window: u64,
    /// Whether the threads of a core have one window together.
    window_shared: bool,
    stores: usize,
    stores_shared: bool,
    drops_hints: bool,
    clear: Ticks,
    clear_window: Ticks,
    data_tlb_cost: Ticks,
    code_tlb_cost: Ticks,
    mispredict: Ticks,
}

/// A CPU at work: with its core and what is behind it.
struct Turn<'p> {
    at: usize,
    cpu: &'p mut Cpu,
    core: &'p mut Core,
    hierarchy: &'p mut Hierarchy,
    shape: &'p Shape,
}

impl Processor {
    /// What it models.
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

    /// Lets a CPU do nothing until then.
    pub fn idle_until(&mut self, cpu: usize, then: Ticks) {
        let cpu = &mut self.cpus[cpu];
        cpu.now = cpu.now.max(then);
    }

    /// Gives a CPU to a thread of an address space.
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

    /// Whether a CPU has something to do from now on. Where it halts else, its siblings have what
    /// it leaves (Marr et al., Intel Technology Journal Q1 2002: single-task mode).
    pub fn set_busy(&mut self, cpu: usize, busy: bool) {
        self.cpus[cpu].busy = busy;
        let (core, _) = self.cpus[cpu].place;
        let threads = self.shape.threads;
        let cpus = &mut self.cpus[core * threads..(core + 1) * threads];
        let busy = cpus.iter().filter(|cpu| cpu.busy).count().max(1) as u32;
        let part_of = if self.preset.core.halts { busy } else { threads as u32 };
        let core = &self.preset.core;
        for cpu in cpus {
            cpu.alone = busy == 1;
            cpu.window = u64::from(core.window / core.window_sharing.parts(part_of));
            cpu.stores = (core.stores / core.stores_sharing.parts(part_of)) as usize;
        }
    }

    /// Lets a CPU wait for all that it began.
    pub fn drain(&mut self, cpu: usize) {
        self.cpus[cpu].drain();
    }

    /// What a CPU did so far; its last operations may still be on their way.
    #[must_use]
    pub fn counts(&self, cpu: usize) -> Counts {
        let Cpu { now, begun, counts, .. } = &self.cpus[cpu];
        Counts { ticks: begun.map_or(0, |begun| now - begun), ..*counts }
    }

    /// Does one thing on a CPU.
    #[inline(always)]
    pub fn run(&mut self, cpu: usize, op: Op) {
        match op {
            Op::Compute { uops } => drop(self.begin(cpu, uops)),
            Op::Load { address, bytes, after } => {
                self.begin(cpu, 1).load(address, after);
                if self.is_longer(address, bytes) {
                    self.rest_of(address, bytes, |one, line| {
                        one.turn(cpu).load(line, After::Nothing);
                    });
                }
            }
            Op::Store { address, bytes } => {
                self.begin(cpu, 1);
                self.store(cpu, address);
                if self.is_longer(address, bytes) {
                    self.rest_of(address, bytes, |one, line| one.store(cpu, line));
                }
            }
            Op::Announce { address, hint } => {
                let known = self.turn(cpu).announce(address);
                if hint {
                    self.begin(cpu, 1).hint(address, known);
                }
            }
            Op::Branch { at, taken, back } => {
                // What is not on its way any more is not waited for.
                self.cpus[cpu].room_to = 0;
                self.begin(cpu, 1).branch((at, back), taken);
            }
            Op::Fetch { address, bytes } => self.turn(cpu).fetch(address, bytes),
            Op::Pause { cycles } => {
                self.begin(cpu, 1).pause(cycles);
            }
            Op::System(_) => {}
        }
    }

    #[inline(always)]
    fn turn(&mut self, at: usize) -> Turn<'_> {
        let Self { cpus, cores, hierarchy, shape, .. } = self;
        let cpu = &mut cpus[at];
        let core = &mut cores[cpu.place.0];
        Turn { at, cpu, core, hierarchy, shape }
    }

    /// Begins operations: when the front is free, and the window has room.
    #[inline(always)]
    fn begin(&mut self, at: usize, uops: u32) -> Turn<'_> {
        if self.shape.window_shared {
            // What begins now counts as begun.
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
        if !self.cpus[at].alone {
            self.clear_siblings(at, address);
        }
        let Some(ready) = self.turn(at).store(address) else { return };
        if self.shape.stores_shared {
            self.make_shared_store(at);
        }
        self.cpus[at].storing.push_back(ready);
    }

    /// Whether bytes reach into another line.
    #[inline(always)]
    const fn is_longer(&self, address: u64, bytes: u16) -> bool {
        (address & (self.shape.line - 1)) + bytes as u64 > self.shape.line
    }

    /// The lines after the first of a run of bytes.
    #[inline(never)]
    fn rest_of(&mut self, address: u64, bytes: u16, mut each: impl FnMut(&mut Self, u64)) {
        let last = address + u64::from(bytes) - 1;
        let mut next = (address & !(self.shape.line - 1)) + self.shape.line;
        while next <= last {
            each(self, next);
            next += self.shape.line;
        }
    }
}
