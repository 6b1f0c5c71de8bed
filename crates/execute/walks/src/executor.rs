//! Who runs a walk over many rows: the calling thread, or it and a helper on its CPU's sibling.
//!
//! ```text
//! rows   alone │ helped │ helped │ alone │ all others by the one that was faster
//!        └── a race on the caller's own rows, 5 ms ──┘
//! ```
//!
//! The helper is that of the work-ahead set (Zhou et al., VLDB 2005, §4), which answers do not
//! depend on. It was faster than one thread where two hardware threads shared a core whose one
//! thread could not have many misses under way; on later machines it mostly is not (docs/walks.md).
//! Therefore it is never believed and always measured: where the system shows no siblings there is
//! nothing to measure, and it is not run.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use workahead_machine::clock::Moment;
use workahead_machine::cpus::CpuSet;
use workahead_machine::{Error, Machine, pin};

use crate::isa::Portable;
use crate::walk::{Row, Rows, Sink};
use crate::work_ahead::{
    Deduplicate, Direction, Guard, Helper, Options, Placement, Preloadable, Skip, States, Throttle,
    Wait, run,
};

/// Rows from whose time it follows how many make a part of a race.
const FIRST_ROWS: Row = 2048;
/// The time of a part: four, and the first rows, are less than 5 ms. The start of a helper's thread
/// counts, and takes up to a tenth of it.
const PART_S: f64 = 1e-3;
/// The parts of a race: neither gets the first two, nor the last two.
const HELPED: [bool; 4] = [false, true, true, false];
/// A helper takes a hardware thread that others could have: it must gain a twentieth at least.
const MOST_OF_ALONE: f64 = 0.95;

/// Runs walks, with a helper where that is faster.
///
/// ```
/// use workahead_walks::Executor;
/// let executor = Executor::with_helper();
/// // Nothing was raced yet; without siblings, nothing ever is.
/// let expected = if executor.has_siblings() { None } else { Some(false) };
/// assert_eq!(executor.is_helped(1 << 30), expected);
/// ```
#[derive(Debug)]
pub struct Executor {
    allowed: CpuSet,
    helpers: Helpers,
    /// Who won, by the power of two of what is walked over: `UNKNOWN`, `ALONE` or `HELPED`.
    winners: [AtomicU8; usize::BITS as usize],
}

/// Where helpers run.
#[derive(Debug)]
enum Helpers {
    /// On the other CPUs of a core, where it has some.
    Siblings(Vec<CpuSet>),
    On(usize),
}

const UNKNOWN: u8 = 0;
const ALONE: u8 = 1;
const WITH_HELPER: u8 = 2;

impl Executor {
    /// Helpers on the sibling of whichever CPU the calling thread is on; none where the system says
    /// that no two CPUs share a core, or does not say.
    #[must_use]
    pub fn with_helper() -> Self {
        Self::of(&Machine::here())
    }

    fn of(machine: &Machine) -> Self {
        let allowed = machine.allowed_cpus().clone();
        let cores = machine.cores.iter().map(|core| core.cpus.intersection(&allowed));
        Self::new(Helpers::Siblings(cores.filter(|cpus| cpus.len() > 1).collect()), allowed)
    }

    /// Helpers on a CPU, whatever it shares with others. They are raced all the same. A CPU that
    /// shares only a last-level cache with the calling thread's brings lines no nearer than that.
    ///
    /// # Errors
    /// When the CPU is not allowed, or the system does not say which are.
    pub fn with_helper_on(cpu: usize) -> Result<Self, Error> {
        let allowed = pin::affinity()?;
        if !allowed.contains(cpu) {
            return Err(Error::CpuNotAllowed { cpu, allowed });
        }
        Ok(Self::new(Helpers::On(cpu), allowed))
    }

    fn new(helpers: Helpers, allowed: CpuSet) -> Self {
        Self { allowed, helpers, winners: [const { AtomicU8::new(UNKNOWN) }; usize::BITS as usize] }
    }

    /// Races nothing: always with the helper, where there is a CPU for it, or never.
    #[must_use]
    pub fn always(self, with_helper: bool) -> Self {
        let winner = if with_helper { WITH_HELPER } else { ALONE };
        self.winners.iter().for_each(|one| one.store(winner, Ordering::Relaxed));
        self
    }

    /// Whether there is a CPU for a helper at all.
    #[must_use]
    pub fn has_siblings(&self) -> bool {
        match &self.helpers {
            Helpers::Siblings(cores) => !cores.is_empty(),
            Helpers::On(_) => self.allowed.len() > 1,
        }
    }

