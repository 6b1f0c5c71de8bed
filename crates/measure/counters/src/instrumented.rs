//! Instructions and cache misses by function, counted by a model: cachegrind and callgrind.
//!
//! ```text
//!   program, input ──► valgrind --I1 --D1 --LL ──► one file per process ──parse──► Counted
//!   program, nothing ─► the same                ──────────────────────────────► baseline
//!
//!   Counted::minus(baseline) ──► measures (per access, per instruction), top functions
//! ```
//!
//! Evidence tier D. It needs no counters of the machine and counts the same again on the next one
//! ([`LABEL`] says what it does not count). The caches are always given ([`Geometry`]), so that the
//! model answers what a smaller one would cost: Keeton et al. (1998, section 4.2) needed three
//! processors for that.
//!
//! What was found with valgrind 3.19 on Debian 12:
//!
//! - A single backend of PostgreSQL 15 works below both tools ([`Program`] has the words), and is
//!   stopped cleanly. Started and ended without a statement it takes 2.6 s below cachegrind, 0.13 s
//!   alone: 54 million instructions and 300 000 misses of a last level of 2 MiB, so take such a
//!   baseline away. A scan of 20 000 rows grouped by 97 keys counts 31.8 million instructions
//!   after that by either tool, and 30.5 million inside of `ExecutorRun` ([`Span::Inside`]).
//! - It exits with 0 after a statement that failed: read [`Outcome::errors`].
//! - Debian's server has symbols of its exported functions only. Cachegrind puts the rest (62 % of
//!   those instructions) together as `???`, callgrind tells them apart by address: take callgrind.
//! - No AVX-512: valgrind tells programs that the processor has none, so those that choose at run
//!   time count other instructions than they would execute; those compiled with
//!   `-C target-cpu=native` may die of SIGILL.
//! - DuckDB 1.5's library works, loaded at run time: a database of 20 000 rows asked once takes 119
//!   million instructions below callgrind, nearly all of it to load and to open.
//! - Programs run about fifty times slower, and one thread at a time: give engines one thread.
//!
//! Deliberately absent: figures of time. None taken below valgrind means anything.

mod cachegrind;
mod callgrind;
mod counted;
mod error;
mod functions;
mod geometry;
mod measures;
mod preset;
mod program;
mod run;
mod sheet;
mod valgrind;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use counted::{Counted, FunctionCounts};
pub use error::Error;
pub use functions::{Counts, Function, Functions};
pub use geometry::{CacheShape, Geometry};
pub use measures::{FunctionShare, LABEL, Quantity, TIER};
pub use preset::{Preset, THIS_MACHINE, THIS_MACHINE_L2};
pub use program::{Environment, Program, User};
pub use run::Outcome;
pub use valgrind::Valgrind;

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// By function.
    Cachegrind,
    /// By function, by library, and with what each function called.
    Callgrind,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Cachegrind => "cachegrind",
            Self::Callgrind => "callgrind",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose counts are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processes {
    /// Those of the program alone; what it starts runs at full speed, uncounted.
    #[default]
    First,
    /// Those of all that it starts as well, added up.
    All,
}

/// When it counts. The caches of the model are warmed in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// From the first instruction to the last.
    #[default]
    Whole,
    /// Only inside of these functions (`*` stands for anything) and what they call: callgrind
    /// only. One that calls itself again switches counting off there. A program without such a
    /// function counts nothing, and that is an error.
    Inside(Vec<String>),
}

/// How programs are run and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instrumented {
    /// What counts.
    pub tool: Tool,
    /// The caches of the model.
    pub geometry: Geometry,
    /// Whose counts are taken.
    pub processes: Processes,
    /// When it counts.
    pub span: Span,
}

impl Instrumented {
    /// The first process of a program, from its start to its end.
    #[must_use]
    pub fn new(tool: Tool, geometry: Geometry) -> Self {
        Self { tool, geometry, processes: Processes::First, span: Span::Whole }
    }
}

impl Counted {
    /// Reads what a tool wrote.
    ///
    /// # Errors
    /// If a line is none of its format, or sums are missing or wrong.
    pub fn parse(tool: Tool, text: &str) -> Result<Self, Error> {
        match tool {
            Tool::Cachegrind => cachegrind::parse(text),
            Tool::Callgrind => callgrind::parse(text),
        }
    }
}
