//! Walks on a modelled machine: the code that also runs natively, with its accesses sent to the
//! model.
//!
//! ```text
//!   a thread per walk: schedule ── walk ─► Recorder ──chunks──┐   hits also go to their sink:
//!                                                             ▼   answers are checked
//!   the model:        main's script ── Post ──► set ──► helper's script, which reacts in the
//!                          │                               │      machine's own time
//!                          └───────────► processor ◄───────┘
//! ```
//!
//! A main thread's accesses depend on no other thread (Zhou et al. 2005, section 4), so they can be
//! recorded ahead of the model; a helper's depend on what was posted by then, so it is a script
//! that reads the set. Addresses of this process become pages in the order in which the model first
//! touches them, which is the same in every process.

mod direct;
mod hardware;
mod helper;
mod pages;
mod recorder;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::bus::BusCounts;
use crate::core::Processor;
use crate::hierarchy::AccessCounts;
use crate::op::{Op, Script};
use crate::preset::{Preset, PresetError};
use crate::run::{RunResult, Slices, Thread, run};
use crate::scheduler::{Figures, Group, Scheduler, Task, WEIGHT, run_tasks};
use crate::ticks::Ticks;

pub use direct::DirectHelperOptions;
pub use helper::HelperOptions;
pub use recorder::{BatchLayout, BatchSink, Costs, Recorder};

use direct::DirectScript;
use hardware::{HardwareScript, Queue};
use helper::{HelperScript, Slots};
use pages::Pages;
use recorder::Event;

/// A main thread of a run.
#[derive(Debug, Clone, Copy)]
pub struct Main {
    /// Its logical CPU.
    pub cpu: usize,
    /// Its helper, if it has one.
    pub helper: Option<Helper>,
}

/// The helper of a main thread.
#[derive(Debug, Clone, Copy)]
pub struct Helper {
    /// Its logical CPU.
    pub cpu: usize,
    /// Its kind.
    pub kind: HelperKind,
}

/// AccessKind of helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperKind {
    /// A thread that serves its work-ahead set.
    Set(HelperOptions),
    /// Hardware beside the core that queues a number of posts and loads them, dropping the oldest:
    /// no thread, no stores, nothing to clear a pipeline for (L4.1).
    Hardware {
        /// Capacity of the queue.
        posts: usize,
    },
    /// A thread that reads the input itself (S4.25).
    Direct(DirectHelperOptions),
}

/// End of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunEnd {
    /// When all main threads have finished.
    #[default]
    All,
    /// When the first main thread has finished (S4.24).
    First,
}

/// Other threads on the CPUs.
pub enum CoRunners {
    /// None: walks on one CPU take turns, a long slice each.
    None,
    /// Tasks in groups and address spaces of their own. Main threads and helpers are one group.
    Tasks {
        /// The other tasks; they end with the walks.
        tasks: Vec<Task<'static>>,
        /// How all of them share the CPUs.
        scheduler: Scheduler,
        /// Working set of the walks, for disciplines that use it.
        working_set_bytes: u64,
    },
}

/// The result of walks.
#[derive(Debug, Clone)]
pub struct WalksResult {
    /// By CPU and by thread: main threads in their order, then helpers, then other tasks.
    pub run: RunResult,
    /// Run-queue figures, if other tasks share the CPUs.
    pub figures: Option<Figures>,
    /// Where the accesses of each CPU found their lines.
    pub found: Vec<AccessCounts>,
    /// Counts of the bus.
    pub bus: BusCounts,
    /// Counts of all helpers.
    pub helpers: HelperCounts,
    /// Rows that each main thread reported as done ([`Recorder::report`]).
    pub passed: Vec<u32>,
}

/// Counts of the helpers of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HelperCounts {
    /// Entries loaded.
    pub entries: u64,
    /// Polls of unchanged entries.
    pub waits: u64,
}

/// The group of walks: those of other tasks are numbers of address spaces.
const WALKS: u64 = u64::MAX;

/// Chunks of a recording that may wait for the model: a bound on memory, and room to run ahead.
const CHUNKS: usize = 4;

/// The recording end of a channel, for the thread that walks.
#[derive(Debug)]
pub struct RecordingSender(SyncSender<Vec<Event>>);

/// The replaying end of a channel, for the model.
#[derive(Debug)]
pub struct RecordingReceiver(Receiver<Vec<Event>>);

