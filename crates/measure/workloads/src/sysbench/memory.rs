//! The memory program: threads pass over blocks until enough bytes were touched.
//!
//! ```text
//! each thread:  take a block's worth of the total ─► pass over its block ─► (yield) ─► again
//!               0.4: one counter for all, behind a lock          global: one block for all
//!               1.0: total / block / threads for each            local:  a block for each
//! ```
//!
//! A pass reads or writes every element, of four bytes in 0.4 and of eight in 1.0, front to back;
//! at random, 1.0 draws a place for each element, while 0.4 draws one place a pass and goes there
//! as often as the block has bytes. Elements are atomics, accessed without ordering: one plain load
//! or store each that no compiler may leave out or widen, as in 1.0; 0.4's plain loops may vanish
//! under a modern compiler. The paper of 2010 (Yamada et al., section 5.2) let threads yield after
//! each block.

mod pass;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::thread;

use workahead_machine::clock::Moment;
use workahead_machine::pages::{PageBuffer, Pages};

use super::Flavour;
use crate::WorkloadError;
use crate::random::Random;
use pass::Element;

/// Stream of the seed.
const PLACES: u32 = 0x0058_0003;

/// Whose block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One for all threads.
    Global,
    /// One for each.
    Local,
}

/// The operation on an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Nothing: the cost of the loop.
    None,
}

/// In which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Front to back.
    Sequential,
    /// At random.
    Random,
}

/// The pause of a thread between blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BetweenBlocks {
    /// Goes on, as in sysbench.
    GoOn,
    /// Gives its CPU to another thread (sched_yield(2)), as in the paper of 2010.
    Yield,
}

/// The program's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which sysbench.
    pub flavour: Flavour,
    /// Threads.
    pub threads: u32,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Bytes to touch by all threads.
    pub total_bytes: u64,
    /// Whose block.
    pub scope: Scope,
    /// The operation.
    pub operation: Operation,
    /// In which order.
    pub access: Access,
    /// The pause of a thread between blocks.
    pub between: BetweenBlocks,
    /// Pages of the blocks.
    pub pages: Pages,
    /// Determines random places.
    pub seed: u64,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRun {
    /// Passes over a block, of each thread.
    pub passes: Vec<u64>,
    /// Bytes that they touched.
    pub bytes: u64,
    /// From the start of all threads to the end of the last.
    pub wall_s: f64,
    /// CPU time of each thread.
    pub cpu_s: Vec<f64>,
    /// Over what was read.
    pub checksum: u64,
}

/// More threads than any run of the literature has.
const THREADS_MAX: u32 = 4096;

impl Options {
    /// Whether the program takes them.
    ///
    /// # Errors
    /// When it does not: what to give instead.
    pub fn checked(&self) -> Result<(), WorkloadError> {
        let wrong = |says: String| Err(WorkloadError::Memory(says));
        let bytes = self.block_bytes;
        match self.flavour {
            Flavour::V04 if bytes == 0 || !bytes.is_multiple_of(4) => {
                return wrong(format!("blocks of {bytes} bytes: give a multiple of 4"));
            }
            Flavour::V10 if bytes < 8 || !bytes.is_power_of_two() => {
                return wrong(format!("blocks of {bytes} bytes: give a power of two from 8 on"));
            }
            _ => {}
        }
        if !(1..=THREADS_MAX).contains(&self.threads) {
            return wrong(format!("{} threads: give 1 to {THREADS_MAX}", self.threads));
        }
        if self.passes_of_all() == 0 {
            let total = self.total_bytes;
            return wrong(format!("{total} bytes in all are not a block for each thread"));
        }
        Ok(())
    }

    /// Passes that the total is good for. 0.4 goes on while it is not reached, 1.0 gives each
    /// thread as many whole blocks as fit.
    #[must_use]
    pub fn passes_of_all(&self) -> u64 {
        let (block, threads) = (self.block_bytes as u64, u64::from(self.threads));
        match self.flavour {
            Flavour::V04 => self.total_bytes.div_ceil(block.max(1)),
            Flavour::V10 => self.total_bytes / block.max(1) / threads.max(1) * threads,
        }
    }

    /// Bytes of all blocks.
    #[must_use]
    pub fn working_set_bytes(&self) -> u64 {
        let blocks = if self.scope == Scope::Local { u64::from(self.threads) } else { 1 };
        self.block_bytes as u64 * blocks
    }
}

/// Runs the program, until enough bytes were touched or `stop` is set.
///
/// # Errors
/// When the options are not the program's, memory is refused, or a block is not as the passes must
/// have left it.
pub fn run(options: &Options, stop: &AtomicBool) -> Result<MemoryRun, WorkloadError> {
    options.checked()?;
    match options.flavour {
        Flavour::V04 => run_over::<AtomicU32>(options, stop),
        Flavour::V10 => run_over::<AtomicU64>(options, stop),
    }
}