    /// Whether walks over tables of this size have a helper; `None` before the first race.
    #[must_use]
    pub fn is_helped(&self, bytes: usize) -> Option<bool> {
        if !self.has_siblings() {
            return Some(false);
        }
        match self.winner(bytes).load(Ordering::Relaxed) {
            UNKNOWN => None,
            winner => Some(winner == WITH_HELPER),
        }
    }

    fn winner(&self, bytes: usize) -> &AtomicU8 {
        &self.winners[bytes.checked_ilog2().unwrap_or(0) as usize]
    }

    /// CPUs for the calling thread and for its helper.
    fn placement(&self) -> Option<(usize, usize)> {
        let here = pin::current_cpu()?;
        match &self.helpers {
            Helpers::Siblings(cores) => {
                let core = cores.iter().find(|cpus| cpus.contains(here))?;
                Some((here, core.iter().find(|cpu| *cpu != here)?))
            }
            Helpers::On(helper) => {
                let other = || self.allowed.iter().find(|cpu| cpu != helper);
                Some((if here == *helper { other()? } else { here }, *helper))
            }
        }
    }

    /// Runs all `rows` of a walk over a table of `bytes` bytes: by `alone`, or with a helper while
    /// the calling thread stays on its CPU. The sink must not become full.
    pub fn drive<W: Preloadable, S: Sink<W::Hit>>(
        &self,
        (walk, mut rows): (&mut W, Range<Row>),
        bytes: usize,
        sink: &mut S,
        mut alone: impl FnMut(&mut W, Range<Row>, &mut S),
    ) {
        let winner = self.winner(bytes);
        let placement = match winner.load(Ordering::Relaxed) {
            ALONE => None,
            _ => self.placement(),
        };
        let Some(placement) = placement else { return alone(walk, rows, sink) };
        let mut part = |rows: Range<Row>, is_helped| {
            let moment = Moment::now();
            let is_helped = is_helped && self.helped((&mut *walk, rows.clone()), placement, sink);
            if !is_helped {
                alone(walk, rows, sink);
            }
            (is_helped, moment.wall_s())
        };
        if winner.load(Ordering::Relaxed) == UNKNOWN
            && let Some(is_helped) = race(&mut rows, &mut part)
        {
            winner.store(if is_helped { WITH_HELPER } else { ALONE }, Ordering::Relaxed);
        }
        part(rows, winner.load(Ordering::Relaxed) == WITH_HELPER);
    }

    /// Whether rows were run with a helper; if not, they were not run.
    fn helped<W: Preloadable, S: Sink<W::Hit>>(
        &self,
        (walk, rows): (&mut W, Range<Row>),
        (here, helper_cpu): (usize, usize),
        sink: &mut S,
    ) -> bool {
        let Ok(_pinned) = pin::to(here, &self.allowed) else { return false };
        let placement = Placement { helper_cpu, allowed: &self.allowed };
        run(Portable, walk, &mut Rows::range(rows), options(), placement, sink).is_ok()
    }
}

/// The paper's set, and the best that this CPU has to wait with.
fn options() -> Options {
    let wait = Wait::Throttle(Throttle::best());
    let helper = Helper { direction: Direction::Backward, wait, skip: Skip::Nothing };
    let (guard, deduplicate) = (Guard::None, Deduplicate::Nothing);
    Options { size: 128, guard, states: States::Apart, deduplicate, helper: Some(helper) }
}

/// Whether rows are run faster with a helper; `None` where there are too few of them to tell.
/// `part` runs rows with one or without, and says whether it had one, and the seconds.
fn race(
    rows: &mut Range<Row>,
    part: &mut impl FnMut(Range<Row>, bool) -> (bool, f64),
) -> Option<bool> {
    let (_, first_s) = part(take(rows, FIRST_ROWS), false);
    let rows_a_part = (PART_S / first_s * f64::from(FIRST_ROWS)) as Row;
    if rows_a_part == 0 || rows.len() / HELPED.len() < rows_a_part as usize {
        return None;
    }
    // The faster of the two parts of each: what disturbs one only slows it.
    let (mut alone_s, mut helped_s) = (f64::INFINITY, f64::INFINITY);
    for is_helped in HELPED {
        let (had_helper, s) = part(take(rows, rows_a_part), is_helped);
        let best = if had_helper { &mut helped_s } else { &mut alone_s };
        *best = best.min(s);
    }
    Some(helped_s < alone_s * MOST_OF_ALONE)
}

/// The next rows, which then are not among `rows` any more.
fn take(rows: &mut Range<Row>, count: Row) -> Range<Row> {
    let first = rows.start;
    rows.start = rows.end.min(first.saturating_add(count));
    first..rows.start
}

#[cfg(all(test, not(loom)))]
mod tests;
