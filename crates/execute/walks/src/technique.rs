//! Techniques by name: the finite set of schedule × memory × helper that is compiled, and the one
//! place where a choice made at run time becomes a type.
//!
//! A technique is written `name` or `name:key=value,…`:
//!
//! | written | schedule | memory |
//! |---|---|---|
//! | `sequential` | [`InTurn`] | direct |
//! | `staged:width=128` | [`Lanes`] | direct: the paper's staged operator, no helper |
//! | `group:width=64` | [`Groups`] | prefetch to L1 |
//! | `amac:width=32,hint=l1\|l2` | [`Lanes`] | prefetch |
//! | `rounds:width=1024,hint=none\|l1` | [`Rounds`] | direct or prefetch |
//! | `distance:rows=32,hint=l1\|l2` | [`Distance`] | prefetch |
//! | `coroutine:width=32` | [`Coroutines`] | prefetch to L1 |
//! | `work-ahead:size=128,direction=backward,wait=spin,…` | the set | a helper thread |
//! | `direct-helper:size=128,throttle=pause` | [`InTurn`] | a helper that reads the input itself |

mod text;

#[cfg(test)]
mod tests;

pub use text::TechniqueError;

use workahead_machine::Error;

use crate::isa::Isa;
use crate::memory::{Direct, Memory, Prefetching, ToL1, ToL2};
use crate::schedule::{Coroutines, Distance, Groups, InTurn, Lanes, Pause, Rounds, Schedule};
use crate::walk::{Rows, Sink, Walk};
use crate::work_ahead::{self, Helper, HelperRun, Options, Placement, Preloadable, Throttle, Wait};

/// How near a hint brings a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// No hint.
    None,
    /// The first-level cache.
    L1,
    /// The second-level cache.
    L2,
}

/// The treatment of a drive's cache misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Technique {
    /// One row to its end, then the next.
    Sequential,
    /// Interleaved, without prefetch.
    Staged {
        /// Rows in flight.
        width: usize,
    },
    /// Group prefetching.
    Group {
        /// Rows a group.
        width: usize,
    },
    /// Asynchronous memory access chaining.
    Amac {
        /// Rows in flight.
        width: usize,
        /// `L1` or `L2`.
        hint: Near,
    },
    /// Vectorised rounds.
    Rounds {
        /// Rows a vector.
        width: usize,
        /// `None` or `L1`.
        hint: Near,
    },
    /// Distance prefetching.
    Distance {
        /// Rows ahead.
        rows: usize,
        /// `L1` or `L2`.
        hint: Near,
    },
    /// Interleaving by coroutine.
    Coroutine {
        /// Rows in flight.
        width: usize,
    },
    /// The work-ahead set, with or without its helper.
    WorkAhead(Options),
    /// A helper that reads the input itself (the paper's appendix).
    DirectHelper {
        /// Rows the helper may be ahead.
        size: usize,
        /// The instruction that it executes while it is so far ahead.
        throttle: Throttle,
    },
}

impl Technique {
    /// Whether a helper thread is part of it.
    #[must_use]
    pub fn has_helper(&self) -> bool {
        match self {
            Technique::WorkAhead(options) => options.helper.is_some(),
            Technique::DirectHelper { .. } => true,
            _ => false,
        }
    }

    /// The instruction that its helper executes while it waits, if it is not every CPU's pause.
    #[must_use]
    pub fn throttle(&self) -> Option<Throttle> {
        let throttle = match *self {
            Technique::WorkAhead(Options { helper: Some(Helper { wait, .. }), .. }) => match wait {
                Wait::Throttle(throttle) => throttle,
                Wait::None | Wait::Spin { .. } | Wait::Sleep(_) => return None,
            },
            Technique::DirectHelper { throttle, .. } => throttle,
            _ => return None,
        };
        Some(throttle).filter(|throttle| *throttle != Throttle::Pause)
    }

    /// How near its hints bring lines.
    #[must_use]
    pub fn near(&self) -> Near {
        match *self {
            Technique::Amac { hint, .. }
            | Technique::Rounds { hint, .. }
            | Technique::Distance { hint, .. } => hint,
            Technique::Group { .. } | Technique::Coroutine { .. } => Near::L1,
            _ => Near::None,
        }
    }

    /// Rows in flight at most: what a sink must have room for beyond its mark.
    #[must_use]
    pub fn width(&self) -> usize {
        match *self {
            Technique::Sequential | Technique::DirectHelper { .. } => 1,
            Technique::Staged { width }
            | Technique::Group { width }
            | Technique::Amac { width, .. }
            | Technique::Rounds { width, .. }
            | Technique::Coroutine { width } => width,
            Technique::Distance { rows, .. } => rows,
            Technique::WorkAhead(options) => options.size + 1,
        }
    }
}

