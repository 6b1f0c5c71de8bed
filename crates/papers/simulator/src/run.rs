//! Software threads on the logical CPUs of a machine, in the order of its time.
//!
//! ```text
//!   CPU 0   thread A ▓▓▓▓▓  C ▓▓▓▓▓  A …      a quantum each, in turn
//!   CPU 1   thread B ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!           always the CPU whose time is least does one operation
//! ```

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::Processor;
use crate::counts::Counts;
use crate::op::{Op, Script};
use crate::ticks::{Ticks, ticks};

/// A software thread.
pub struct Thread<'s> {
    /// Its instructions.
    pub script: Box<dyn Script + 's>,
    /// Its address space.
    pub space: u16,
    /// Whether the run ends without it: a helper, a program in the background.
    pub attends: bool,
}

/// Time slices of threads that share a CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slices {
    /// Cycles per slice.
    pub quantum: f64,
    /// Cycles of a context switch.
    pub switch: f64,
}

impl Default for Slices {
    /// 100 ms at 1 GHz, and a context switch without its misses.
    fn default() -> Self {
        Self { quantum: 1e8, switch: 3000.0 }
    }
}

/// The result of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadResult {
    /// Counts while it had a CPU.
    pub counts: Counts,
    /// When it finished.
    pub finished: Ticks,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    /// Counts by logical CPU.
    pub cpus: Vec<Counts>,
    /// By thread, in the given order.
    pub threads: Vec<ThreadResult>,
    /// When the last thread that the run waits for finished.
    pub ticks: Ticks,
}

struct Queue {
    /// Threads by number; the first is running.
    threads: VecDeque<usize>,
    slice_ends: Ticks,
    /// Counts of the CPU when the thread began its slice.
    before: Counts,
}

/// Runs threads to their end: each on the CPU of its place in `placement`, those of one CPU in
/// turn. Once `stop` is set it returns at the next operation; what it returns then is of the part
/// that ran.
///
/// # Panics
/// If a thread is placed on a CPU that the machine doesn't have.
pub fn run(
    processor: &mut Processor,
    mut threads: Vec<Thread<'_>>,
    placement: &[usize],
    slices: Slices,
    stop: &AtomicBool,
) -> RunResult {
    let cpus = processor.preset().cpus() as usize;
    let mut queues: Vec<Queue> = (0..cpus)
        .map(|_| Queue { threads: VecDeque::new(), slice_ends: 0, before: Counts::default() })
        .collect();
    for (thread, cpu) in placement.iter().enumerate().take(threads.len()) {
        queues[*cpu].threads.push_back(thread);
    }
    let quantum = ticks(slices.quantum);
    for (cpu, queue) in queues.iter_mut().enumerate() {
        queue.slice_ends = processor.now(cpu) + quantum;
        queue.before = processor.counts(cpu);
        processor.set_busy(cpu, !queue.threads.is_empty());
        if let Some(first) = queue.threads.front() {
            processor.switch_to(cpu, threads[*first].space);
        }
    }
    let begun: Vec<Counts> = (0..cpus).map(|cpu| processor.counts(cpu)).collect();
    let mut done = vec![ThreadResult::default(); threads.len()];
    let mut pending: Vec<Option<Op>> = vec![None; threads.len()];
    let mut left = threads.iter().filter(|thread| !thread.attends).count();
    while left > 0 && !stop.load(Ordering::Relaxed) {
        let Some((cpu, until)) = turn(processor, &queues) else { break };
        let queue = &mut queues[cpu];
        let Some(at) = queue.threads.front().copied() else { break };
        let now = processor.now(cpu);
        let op = pending[at].take().or_else(|| threads[at].script.next(now));
        if op.is_some() && now >= queue.slice_ends && queue.threads.len() > 1 {
            pending[at] = op;
            done[at].counts = done[at].counts + (processor.counts(cpu) - queue.before);
            queue.threads.rotate_left(1);
            processor.idle_until(cpu, now + ticks(slices.switch));
            queue.slice_ends = processor.now(cpu) + quantum;
            queue.before = processor.counts(cpu);
            let next = queue.threads.front().copied().unwrap_or(at);
            processor.switch_to(cpu, threads[next].space);
            continue;
        }
        if let Some(op) = op {
            processor.run(cpu, op);
            let script = &mut *threads[at].script;
            if run_on(processor, cpu, script, until, stop) {
                continue;
            }
        }
        processor.drain(cpu);
        done[at].counts = done[at].counts + (processor.counts(cpu) - queue.before);
        done[at].finished = processor.now(cpu);
        left -= usize::from(!threads[at].attends);
        queue.threads.pop_front();
        queue.slice_ends = processor.now(cpu) + quantum;
        queue.before = processor.counts(cpu);
        match queue.threads.front() {
            Some(next) => processor.switch_to(cpu, threads[*next].space),
            None => processor.set_busy(cpu, false),
        }
    }
    for (cpu, queue) in queues.iter().enumerate() {
        if let Some(at) = queue.threads.front() {
            done[*at].counts = done[*at].counts + (processor.counts(cpu) - queue.before);
        }
    }
    let counts = (0..cpus).map(|cpu| processor.counts(cpu) - begun[cpu]).collect();
    let counted = threads.iter().zip(&done).filter(|(thread, _)| !thread.attends);
    let last = counted.map(|(_, done)| done.finished).max().unwrap_or_default();
    RunResult { cpus: counts, threads: done, ticks: last }
}

/// Runs a script on a CPU until `until`, which for a single thread never comes, or until `stop` is
/// set; false when it ended.
fn run_on(
    processor: &mut Processor,
    cpu: usize,
    script: &mut dyn Script,
    until: Ticks,
    stop: &AtomicBool,
) -> bool {
    // The flag's line is written once and stays cached: reading it takes less than a count of
    // operations that says when to read it.
    while !stop.load(Ordering::Relaxed) {
        let now = processor.now(cpu);
        if now >= until {
            return true;
        }
        let Some(op) = script.next(now) else { return false };
        processor.run(cpu, op);
    }
    true
}

/// The CPU with work whose time is least, the first of several; and until when it executes
/// operations without comparing again: until another CPU's time is less, or its thread's slice
/// ends. What others lose meanwhile makes them later still.
#[inline(always)]
fn turn(processor: &Processor, queues: &[Queue]) -> Option<(usize, Ticks)> {
    let mut least: Option<(usize, Ticks)> = None;
    let mut until = Ticks::MAX;
    for (cpu, queue) in queues.iter().enumerate() {
        if queue.threads.is_empty() {
            continue;
        }
        let now = processor.now(cpu);
        match least {
            Some((_, before)) if before <= now => until = until.min(now.saturating_add(1)),
            before => {
                // Of two at the same time, the first has its turn.
                until = until.min(before.map_or(Ticks::MAX, |(_, now)| now));
                least = Some((cpu, now));
            }
        }
    }
    let (cpu, _) = least?;
    let queue = &queues[cpu];
    let slice = if queue.threads.len() > 1 { queue.slice_ends } else { Ticks::MAX };
    Some((cpu, until.min(slice)))
}
