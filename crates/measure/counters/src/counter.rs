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
use crate::stream::{Group, Header, LeftOut, Stream};
use crate::table::Table;
use crate::target::Targets;

use trial::Trial;

/// What is to be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Groups of metrics; `all` is every one.
    pub metrics: Vec<String>,
    /// Whose work.
    pub privileges: Vec<Privilege>,
    /// How long each group of events is counted.
    pub slot_s: f64,
    /// Of the order.
    pub seed: u64,
    /// General counters that are left free: a profile takes one, and slots in which it took ours
    /// would be lost.
    pub spare: u8,
}

/// What is counted on one machine.
#[derive(Debug, Clone)]
pub struct Counter {
    header: Header,
    rotation: Rotation,
}

impl Counter {
    /// Finds out what of a choice can be counted here. Nothing is refused: what can't be counted is
    /// left out with its reason.
    #[must_use]
    pub fn plan(
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
        let header = Header {
            table: table.map(|table| table.name.clone()),
            metrics,
            machine: machine.processor.clone().unwrap_or_else(|| "unknown processor".to_owned()),
            cores: cores(machine),
            groups: groups.clone(),
            slot_s: choice.slot_s,
            lacks,
            left_out: tried.left_out,
            ..Header::default()
        };
        let rotation = Rotation { groups, slot_s: choice.slot_s, seed: choice.seed };
        Self { header, rotation }
    }

    /// The same with the machine's own reason for having no counters, where it knows one: a call
    /// that fails only says that it did.
    #[must_use]
    pub fn explained(mut self, machine: &Machine) -> Self {
        let Counters { state, reason, .. } = &machine.counters;
        if self.header.lacks.is_some() && *state != CounterState::Present {
            self.header.lacks = Some(reason.clone());
        }
        self
    }

    /// The same by the kernel's accounts of processes, where the kernel's own events are all that
    /// can be counted: they cost nothing between two looks. `None` where a processor counts.
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
                    .push(LeftOut { event: event.name.clone(), why: why.to_owned() }),
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

    /// What is counted in which groups.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Counts from now on, on a thread of its own, beginning with the `first` slot of all.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(
        &self,
        first: u64,
        mut targets: Box<dyn Targets>,
        mut source: Box<dyn Source + Send>,
    ) -> std::io::Result<Running> {
        let over = Arc::new(Over::default());
        let mut pace = Real { begun: Instant::now(), over: Arc::clone(&over) };
        let Self { mut header, rotation } = self.clone();
        header.target = targets.description();
        let run = move || {
            let mut stream = Stream { header, slots: Vec::new() };
            let mut keep = |slot| stream.slots.push(slot);
            let ended = rotation.run(first, &mut *source, &mut *targets, &mut pace, &mut keep);
            pace.over.counts();
            if let Some(error) = ended {
                let early = format!("counting ended early: {error}");
                let lacks = stream.header.lacks.take();
                stream.header.lacks =
                    Some(lacks.map_or(early.clone(), |why| format!("{why}; {early}")));
            }
            stream
        };
        let thread = std::thread::Builder::new().name("counters".to_owned()).spawn(run)?;
        Ok(Running { thread, over })
    }
}

/// The group of metrics that the kernel counts everywhere.
const SYSTEM: &str = "system";

/// Every group of metrics.
pub const ALL: &str = "all";

/// Logical CPUs by core.
fn cores(machine: &Machine) -> Vec<Vec<u32>> {
    let of_core =
        |core: &Core| core.cpus.iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    machine.cores.iter().map(of_core).collect()
}

/// The metrics of some groups; `all` is every one. A name that is none of them chooses nothing.
#[must_use]
pub fn chosen(groups: &[String]) -> Vec<&'static Metric> {
    let is_chosen = |group: &String| groups.iter().any(|name| name == group || name == ALL);
    metric::catalogue().iter().filter(|metric| metric.groups.iter().any(is_chosen)).collect()
}

/// Counting that goes on.
#[derive(Debug)]
pub struct Running {
    thread: JoinHandle<Stream>,
    over: Arc<Over>,
}

impl Running {
    /// Waits until the first slot counts, or nothing will.
    pub fn begun(&self) {
        self.over.await_counting();
    }

    /// Ends it, the current slot cut off: everything that was counted.
    #[must_use]
    pub fn end(self) -> Stream {
        self.over.say();
        self.thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    }
}

/// Tells a rotation to end at once, and a waiting caller that it has begun to count.
#[derive(Debug, Default)]
struct Over {
    state: Mutex<State>,
    told: Condvar,
}

#[derive(Debug, Default)]
struct State {
    counts: bool,
    is_over: bool,
}

impl Over {
    fn say(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_over = true;
        }
        self.told.notify_all();
    }

    fn counts(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.counts = true;
        }
        self.told.notify_all();
    }

    fn await_counting(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        while !state.counts {
            match self.told.wait(state) {
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
    over: Arc<Over>,
}

impl Pace for Real {
    fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn wait_until(&mut self, then_s: f64) -> bool {
        // Who waits has opened its counters.
        self.over.counts();
        let Ok(mut state) = self.over.state.lock() else { return false };
        loop {
            let left_s = then_s - self.now_s();
            if state.is_over || left_s <= 0.0 {
                return !state.is_over;
            }
            let left = Duration::from_secs_f64(left_s);
            match self.over.told.wait_timeout(state, left) {
                Ok((guard, _)) => state = guard,
                Err(_) => return false,
            }
        }
    }
}