/// A main thread with its recordings.
#[derive(Debug)]
pub struct RecordedMain {
    /// The main thread.
    pub main: Main,
    /// Its recording.
    pub recording: RecordingReceiver,
    /// The recording of its direct helper, if it has one.
    pub direct_helper: Option<RecordingReceiver>,
}

/// A channel from a walk to the model.
#[must_use]
pub fn recording_channel() -> (RecordingSender, RecordingReceiver) {
    let (sender, receiver) = sync_channel(CHUNKS);
    (RecordingSender(sender), RecordingReceiver(receiver))
}

impl RecordingSender {
    /// The memory for the walk of main thread number `thread`.
    #[must_use]
    pub fn recorder(self, thread: usize, costs: Costs) -> Recorder {
        Recorder::new(thread, costs, self.0)
    }
}

/// The thread of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkThread {
    /// The main thread with this number.
    Main(usize),
    /// The direct helper of that main thread, which only starts rows.
    DirectHelper(usize),
}

/// Runs main threads and their helpers on a machine with empty caches. `walk` is called once for
/// each main thread and each direct helper, on a thread of its own, with its recorder. Once `stop`
/// is set the model ends; walks are not interrupted, and should look at it themselves.
///
/// # Errors
/// If the machine is impossible, or a thread is placed on a CPU it doesn't have.
///
/// # Panics
/// As [`run_tasks`], with other tasks.
pub fn run_walks(
    preset: &Preset,
    mains: &[Main],
    co_runners: CoRunners,
    stop: &AtomicBool,
    walk: &(dyn Fn(WalkThread, Recorder) + Sync),
) -> Result<WalksResult, PresetError> {
    let costs = Costs::on(preset);
    std::thread::scope(|scope| {
        let started = mains.iter().enumerate().map(|(number, main)| {
            let start = |part: WalkThread| {
                let (sender, recording) = recording_channel();
                scope.spawn(move || walk(part, sender.recorder(number, costs)));
                recording
            };
            let recording = start(WalkThread::Main(number));
            let has_direct =
                matches!(main.helper, Some(Helper { kind: HelperKind::Direct(_), .. }));
            let direct_helper = has_direct.then(|| start(WalkThread::DirectHelper(number)));
            RecordedMain { main: *main, recording, direct_helper }
        });
        run_recorded(preset, started.collect(), RunEnd::All, co_runners, stop)
    })
}

/// [`run_walks`] for recordings made elsewhere: each main thread's and, if it has one, its direct
/// helper's.
///
/// # Errors
/// If the machine is impossible, or a thread is placed on a CPU it doesn't have.
///
/// # Panics
/// As [`run_tasks`], with other tasks.
pub fn run_recorded(
    preset: &Preset,
    mains: Vec<RecordedMain>,
    until: RunEnd,
    co_runners: CoRunners,
    stop: &AtomicBool,
) -> Result<WalksResult, PresetError> {
    let mut processor = Processor::new(preset)?;
    let placed = mains.iter().flat_map(|RecordedMain { main, .. }| {
        std::iter::once(main.cpu).chain(main.helper.iter().map(|helper| helper.cpu))
    });
    let cpus = preset.cpus() as usize;
    if let Some(cpu) = placed.into_iter().find(|cpu| *cpu >= cpus) {
        return Err(PresetError::Range {
            name: preset.name.clone(),
            what: "the CPU of a thread".to_owned(),
            value: cpu as f64,
            range: "what the machine has: see `workahead simulate --machine NAME --describe`",
        });
    }
    let mut run_threads = RunThreads { until, ..RunThreads::default() };
    for main in mains {
        run_threads.add(main);
    }
    let RunThreads { mut threads, helpers, mut placement, helper_placement, .. } = run_threads;
    threads.extend(helpers);
    placement.extend(helper_placement);
    let (run, figures) = match co_runners {
        CoRunners::None => {
            (run(&mut processor, threads, &placement, Slices::default(), stop), None)
        }
        CoRunners::Tasks { tasks, scheduler: by, working_set_bytes } => {
            let group = Group::new(WALKS);
            let walks = threads.into_iter().zip(placement).map(|(thread, cpu)| Task {
                thread,
                cpu,
                weight: WEIGHT,
                group,
                working_set_bytes,
            });
            let (run, figures) = run_tasks(&mut processor, walks.chain(tasks).collect(), &by, stop);
            (run, Some(figures))
        }
    };
    let helpers = *run_threads.shared.helper_counts.borrow();
    let passed = run_threads.passed.iter().map(|passed| passed.get()).collect();
    let (found, bus) = (processor.hierarchy.found.clone(), processor.hierarchy.bus.counts);
    Ok(WalksResult { run, figures, found, bus, helpers, passed })
}

