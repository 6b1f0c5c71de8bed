//! Events: what can be counted, and how the kernel names it (perf_event_open(2)).

use serde::{Deserialize, Serialize};

/// One event of a machine's table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// The vendor's name: `MEM_LOAD_RETIRED.L2_MISS`; the kernel's for software events.
    pub name: String,
    /// How the kernel names it.
    pub code: Code,
    /// Which of a core's counters can count it.
    pub place: Place,
}

/// How the kernel names an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Counted by the kernel itself.
    Software(Software),
    /// An event of the core's own source (`cpu`), as its registers want it.
    Core {
        /// Event, unit mask, counter mask, edge, inversion: `attr.config`.
        config: u64,
        /// The value of another register, such as a latency threshold: `attr.config1`.
        config1: u64,
    },
    /// An event of another source, by its name below `/sys/bus/event_source/devices`: shared by
    /// several CPUs, so it can't be counted for one thread or one privilege.
    Other {
        /// Its name there, such as `amd_l3`.
        source: String,
        /// `attr.config`.
        config: u64,
        /// `attr.config1`.
        config1: u64,
    },
}

/// Events that the kernel counts itself, on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Software {
    /// Nanoseconds on a CPU.
    TaskClock,
    /// Nanoseconds by the CPU's timer; what profiles are sampled by where there are no cycles.
    CpuClock,
    /// Page faults of both kinds.
    PageFaults,
    /// Page faults without input or output.
    MinorFaults,
    /// Page faults that waited for a disk.
    MajorFaults,
    /// Switches from one task to another.
    ContextSwitches,
    /// Moves to another CPU.
    CpuMigrations,
}

/// Which of a core's counters can count an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// No counter of the core: software, or another source.
    None,
    /// A counter of its own, by number.
    Fixed(u8),
    /// Any of the general counters.
    Any,
    /// Only general counters whose bits are set.
    Only(u16),
}

/// The privilege level that is counted. A counter counts one of them at a time, so each is a slot
/// of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privilege {
    /// Programs: the database, in Keeton's words.
    User,
    /// The operating system.
    Kernel,
    /// Both together: software events know only this.
    Both,
}
