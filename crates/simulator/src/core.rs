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
mod announced;
mod build;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::branches::Predictor;
use crate::calendar::{Calendar, Places};
use crate::counts::{Cause, Counts};
use crate::hierarchy::Hierarchy;
use crate::op::{After, Op};
use crate::prefetcher::Streams;
use crate::preset::{Preset, Sharing};
use crate::ticks::Ticks;
use crate::tlb::Tlb;

use announced::Announced;

/// Which of a core's copies of a structure a thread has.
#[derive(Debug, Clone)]
pub(crate) struct Copies<T>(Vec<T>);

impl<T: Clone> Copies<T> {
    pub(crate) fn new(sharing: Sharing, threads: u32, one: &T) -> Self {
        Self(vec![one.clone(); sharing.copies(threads) as usize])
    }

    #[inline(always)]
    pub(crate) fn of(&mut self, thread: usize) -> &mut T {
        let at = if self.0.len() == 1 { 0 } else { thread };
        &mut self.0[at]
    }
}

/// A core with its threads.
#[derive(Debug, Clone)]
struct Core {
    /// When the front begins operations of one of several threads.
    front: Calendar,
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
    /// When each store in the buffer is done, oldest first.
    storing: VecDeque<Ticks>,
    announced: Announced,
    /// Lines touched lately, for machine clears.
    touched: Announced,
    space: u16,
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
    uop: Ticks,
    nearest: Ticks,
    nearest_code: Ticks,
    line: u64,
    code_line: u64,
    window: u64,
    /// Whether the threads of a core have one window together.
    window_shared: bool,
    stores: usize,
    stores_shared: bool,
    clear: Ticks,
    clear_window: Ticks,
    data_tlb_cost: Ticks,
    code_tlb_cost: Ticks,
    mispredict: Ticks,
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
            let (core, thread) = self.place(cpu);
            let core = &mut self.cores[core];
            core.data_tlb.of(thread).clear();
            if let Some(tlb) = &mut core.code_tlb {
                tlb.of(thread).clear();
            }
        }
    }

    #[inline(always)]
    fn place(&self, cpu: usize) -> (usize, usize) {
        self.cpus[cpu].place
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
            Op::Compute { uops } => self.begin(cpu, uops),
            Op::Load { address, bytes, after } => {
                self.begin(cpu, 1);
                self.load(cpu, address, after);
                self.rest_of(address, bytes, |one, line| one.load(cpu, line, After::Nothing));
            }
            Op::Store { address, bytes } => {
                self.begin(cpu, 1);
                self.store(cpu, address);
                self.rest_of(address, bytes, |one, line| one.store(cpu, line));
            }
            Op::Announce { address, hint } => self.announce(cpu, address, hint),
            Op::Branch { at, taken, back } => self.branch(cpu, (at, back), taken),
            Op::Fetch { address, bytes } => self.fetch(cpu, address, bytes),
            Op::Pause { cycles } => self.pause(cpu, cycles),
        }
    }

    /// The lines after the first of a run of bytes.
    #[inline(always)]
    fn rest_of(&mut self, address: u64, bytes: u16, mut each: impl FnMut(&mut Self, u64)) {
        let last = address + u64::from(bytes.max(1)) - 1;
        let mut next = (address & !(self.line - 1)) + self.line;
        while next <= last {
            each(self, next);
            next += self.line;
        }
    }
}