/// Threads of a run before it starts.
#[derive(Default)]
struct RunThreads {
    until: RunEnd,
    threads: Vec<Thread<'static>>,
    helpers: Vec<Thread<'static>>,
    placement: Vec<usize>,
    helper_placement: Vec<usize>,
    shared: SharedState,
    passed: Vec<Rc<Cell<u32>>>,
}

/// State shared by all threads of a run.
#[derive(Clone, Default)]
struct SharedState {
    pages: Rc<RefCell<Pages>>,
    helper_counts: Rc<RefCell<HelperCounts>>,
    /// Whether the run is over.
    over: Rc<Cell<bool>>,
}

impl RunThreads {
    fn add(&mut self, recorded: RecordedMain) {
        let RecordedMain { main, recording, direct_helper } = recorded;
        let (number, shared) = (self.threads.len(), self.shared.clone());
        let passed = Rc::new(Cell::new(0));
        let slots = Rc::new(RefCell::new(Slots::default()));
        let mut posts = PostTarget::Memory(Rc::clone(&slots));
        let helper: Option<Box<dyn Script>> = match main.helper.map(|helper| helper.kind) {
            None => None,
            Some(HelperKind::Set(options)) => {
                Some(Box::new(HelperScript::new(options, slots, shared)))
            }
            Some(HelperKind::Hardware { posts: most }) => {
                let queue = Rc::new(RefCell::new(Queue::of(most)));
                posts = PostTarget::Hardware(Rc::clone(&queue));
                Some(Box::new(HardwareScript::new(queue, shared)))
            }
            Some(HelperKind::Direct(options)) => direct_helper.map(|it| -> Box<dyn Script> {
                Box::new(DirectScript::new(options, number, it, Rc::clone(&passed), shared))
            }),
        };
        let script = MainScript {
            replay: Replay::of(recording),
            shared: self.shared.clone(),
            posts,
            passed: Rc::clone(&passed),
            until: self.until,
        };
        self.passed.push(passed);
        self.threads.push(Thread { script: Box::new(script), space: 0, attends: false });
        self.placement.push(main.cpu);
        if let (Some(script), Some(Helper { cpu, .. })) = (helper, main.helper) {
            self.helpers.push(Thread { script, space: 0, attends: true });
            self.helper_placement.push(cpu);
        }
    }
}

/// A recording as a sequence of events.
struct Replay {
    receiver: Receiver<Vec<Event>>,
    chunk: std::vec::IntoIter<Event>,
}

impl Replay {
    fn of(recording: RecordingReceiver) -> Self {
        Self { receiver: recording.0, chunk: Vec::new().into_iter() }
    }

    #[inline]
    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.chunk.next() {
            return Some(event);
        }
        // The walk's end closes the channel.
        self.chunk = self.receiver.recv().ok()?.into_iter();
        self.chunk.next()
    }
}

/// Destination of posts.
enum PostTarget {
    /// Memory, which a helper polls.
    Memory(Rc<RefCell<Slots>>),
    /// Hardware, by an instruction.
    Hardware(Rc<RefCell<Queue>>),
}

/// Replays the recording of a main thread, and shows its posts to the helper when they are made.
struct MainScript {
    replay: Replay,
    shared: SharedState,
    posts: PostTarget,
    passed: Rc<Cell<u32>>,
    until: RunEnd,
}

impl Script for MainScript {
    #[inline]
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if self.shared.over.get() {
            return None;
        }
        loop {
            let Some(event) = self.replay.next() else {
                self.shared.over.set(self.until == RunEnd::First);
                return None;
            };
            let op = match event {
                Event::Op(op) => op,
                Event::Post { slot, layout, pointer } => match &self.posts {
                    PostTarget::Memory(slots) => {
                        slots.borrow_mut().post(slot, layout, pointer);
                        Op::Store { address: layout.address(slot), bytes: Slots::BYTES }
                    }
                    PostTarget::Hardware(queue) => {
                        queue.borrow_mut().post(pointer, layout.dummy);
                        Op::Compute { uops: 1 }
                    }
                },
                Event::RowsDone { rows, tells } => {
                    self.passed.set(rows);
                    match tells {
                        Some(address) => Op::Store { address, bytes: Slots::BYTES },
                        None => continue,
                    }
                }
            };
            return Some(self.shared.pages.borrow_mut().placed(op));
        }
    }
}
