//! Counting as a whole: which events a choice of metrics takes, in which groups they are counted
//! here, and a thread that does it while others work.
//!
//! ```text
//!   metrics ──table──► events ──tried on this machine──► groups ──► rotation ──► stream
//!                                │ no such event: left out, with the reason
//!                                │ does not fit (a watchdog holds a counter): smaller groups
//!                                └ none at all: software events only, and why
//! ```

mod trial;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use workahead_machine::Machine;
use workahead_machine::evidence_tier::{CounterState, Counters};
use workahead_machine::topology::Core;

use crate::event::{Event, Privilege};
use crate::metric::{self, Metric};
use crate::process_accounting::ProcessAccounting;
use crate::rotation::{Pace, Rotation};
use crate::source::Source;
use crate::stream::{CORE_CPUS_MAX, Group, Header, Stream, UncountedEvent, bounded};
use crate::table::Table;
use crate::target::Targets;

use trial::Trial;

/// The choice of counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Groups of metrics; `all` stands for every group.
    pub metrics: Vec<String>,
    /// User code, the kernel, or both.
    pub privileges: Vec<Privilege>,
    /// How long each group of events is counted.
    pub slot_s: f64,
    /// Seed of the order.
    pub seed: u64,
    /// General counters that are left free: a profile takes one, and slots in which it took ours
    /// would be lost.
    pub spare: u8,
}

/// A choice as one machine counts it.
#[derive(Debug, Clone)]
pub struct Counter {
    header: Header,
    rotation: Rotation,
}

impl Counter {
    /// Finds out how much of a choice this machine counts. Events that can't be counted are left
    /// out, each with its reason.
    #[must_use]
    pub fn prepare(
        choice: &Choice,
        table: Option<&Table>,
        source: &mut dyn Source,
        machine: &Machine,
    ) -> Self {
        let (tried, lacks) = match table {
            Some(table) => match Trial::of(choice, table, source) {
                Ok(tried) => (tried, None),
                Err(error) => (Trial::default(), Some(error.to_string())),
            },
            None => (Trial::default(), Some("no table of events for this processor".to_owned())),
        };
        let with = |events: &Vec<Event>, privilege: &Privilege| Group {
            events: events.clone(),
            privilege: *privilege,
        };
        let mut groups: Vec<Group> = choice
            .privileges
            .iter()
            .flat_map(|privilege| tried.groups.iter().map(|events| with(events, privilege)))
            .collect();
        let is_system = |name: &String| name == SYSTEM || name == ALL;
        if groups.is_empty() || choice.metrics.iter().any(is_system) {
            groups.push(with(&Table::software().events().cloned().collect(), &Privilege::Both));
        }
        let mut metrics = choice.metrics.clone();
        if lacks.is_some() && !metrics.iter().any(is_system) {
            metrics.push(SYSTEM.to_owned());
        }
        let processor = machine.processor.clone();
        let header = Header {
            table: table.map(|table| table.name.clone()),
            metrics,
            machine: processor.map_or_else(|| "unknown processor".to_owned(), bounded),
            cores: cores(machine),
            groups: groups.clone(),
            slot_s: choice.slot_s,
            lacks: lacks.map(bounded),
            left_out: tried.left_out,
            ..Header::default()
        };
        let rotation = Rotation { groups, slot_s: choice.slot_s, seed: choice.seed };
        Self { header, rotation }
    }

    /// With the machine's reason for having no counters, where known: a failed call gives none.
    #[must_use]
    pub fn explained(mut self, machine: &Machine) -> Self {
        let Counters { state, reason, .. } = &machine.counters;
        if self.header.lacks.is_some() && *state != CounterState::Present {
            self.header.lacks = Some(bounded(reason.clone()));
        }
        self
    }

    /// The same by process accounting, for machines that count software events only: it costs
    /// nothing between two readings. `None` where the processor counts.
    #[must_use]
    pub fn by_process_accounting(&self, accounts: &ProcessAccounting) -> Option<Self> {
        self.header.lacks.as_ref()?;
        let mut counter = self.clone();
        let mut events: Vec<Event> = Vec::new();
        for event in Table::software().events() {
            match accounts.lacks(event) {
                None => events.push(event.clone()),
                Some(why) => counter
                    .header
                    .left_out
                    .push(UncountedEvent { event: event.name.clone(), why: why.to_owned() }),
            }
        }
        counter.header.groups = vec![Group { events, privilege: Privilege::Both }];
        counter.rotation.groups = counter.header.groups.clone();
        Some(counter)
    }