/// A technique, started: drives rows and keeps those in flight between two drives.
pub enum Driver<W: Walk> {
    /// See [`Technique::Sequential`].
    InTurn(InTurn<W::Cursor>),
    /// See [`Technique::Staged`] and [`Technique::Amac`].
    Lanes(Lanes<W::Cursor>, Near),
    /// See [`Technique::Group`].
    Groups(Groups<W::Cursor>),
    /// See [`Technique::Rounds`].
    Rounds(Rounds<W::Cursor>, Near),
    /// See [`Technique::Distance`].
    Distance(Distance<W::Cursor>, Near),
    /// See [`Technique::Coroutine`].
    Coroutines(Coroutines<W::Cursor>),
}

impl<W: Walk> Driver<W> {
    /// Starts a technique of one thread; `None` for those with a set or a helper, which run to
    /// their end ([`run`]).
    #[must_use]
    pub fn of(technique: Technique) -> Option<Self> {
        Some(match technique {
            Technique::Sequential => Driver::InTurn(InTurn::new()),
            Technique::Staged { width } => Driver::Lanes(Lanes::new(width), Near::None),
            Technique::Group { width } => Driver::Groups(Groups::new(width)),
            Technique::Amac { width, hint } => Driver::Lanes(Lanes::new(width), hint),
            Technique::Rounds { width, hint } => Driver::Rounds(Rounds::new(width), hint),
            Technique::Distance { rows, hint } => Driver::Distance(Distance::new(rows), hint),
            Technique::Coroutine { width } => Driver::Coroutines(Coroutines::new(width)),
            Technique::WorkAhead(_) | Technique::DirectHelper { .. } => return None,
        })
    }

    /// Drives `rows` until they are finished or the sink is full, inside `isa`.
    pub fn drive<S: Sink<W::Hit>>(
        &mut self,
        isa: impl Isa,
        walk: &mut W,
        rows: &mut Rows,
        sink: &mut S,
    ) -> Pause {
        let l1 = &mut Prefetching::<ToL1>::default();
        let l2 = &mut Prefetching::<ToL2>::default();
        macro_rules! inside {
            ($schedule:expr, $memory:expr) => {
                isa.run(
                    #[inline(always)]
                    || $schedule.drive(walk, rows, $memory, sink),
                )
            };
        }
        match self {
            Driver::InTurn(schedule) => inside!(schedule, &mut Direct),
            Driver::Lanes(schedule, Near::None) => inside!(schedule, &mut Direct),
            Driver::Lanes(schedule, Near::L1) => inside!(schedule, l1),
            Driver::Lanes(schedule, Near::L2) => inside!(schedule, l2),
            Driver::Groups(schedule) => inside!(schedule, l1),
            Driver::Rounds(schedule, Near::None) => inside!(schedule, &mut Direct),
            Driver::Rounds(schedule, _) => inside!(schedule, l1),
            Driver::Distance(schedule, Near::L2) => inside!(schedule, l2),
            Driver::Distance(schedule, _) => inside!(schedule, l1),
            Driver::Coroutines(schedule) => inside!(schedule, l1),
        }
    }
}

/// Runs all of `rows` under a technique on the calling thread, and its helper on `placement`'s CPU
/// if it has one. The sink must not become full.
///
/// # Errors
/// When the helper's CPU is not allowed; then nothing has run.
pub fn run<W: Preloadable + Clone + Send, S: Sink<W::Hit>>(
    technique: Technique,
    isa: impl Isa,
    walk: &mut W,
    rows: &mut Rows,
    placement: Placement<'_>,
    sink: &mut S,
) -> Result<Option<HelperRun>, Error> {
    match technique {
        Technique::WorkAhead(options) => work_ahead::run(isa, walk, rows, options, placement, sink),
        Technique::DirectHelper { size, throttle } => {
            work_ahead::run_direct(isa, walk, rows, (size, throttle), placement, sink)
        }
        _ => {
            let mut driver = Driver::of(technique).expect("the others have no set");
            while driver.drive(isa, walk, rows, sink) == Pause::Full {}
            Ok(None)
        }
    }
}

/// Runs all of `rows` under a technique over a memory of one's own, which follows the technique's
/// hints or not ([`Technique::near`]). Of those with a set or a helper, the main thread's part: the
/// set's posts are passed to the memory, a direct helper is left out. The sink must not become
/// full.
pub fn run_over<W: Walk, M: Memory, S: Sink<W::Hit>>(
    technique: Technique,
    walk: &mut W,
    rows: &mut Rows,
    memory: &mut M,
    sink: &mut S,
) {
    match technique {
        Technique::Sequential | Technique::DirectHelper { .. } => {
            InTurn::new().drive(walk, rows, memory, sink)
        }
        Technique::Staged { width } | Technique::Amac { width, .. } => {
            Lanes::new(width).drive(walk, rows, memory, sink)
        }
        Technique::Group { width } => Groups::new(width).drive(walk, rows, memory, sink),
        Technique::Rounds { width, .. } => Rounds::new(width).drive(walk, rows, memory, sink),
        Technique::Distance { rows: ahead, .. } => {
            Distance::new(ahead).drive(walk, rows, memory, sink)
        }
        Technique::Coroutine { width } => Coroutines::new(width).drive(walk, rows, memory, sink),
        Technique::WorkAhead(options) => {
            work_ahead::post_over(walk, rows, options, memory, sink);
            Pause::Drained
        }
    };
}
