//! Function profiles: stacks sampled, unwound, counted, named.
//!
//! ```text
//!   rings of the kernel ──► records in order of time ──► whose? ──► its address space, unwound
//!   (a sample every 10 ms                                                │
//!    of CPU time)                                                        ▼
//!   Profile ◄── addresses named, once, at the end ◄── stacks of addresses, counted
//! ```
//!
//! Hassanein et al. (2008, figures 7b and 17) took the share of time, of L2 misses and of DTLB
//! misses of each function from VTune; this is the same table by perf_event_open(2). The weight of
//! a sample is counted in events of its clock (cycles, nanoseconds, misses), because the kernel
//! changes the distance between samples while it runs.
//!
//! Nothing is timed by a profile, and nothing may be timed while one is taken.

mod demangler;
mod image;
mod members;
mod modules;
#[cfg(all(test, target_arch = "x86_64"))]
mod mutants;
mod names;
mod open;
mod profile_event;
mod record;
mod sampler;
mod space;
mod stable_files;
mod stacks;
mod table;
mod unwind;
mod unwind_tables;

pub use profile_event::ProfileEvent;
pub use sampler::{Running, Sampler};
pub use table::{Delta, Frame, Function, Kind, Profile, Stack, Top, TopRow};

use serde::{Deserialize, Serialize};

use crate::event::Event;

/// The clock that decides when the next sample is taken, and so the total that shares are of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Cycles of the core while it works: time at the speed of the core.
    Cycles,
    /// Nanoseconds by the CPU's timer, where no cycles are counted. A sample falls where the
    /// timer's interrupt is let in, so parts of the kernel that hold interrupts off are attributed
    /// to the function that re-enables them.
    CpuClock,
    /// Any other event, by its name.
    Event(String),
}

impl Clock {
    /// Its unit, in words: `cycles`.
    #[must_use]
    pub fn unit(&self) -> &str {
        match self {
            Clock::Cycles => "cycles",
            Clock::CpuClock => "ns of CPU time",
            Clock::Event(name) => name,
        }
    }
}

/// The clock or event to sample by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum By {
    /// Cycles, or the CPU's timer where there are none.
    Time,
    /// An event, for each function's share of it: L2 misses, DTLB misses.
    Event(Event),
}

/// The processes to sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// All threads of a process, those made later too, but none of its children.
    Process(u32),
    /// Processes with all their threads and descendants, now and later: a server and its backends.
    Trees(Vec<u32>),
}

/// How to sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Options {
    /// The clock or event to sample by.
    pub by: By,
    /// Samples a second of work on each CPU, 1 to [`FREQUENCY_MAX_HZ`]. The default of 99 does not
    /// beat with work that is done every 10 ms.
    pub frequency_hz: u32,
    /// Bytes of stack kept with each sample, to unwind it: rounded up to 8, at most
    /// [`STACK_BYTES_MAX`]. Deeper stacks are cut and counted.
    pub stack_bytes: u32,
}

/// A sample carries its stack, so a thousand a second are 16 MB a second and CPU.
pub const FREQUENCY_MAX_HZ: u32 = 1000;
/// A record's length is a 16-bit number, and the stack shares it with the rest of the sample.
pub const STACK_BYTES_MAX: u32 = 48 << 10;

impl Default for Options {
    fn default() -> Self {
        Self { by: By::Time, frequency_hz: 99, stack_bytes: 16 << 10 }
    }
}

#[cfg(test)]
mod tests;