fn run_over<E: Element>(options: &Options, stop: &AtomicBool) -> Result<MemoryRun, WorkloadError> {
    let blocks = if options.scope == Scope::Local { options.threads } else { 1 };
    let elements = options.block_bytes / size_of::<E>();
    let block = |_| PageBuffer::<E>::zeroed(elements, options.pages);
    let blocks = (0..blocks).map(block).collect::<Result<Vec<_>, _>>();
    let blocks = blocks.map_err(|error| WorkloadError::Memory(error.to_string()))?;
    // The first touch of a page is the system's work, and not what is measured.
    blocks.iter().for_each(|block| block.iter().for_each(|element| element.put(0)));

    let quota = Quota::of(options);
    // None where the system has no more threads: those that there are end.
    let begin: OnceLock<Option<Barrier>> = OnceLock::new();
    let (wall_s, threads) = thread::scope(|scope| {
        let spawn = |number: u32| {
            let block = &blocks[number as usize % blocks.len()];
            let (quota, begin) = (&quota, &begin);
            thread::Builder::new().spawn_scoped(scope, move || {
                begin.wait().as_ref()?.wait();
                Some(worker::<E>(options, number, block, (quota, stop)))
            })
        };
        let running = (0..options.threads).map(spawn).collect::<Result<Vec<_>, _>>();
        let barrier = running.is_ok().then(|| Barrier::new(options.threads as usize + 1));
        if let Some(begin) = begin.get_or_init(|| barrier) {
            begin.wait();
        }
        let begun = Moment::now();
        let ended = running?.into_iter().filter_map(|thread| match thread.join() {
            Ok(thread) => thread,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let threads: Vec<Thread> = ended.collect();
        Ok((begun.wall_s(), threads))
    })
    .map_err(|error: std::io::Error| {
        let threads = options.threads;
        WorkloadError::Memory(format!("no {threads} threads ({error}): give fewer"))
    })?;
    check(options, &blocks, &threads)?;
    let passes: Vec<u64> = threads.iter().map(|thread| thread.passes).collect();
    Ok(MemoryRun {
        bytes: passes.iter().sum::<u64>() * options.block_bytes as u64,
        passes,
        wall_s,
        cpu_s: threads.iter().map(|thread| thread.cpu_s).collect(),
        checksum: threads.iter().fold(0, |sum, thread| sum ^ thread.checksum),
    })
}

/// How many passes are left.
enum Quota {
    /// Behind one lock, which is what small blocks of 0.4 measure most.
    Shared(Mutex<u64>),
    Each(u64),
}

impl Quota {
    fn of(options: &Options) -> Self {
        let all = options.passes_of_all();
        match options.flavour {
            Flavour::V04 => Self::Shared(Mutex::new(all)),
            Flavour::V10 => Self::Each(all / u64::from(options.threads)),
        }
    }

    fn take(&self, taken: u64) -> bool {
        match self {
            Self::Each(quota) => taken < *quota,
            Self::Shared(left) => {
                let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                let any = *left > 0;
                *left = left.saturating_sub(1);
                any
            }
        }
    }
}

/// The result of a thread.
struct Thread {
    passes: u64,
    cpu_s: f64,
    checksum: u64,
}

fn worker<E: Element>(
    options: &Options,
    number: u32,
    block: &[E],
    (quota, stop): (&Quota, &AtomicBool),
) -> Thread {
    let begun = Moment::now();
    let mut places = Random::new(options.seed, PLACES, number);
    let mut thread = Thread { passes: 0, cpu_s: 0.0, checksum: 0 };
    while !stop.load(Ordering::Relaxed) && quota.take(thread.passes) {
        thread.checksum ^= match options.access {
            Access::Sequential => pass::sequential(block, options.operation),
            Access::Random => pass::random(block, options.operation, &mut places),
        };
        thread.passes += 1;
        if options.between == BetweenBlocks::Yield {
            thread::yield_now();
        }
    }
    thread.cpu_s = begun.elapsed().cpu_s;
    thread
}

/// Whether the passes left behind what they must: data written front to back is there whole.
fn check<E: Element>(
    options: &Options,
    blocks: &[PageBuffer<E>],
    threads: &[Thread],
) -> Result<(), WorkloadError> {
    if (options.operation, options.access) != (Operation::Write, Access::Sequential) {
        return Ok(());
    }
    let passed = |block: usize| {
        let of_block = threads.iter().skip(block).step_by(blocks.len());
        of_block.map(|thread| thread.passes).sum::<u64>() > 0
    };
    for (number, block) in blocks.iter().enumerate().filter(|(number, _)| passed(*number)) {
        let wrong = block
            .iter()
            .enumerate()
            .find(|(at, element)| element.get() != E::written(*at, block.len()));
        if let Some((at, _)) = wrong {
            let says = format!("element {at} of block {number} is not what was written");
            return Err(WorkloadError::Memory(says));
        }
    }
    Ok(())
}
