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
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::bus::BusCounts;
use crate::core::Processor;
use crate::hierarchy::Found;
use crate::op::{Op, Script};
use crate::preset::{Preset, PresetError};
use crate::run::{Ran, Slices, Thread, run};
use crate::schedule::{Figures, Group, Schedule, Task, WEIGHT, schedule};
use crate::ticks::Ticks;

pub use direct::Ahead;
pub use helper::Orders;
pub use recorder::{Costs, Recorder, Written};

use direct::DirectScript;
use hardware::{HardwareScript, Queue};
use helper::{HelperScript, Slots};
use pages::Pages;
use recorder::Said;

/// A main thread of a run.
#[derive(Debug, Clone, Copy)]
pub struct Main {
    /// Its logical CPU.
    pub cpu: usize,
    /// Its helper, if it has one, and the helper's CPU.
    pub helper: Option<(usize, Helping)>,
}

/// Kind of helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helping {
    /// A thread that serves its work-ahead set.
    Set(Orders),
    /// Hardware beside the core that queues a number of posts and loads them, dropping the oldest:
    /// no thread, no stores, nothing to clear a pipeline for (L4.1).
    Hardware {
        /// Capacity of the queue.
        posts: usize,
    },
    /// A thread that reads the input itself (S4.25).
    Direct(Ahead),
}

/// End of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// When all main threads have finished.
    #[default]
    All,
    /// When the first main thread has finished (S4.24).
    First,
}

/// Other threads on the CPUs.
pub enum Among {
    /// None: walks on one CPU take turns, a long slice each.
    Nobody,
    /// Tasks in groups and address spaces of their own. Main threads and helpers are one group.
    Others {
        /// The other tasks; they end with the walks.
        tasks: Vec<Task<'static>>,
        /// How all of them share the CPUs.
        schedule: Schedule,
        /// Working set of the walks, for disciplines that use it.
        working_set_bytes: u64,
    },
}

/// The result of walks.
#[derive(Debug, Clone)]
pub struct Walked {
    /// By CPU and by thread: main threads in their order, then helpers, then other tasks.
    pub ran: Ran,
    /// Run-queue figures, if other tasks share the CPUs.
    pub figures: Option<Figures>,
    /// Where the accesses of each CPU found their lines.
    pub found: Vec<Found>,
    /// Counts of the bus.
    pub bus: BusCounts,
    /// Entries that helpers loaded, and polls of unchanged entries.
    pub helped: (u64, u64),
    /// Rows that each main thread reported as done ([`Recorder::passes`]).
    pub passed: Vec<u32>,
}

/// The group of walks: those of other tasks are numbers of address spaces.
const WALKS: u64 = u64::MAX;

/// Chunks of a recording that may wait for the model: a bound on memory, and room to run ahead.
const CHUNKS: usize = 4;

/// The recording end of a channel, for the thread that walks.
#[derive(Debug)]
pub struct Telling(SyncSender<Vec<Said>>);

/// The replaying end of a channel, for the model.
#[derive(Debug)]
pub struct Told(Receiver<Vec<Said>>);

/// A channel from a walk to the model.
#[must_use]
pub fn recording() -> (Telling, Told) {
    let (sender, receiver) = sync_channel(CHUNKS);
    (Telling(sender), Told(receiver))
}

impl Telling {
    /// The memory for the walk of main thread number `thread`.
    #[must_use]
    pub fn recorder(self, thread: usize, costs: Costs) -> Recorder {
        Recorder::new(thread, costs, self.0)
    }
}

/// The thread of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The main thread with this number.
    Main(usize),
    /// The direct helper of that main thread, which only starts rows.
    Ahead(usize),
}

/// Runs main threads and their helpers on a machine with empty caches. `walk` is called once for
/// each main thread and each direct helper, on a thread of its own, with its recorder.
///
/// # Errors
/// If the machine is impossible, or a thread is placed on a CPU it doesn't have.
///
/// # Panics
/// As [`schedule`], with other tasks.
pub fn run_walks(
    preset: &Preset,
    (mains, costs): (&[Main], Costs),
    among: Among,
    walk: impl Fn(Part, Recorder) + Sync,
) -> Result<Walked, PresetError> {
    std::thread::scope(|scope| {
        let started = mains.iter().enumerate().map(|(number, main)| {
            let start = |part: Part| {
                let (telling, told) = recording();
                let walk = &walk;
                scope.spawn(move || walk(part, telling.recorder(number, costs)));
                told
            };
            let told = start(Part::Main(number));
            let direct = matches!(main.helper, Some((_, Helping::Direct(_))));
            (*main, told, direct.then(|| start(Part::Ahead(number))))
        });
        run_told(preset, started.collect(), Until::All, among)
    })
}