    /// Slots of such a length that a window holds whole rounds.
    #[must_use]
    pub fn fitted(mut self, window_s: f64) -> Self {
        self.rotation = self.rotation.fitted(window_s);
        self.header.slot_s = self.rotation.slot_s;
        self
    }

    /// The events and their groups.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Starts counting on a thread of its own, with the `first` slot of the rotation.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(
        &self,
        first: u64,
        mut targets: Box<dyn Targets>,
        mut source: Box<dyn Source + Send>,
    ) -> std::io::Result<Running> {
        let progress = Arc::new(Progress::default());
        let mut pace = Real { begun: Instant::now(), progress: Arc::clone(&progress) };
        let Self { mut header, rotation } = self.clone();
        header.target = targets.description();
        let run = move || {
            let mut stream = Stream { header, slots: Vec::new() };
            let mut keep = |slot| stream.slots.push(slot);
            let ended = rotation.run(first, &mut *source, &mut *targets, &mut pace, &mut keep);
            pace.progress.counts();
            if let Some(error) = ended {
                let early = format!("counting ended early: {error}");
                let lacks = stream.header.lacks.take();
                let why = lacks.map_or(early.clone(), |why| format!("{why}; {early}"));
                stream.header.lacks = Some(bounded(why));
            }
            stream
        };
        let thread = std::thread::Builder::new().name("counters".to_owned()).spawn(run)?;
        Ok(Running { thread, progress })
    }
}

/// The group of metrics that the kernel counts everywhere.
const SYSTEM: &str = "system";

/// Every group of metrics.
pub const ALL: &str = "all";

/// Logical CPUs by core; none of a machine, surely virtual, that has more in one than a recording
/// may: it would not be read again.
fn cores(machine: &Machine) -> Vec<Vec<u32>> {
    let of_core =
        |core: &Core| core.cpus.iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    let cores: Vec<Vec<u32>> = machine.cores.iter().map(of_core).collect();
    if cores.iter().any(|core| core.len() > CORE_CPUS_MAX) { Vec::new() } else { cores }
}

/// The metrics of some groups; `all` stands for every group. Unknown names choose nothing.
#[must_use]
pub fn chosen(groups: &[String]) -> Vec<&'static Metric> {
    let is_chosen = |group: &String| groups.iter().any(|name| name == group || name == ALL);
    metric::catalogue().iter().filter(|metric| metric.groups.iter().any(is_chosen)).collect()
}

/// Counting in progress.
#[derive(Debug)]
pub struct Running {
    thread: JoinHandle<Stream>,
    progress: Arc<Progress>,
}

impl Running {
    /// Waits until the first slot counts, or counting has ended.
    pub fn begun(&self) {
        self.progress.await_counting();
    }

    /// Stops counting, cutting the current slot short, and returns the counts.
    #[must_use]
    pub fn end(self) -> Stream {
        self.progress.stop();
        self.thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    }
}

/// Stops a rotation, and wakes a caller that waits for its first slot.
#[derive(Debug, Default)]
struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    counts: bool,
    is_stopped: bool,
}

impl Progress {
    fn stop(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_stopped = true;
        }
        self.changed.notify_all();
    }

    fn counts(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.counts = true;
        }
        self.changed.notify_all();
    }

    fn await_counting(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        while !state.counts {
            match self.changed.wait(state) {
                Ok(guard) => state = guard,
                Err(_) => return,
            }
        }
    }
}

/// The machine's own time (CLOCK_MONOTONIC, never that of the counters: virtual machines are known
/// to get the latter wrong).
struct Real {
    begun: Instant,
    progress: Arc<Progress>,
}

impl Pace for Real {
    fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn wait_until(&mut self, then_s: f64) -> bool {
        // A rotation that waits has opened its counters.
        self.progress.counts();
        let Ok(mut state) = self.progress.state.lock() else { return false };
        loop {
            let left_s = then_s - self.now_s();
            if state.is_stopped || left_s <= 0.0 {
                return !state.is_stopped;
            }
            let left = Duration::from_secs_f64(left_s);
            match self.progress.changed.wait_timeout(state, left) {
                Ok((guard, _)) => state = guard,
                Err(_) => return false,
            }
        }
    }
}
