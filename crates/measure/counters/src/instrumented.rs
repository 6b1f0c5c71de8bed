//! Instructions and cache misses by function, counted by a model: cachegrind and callgrind.
//!
//! ```text
//!   program, input ──► valgrind --I1 --D1 --LL ──► one file per process ──parse──► ProgramCounts
//!   program, nothing ─► the same                ──────────────────────────────► baseline
//!
//!   ProgramCounts::minus(baseline) ──► measures (per access, per instruction), top functions
//! ```
//!
//! Evidence tier D. It needs no counters of the machine and counts the same again on the next one
//! ([`LABEL`] says what it does not count). The caches are always given ([`Geometry`]), so that the
//! model can also be of a smaller one: Keeton et al. (1998, section 4.2) needed three processors
//! for that.
//!
//! Findings with valgrind 3.19 on Debian 12:
//!
//! - A single backend of PostgreSQL 15 works below both tools ([`Program`] has the arguments), and
//!   is stopped cleanly. Started and ended without a statement it takes 2.6 s under cachegrind,
//!   0.13 s alone: 54 million instructions and 300 000 misses of a last level of 2 MiB, so take
//!   such a baseline away. A scan of 20 000 rows grouped by 97 keys counts 31.8 million
//!   instructions after that by either tool, and 30.5 million inside of `ExecutorRun`
//!   ([`Span::Inside`]).
//! - It exits with 0 after a statement that failed: read [`Outcome::errors`].
//! - Debian's server has symbols of its exported functions only. Cachegrind puts the rest (62 % of
//!   those instructions) together as `???`, callgrind distinguishes them by address: use callgrind.
//! - No AVX-512: valgrind presents a processor without it, so those that choose at run
//!   time count other instructions than they would execute; those compiled with
//!   `-C target-cpu=native` may die of SIGILL.
//! - DuckDB 1.5's library works, loaded at run time: one query of 20 000 rows takes 119 million
//!   instructions under callgrind, nearly all of it to load and to open.
//! - Programs run about fifty times slower, and one thread at a time: give engines one thread.
//!
//! Deliberately absent: figures of time. Time under valgrind means nothing.

mod cachegrind;
mod callgrind;
mod error;
mod functions;
mod geometry;
mod measures;
mod preset;
mod program;
mod program_counts;
mod run;
mod sheet;
mod valgrind;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use error::Error;
pub use functions::{Counts, Function, Functions};
pub use geometry::{CacheShape, Geometry};
pub use measures::{FunctionShare, LABEL, Quantity, TIER};
pub use preset::{Preset, THIS_MACHINE, THIS_MACHINE_L2};
pub use program::{Environment, Program, User};
pub use program_counts::{FunctionCounts, ProgramCounts};
pub use run::{OUTPUT_BYTES_MAX, Outcome};
pub use valgrind::Valgrind;

/// The tool that counts.
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

/// Which processes are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processes {
    /// The program alone; its children run at full speed, uncounted.
    #[default]
    First,
    /// The program and its descendants, added up.
    All,
}

/// When it counts. The caches of the model are warmed in between.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// From the first instruction to the last.
    #[default]
    Whole,
    /// Only inside of these functions (`*` matches anything) and what they call: callgrind only.
    /// One that calls itself again switches counting off there. A program without such a function
    /// counts nothing, and that is an error.
    Inside(Vec<String>),
}

/// How a program is run and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstrumentedRun {
    /// The tool that counts.
    pub tool: Tool,
    /// The caches of the model.
    pub geometry: Geometry,
    /// Which processes are counted.
    pub processes: Processes,
    /// When it counts.
    pub span: Span,
}

impl InstrumentedRun {
    /// The first process of a program, from start to end.
    #[must_use]
    pub fn new(tool: Tool, geometry: Geometry) -> Self {
        Self { tool, geometry, processes: Processes::First, span: Span::Whole }
    }
}

impl ProgramCounts {
    /// Reads what a tool wrote.
    ///
    /// # Errors
    /// If a line is not of its format, or sums are missing or wrong.
    pub fn parse(tool: Tool, text: &str) -> Result<Self, Error> {
        match tool {
            Tool::Cachegrind => cachegrind::parse(text),
            Tool::Callgrind => callgrind::parse(text),
        }
    }
}