/// [`run_walks`] for recordings made elsewhere: each main thread's and, if it has one, its direct
/// helper's.
///
/// # Errors
/// If the machine is impossible, or a thread is placed on a CPU it doesn't have.
///
/// # Panics
/// As [`schedule`], with other tasks.
pub fn run_told(
    preset: &Preset,
    mains: Vec<(Main, Told, Option<Told>)>,
    until: Until,
    among: Among,
) -> Result<Walked, PresetError> {
    let mut processor = Processor::new(preset)?;
    let placed = mains.iter().flat_map(|(main, ..)| {
        std::iter::once(main.cpu).chain(main.helper.iter().map(|(cpu, _)| *cpu))
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
    let mut stage = Stage { until, ..Stage::default() };
    for (main, told, ahead) in mains {
        stage.add(main, told, ahead);
    }
    let Stage { mut threads, helpers, mut placement, helper_placement, .. } = stage;
    threads.extend(helpers);
    placement.extend(helper_placement);
    let (ran, figures) = match among {
        Among::Nobody => (run(&mut processor, threads, &placement, Slices::default()), None),
        Among::Others { tasks, schedule: by, working_set_bytes } => {
            let group = Group::new(WALKS);
            let walks = threads.into_iter().zip(placement).map(|(thread, cpu)| Task {
                thread,
                cpu,
                weight: WEIGHT,
                group,
                working_set_bytes,
            });
            let (ran, figures) = schedule(&mut processor, walks.chain(tasks).collect(), &by);
            (ran, Some(figures))
        }
    };
    let helped = *stage.shared.helped.borrow();
    let passed = stage.passed.iter().map(|passed| passed.get()).collect();
    let (found, bus) = (processor.hierarchy.found.clone(), processor.hierarchy.bus.counts);
    Ok(Walked { ran, figures, found, bus, helped, passed })
}

/// Threads of a run before it starts.
#[derive(Default)]
struct Stage {
    until: Until,
    threads: Vec<Thread<'static>>,
    helpers: Vec<Thread<'static>>,
    placement: Vec<usize>,
    helper_placement: Vec<usize>,
    shared: Shared,
    passed: Vec<Rc<Cell<u32>>>,
}

/// State shared by all threads of a run.
#[derive(Clone, Default)]
struct Shared {
    pages: Rc<RefCell<Pages>>,
    /// Entries that helpers loaded, and polls in vain.
    helped: Rc<RefCell<(u64, u64)>>,
    /// Whether the run is over.
    over: Rc<Cell<bool>>,
}

impl Stage {
    fn add(&mut self, main: Main, told: Told, ahead: Option<Told>) {
        let (number, shared) = (self.threads.len(), self.shared.clone());
        let passed = Rc::new(Cell::new(0));
        let slots = Rc::new(RefCell::new(Slots::default()));
        let mut posts = Posts::Stored(Rc::clone(&slots));
        let helper: Option<Box<dyn Script>> = match main.helper.map(|(_, helping)| helping) {
            None => None,
            Some(Helping::Set(orders)) => Some(Box::new(HelperScript::new(orders, slots, shared))),
            Some(Helping::Hardware { posts: most }) => {
                let queue = Rc::new(RefCell::new(Queue::of(most)));
                posts = Posts::Given(Rc::clone(&queue));
                Some(Box::new(HardwareScript::new(queue, shared)))
            }
            Some(Helping::Direct(orders)) => ahead.map(|ahead| -> Box<dyn Script> {
                Box::new(DirectScript::new((orders, number), ahead, Rc::clone(&passed), shared))
            }),
        };
        let script = MainScript {
            tape: Tape::of(told),
            shared: self.shared.clone(),
            posts,
            passed: Rc::clone(&passed),
            until: self.until,
        };
        self.passed.push(passed);
        self.threads.push(Thread { script: Box::new(script), space: 0, attends: false });
        self.placement.push(main.cpu);
        if let (Some(script), Some((cpu, _))) = (helper, main.helper) {
            self.helpers.push(Thread { script, space: 0, attends: true });
            self.helper_placement.push(cpu);
        }
    }
}

/// A recording as a sequence of events.
struct Tape {
    receiver: Receiver<Vec<Said>>,
    chunk: std::vec::IntoIter<Said>,
}

impl Tape {
    fn of(told: Told) -> Self {
        Self { receiver: told.0, chunk: Vec::new().into_iter() }
    }

    #[inline]
    fn next(&mut self) -> Option<Said> {
        if let Some(said) = self.chunk.next() {
            return Some(said);
        }
        // The walk's end closes the channel.
        self.chunk = self.receiver.recv().ok()?.into_iter();
        self.chunk.next()
    }
}

/// Destination of posts.
enum Posts {
    /// Memory, which a helper polls.
    Stored(Rc<RefCell<Slots>>),
    /// Hardware, by an instruction.
    Given(Rc<RefCell<Queue>>),
}

/// Replays the recording of a main thread, and shows its posts to the helper when they are made.
struct MainScript {
    tape: Tape,
    shared: Shared,
    posts: Posts,
    passed: Rc<Cell<u32>>,
    until: Until,
}

impl Script for MainScript {
    #[inline]
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if self.shared.over.get() {
            return None;
        }
        loop {
            let Some(said) = self.tape.next() else {
                self.shared.over.set(self.until == Until::First);
                return None;
            };
            let op = match said {
                Said::Op(op) => op,
                Said::Post { slot, shape, pointer } => match &self.posts {
                    Posts::Stored(slots) => {
                        slots.borrow_mut().post(slot, shape, pointer);
                        Op::Store { address: shape.address(slot), bytes: Slots::BYTES }
                    }
                    Posts::Given(queue) => {
                        queue.borrow_mut().post(pointer, shape.dummy);
                        Op::Compute { uops: 1 }
                    }
                },
                Said::Passed { rows, tells } => {
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
