//! Main and helper together.

use workahead_machine::clock::{ElapsedTime, Moment};
use workahead_machine::cpus::CpuSet;
use workahead_machine::{Error, pin};

use super::helper::{Helper, HelperReport};
use super::set::{Deduplicate, Stage, WorkAheadSet, drive};
use super::slots::{Guard, Slots, States};
use super::touch::touch;
use crate::isa::Isa;
use crate::memory::{Direct, Memory};
use crate::place::{LINE_BYTES, References};
use crate::walk::{Rows, Sink, Walk};

/// A walk whose places a helper may load at any time.
///
/// # Safety
/// Every place the walk asks for, or names as an input, must stay mapped for as long as the walk
/// exists: tables it borrows or owns and never reallocates.
pub unsafe trait Preloadable: Walk {
    /// A helper's load for a place: the bytes of the aligned block around it, a power of two of
    /// at least a line. The paper's line of L2 is 128 bytes, a whole node of its tree.
    const BLOCK_BYTES: usize = LINE_BYTES;
}

/// The lines of the aligned block around an address, that of the address first. A block of a page
/// at most lies in the page of its address, so that each line is mapped where one is.
#[inline(always)]
fn block_lines(address: usize, block_bytes: usize) -> impl Iterator<Item = usize> {
    debug_assert!(block_bytes.is_power_of_two() && block_bytes <= 4096);
    (0..block_bytes / LINE_BYTES).map(move |line| address ^ (line * LINE_BYTES))
}

/// The set's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Pointers in the set: the paper's size, and its threshold `t`. 128 is the paper's choice.
    pub size: usize,
    /// Locked slots or not.
    pub guard: Guard,
    /// Where the states lie.
    pub states: States,
    /// Duplicates left out by `post` or not.
    pub deduplicate: Deduplicate,
    /// The helper's orders; `None` runs the staged operator alone, posting for nobody.
    pub helper: Option<Helper>,
}

impl Options {
    /// The slots of a set for a walk.
    fn slots<W: Walk>(&self) -> Slots<W::Asks> {
        match self.states {
            States::Together => Slots::of_pairs::<Stage<W::Cursor>>(self.size, self.guard),
            States::Apart => Slots::of_size(self.size, self.guard),
        }
    }
}

/// Where the helper runs.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The helper's CPU; the main thread stays where it is.
    pub helper_cpu: usize,
    /// CPUs the process may use.
    pub allowed: &'a CpuSet,
}

/// The helper's counts, and the CPU time it took for them.
#[derive(Debug, Clone, Copy)]
pub struct HelperRun {
    /// Entries, waits and laps.
    pub report: HelperReport,
    /// The helper's own time.
    pub elapsed: ElapsedTime,
}

/// Ends the helper when the main thread leaves, by whatever way.
struct Finish<'s, A: References>(&'s Slots<A>);

impl<A: References> Drop for Finish<'_, A> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Runs all `rows` of a walk through a work-ahead set, with a helper if there is to be one.
///
/// The main thread never waits for the helper, which may start late, stop or die: the hits are the
/// same. (Locked slots are the exception, [`Guard::Mutex`].) Only the end of the run waits, for the
/// load the helper is at: it must not outlive the memory it loads. `None` is returned for a helper
/// that was not requested, could not be started or did not live to report.
///
/// # Errors
/// When the helper's CPU is not allowed; then nothing has run.
pub fn run<W: Preloadable, S: Sink<W::Hit>>(
    isa: impl Isa,
    walk: &mut W,
    rows: &mut Rows,
    options: Options,
    placement: Placement<'_>,
    sink: &mut S,
) -> Result<Option<HelperRun>, Error> {
    let load = |address| {
        for line in block_lines(address, W::BLOCK_BYTES) {
            // SAFETY: a slot holds the dummy or a place of `walk`, which by `Preloadable` stays
            // mapped while the walk exists, and so does its page; the borrow of it outlives the
            // helper, which `run_loading` waits for.
            unsafe { touch(line as *const u8) }
        }
    };
    run_loading(isa, (walk, rows), (options, placement), sink, load)
}

/// The main thread's part alone, over a memory of one's own, which receives what is posted: for
/// models, which have helpers of their own.
pub fn post_over<W: Walk, M: Memory, S: Sink<W::Hit>>(
    walk: &mut W,
    rows: &mut Rows,
    options: Options,
    memory: &mut M,
    sink: &mut S,
) {
    let slots = options.slots::<W>();
    let set = WorkAheadSet::new(&slots, options.size, options.deduplicate);
    drive(walk, rows, set, memory, sink);
}

/// [`run`] with a load of one's own: tests have helpers here that are slow, stop or die.
pub(super) fn run_loading<W: Walk, S: Sink<W::Hit>>(
    isa: impl Isa,
    (walk, rows): (&mut W, &mut Rows),
    (options, placement): (Options, Placement<'_>),
    sink: &mut S,
    load: impl FnMut(usize) + Send,
) -> Result<Option<HelperRun>, Error> {
    let slots = options.slots::<W>();
    let set = WorkAheadSet::new(&slots, options.size, options.deduplicate);
    let Some(helper) = options.helper else {
        isa.run(
            #[inline(always)]
            || drive(walk, rows, set, &mut Direct, sink),
        );
        return Ok(None);
    };
    let slots = &slots;
    beside(
        placement,
        move || helper.run(slots, load),
        || {
            let _finish = Finish(slots);
            isa.run(
                #[inline(always)]
                || drive(walk, rows, set, &mut Direct, sink),
            );
        },
    )
}

/// Runs `main` while `serve` runs on the helper's CPU, which must end soon after `main` has.
pub(super) fn beside(
    placement: Placement<'_>,
    serve: impl FnOnce() -> HelperReport + Send,
    main: impl FnOnce(),
) -> Result<Option<HelperRun>, Error> {
    let (mut serve, mut main) = (Some(serve), Some(main));
    start_beside(placement, &mut || serve.take().expect("called once")(), &mut || {
        main.take().expect("called once")()
    })
}

/// Starts a thread: compiled once, and not for every walk.
fn start_beside(
    Placement { helper_cpu, allowed }: Placement<'_>,
    serve: &mut (dyn FnMut() -> HelperReport + Send),
    main: &mut dyn FnMut(),
) -> Result<Option<HelperRun>, Error> {
    if !allowed.contains(helper_cpu) {
        let _ = pin::to(helper_cpu, allowed)?;
    }
    std::thread::scope(|scope| {
        let pinned = move || {
            let _pinned = pin::to(helper_cpu, allowed).ok()?;
            let moment = Moment::now();
            let report = serve();
            Some(HelperRun { report, elapsed: moment.elapsed() })
        };
        // A thread that the system refuses is a helper that is dead from the start.
        let serving = std::thread::Builder::new().spawn_scoped(scope, pinned).ok();
        main();
        Ok(serving.and_then(|serving| serving.join().ok().flatten()))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_loaded_line_by_line_and_nothing_beyond_it() {
        let lines = |address, bytes| block_lines(address, bytes).collect::<Vec<_>>();
        assert_eq!(lines(0x1000, 64), [0x1000]);
        assert_eq!(lines(0x1080, 128), [0x1080, 0x10c0]);
        assert_eq!(lines(0x10c8, 128), [0x10c8, 0x1088], "the place is in the second line");
        let all = lines(0x1fc0, 4096);
        assert_eq!(all.len(), 64);
        assert!(all.iter().all(|line| line / 4096 == 1), "no other page");
    }
}
