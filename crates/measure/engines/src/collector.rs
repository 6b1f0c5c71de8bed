//! The collection of an engine beside time: counters and a function profile, of a server or of this
//! process, between two edges.
//!
//! ```text
//!   server of ours      a control group of its own, where one can be made   by CPU
//!   another, or ours    its processes, thread by thread                     by CPU
//!   in this process     all threads of it, by CPU
//!   no PMU              the kernel's process accounting, all CPUs together
//! ```

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use workahead_counters::counter::{self, Choice, Counter};
use workahead_counters::event::Privilege;
use workahead_counters::live::Live;
use workahead_counters::metrics::Metrics;
use workahead_counters::penalties::Penalties;
use workahead_counters::process_accounting::ProcessAccounting;
use workahead_counters::profile::{
    self, By, Options, ProfileEvent, Sampler, Target as ProfileTarget,
};
use workahead_counters::rates::Rates;
use workahead_counters::stream::Stream;
use workahead_counters::table::Table;
use workahead_counters::target::{ControlGroup, ProcessTree, Processes, Targets};
use workahead_machine::evidence_tier::CounterState;
use workahead_machine::limits::Limits;
use workahead_machine::process::Tree;
use workahead_machine::process::group::Own;
use workahead_machine::{CpuSet, Machine, Sysroot};
use workahead_study::collection::{Collection, CollectionOptions};
use workahead_study::engine::{EngineContext, Sample};

/// Collects counts and profiles in the samples of one engine.
#[derive(Debug)]
pub struct Collector {
    options: CollectionOptions,
    counter: Option<Counter>,
    /// The control group of the server.
    own: Option<Own>,
    /// Where each cell's rotation goes on.
    next: BTreeMap<String, u64>,
    /// The events that profiles are by, and the reasons for requested ones that are unavailable.
    by: Vec<By>,
    not_by: Vec<String>,
    /// How many samples of each cell have a profile.
    profiled: BTreeMap<String, usize>,
    /// Penalties of misses here, once the machine's limits are known.
    penalties: Option<Penalties>,
}

/// The collection of one sample, while it runs.
pub(crate) struct RunningCollection {
    counts: Option<counter::Running>,
    profile: Option<profile::Running>,
    lacks: Vec<String>,
}

/// The part of a study's collection that applies to a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of them.
    #[default]
    All,
    /// Its counters only.
    Counters,
    /// Its function profile only.
    Profile,
    /// Nothing: to measure the cost of collection.
    Nothing,
}

impl Part {
    /// As studies spell them.
    pub(crate) const NAMED: [(&str, Part); 4] = [
        ("all", Part::All),
        ("counters", Part::Counters),
        ("profile", Part::Profile),
        ("nothing", Part::Nothing),
    ];

    fn counts(self) -> bool {
        matches!(self, Part::All | Part::Counters)
    }

    fn samples(self) -> bool {
        matches!(self, Part::All | Part::Profile)
    }
}

/// The scope of the collection in one sample of a cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectionScope<'a> {
    /// Names the cell: its rotation goes on from sample to sample.
    pub(crate) cell: &'a str,
    /// How long the sample will take, where that is known.
    pub(crate) window_s: Option<f64>,
    /// The processes.
    pub(crate) target: CollectionTarget,
    /// The CPUs that they run on.
    pub(crate) cpus: &'a CpuSet,
    /// The part of the study's collection.
    pub(crate) part: Part,
}

/// The processes to collect from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CollectionTarget {
    /// A server that we started, by its first process: it may be put into a group.
    Ours(u32),
    /// A server that already ran, or this process itself.
    Theirs(u32),
    /// Not visible from here, as on another machine.
    Unseen,
}

impl Collector {
    /// For an engine that is opened; `None` where its study collects nothing.
    #[must_use]
    pub fn of(context: &EngineContext, privileges: &[Privilege]) -> Option<Self> {
        let limits = context.limits.as_ref();
        let options = Some(&context.collection).filter(|options| !options.is_nothing())?;
        Some(Self::new(options, privileges, limits))
    }

    /// Finds out which counters and profiles this machine has.
    fn new(options: &CollectionOptions, privileges: &[Privilege], limits: Option<&Limits>) -> Self {
        let machine = Machine::here();
        let counter = (!options.counters.is_empty()).then(|| {
            let choice = Choice {
                metrics: options.counters.clone(),
                privileges: privileges.to_vec(),
                slot_s: options.slot_s,
                seed: 0,
                spare: u8::from(options.profile_hz > 0),
            };
            Counter::prepare(&choice, Table::here(), &mut Live, &machine).explained(&machine)
        });
        let (by, not_by) = profiles_by(&options.profile_by, &machine);
        Self {
            options: options.clone(),
            counter,
            own: None,
            next: BTreeMap::new(),
            by,
            not_by,
            profiled: BTreeMap::new(),
            penalties: limits.and_then(Penalties::of),
        }
    }

    /// Begins to collect. Reasons for what can't be collected go into the sample.
    pub(crate) fn begin(&mut self, scope: &CollectionScope<'_>) -> RunningCollection {
        let CollectionScope { cell, window_s, target, cpus, part } = *scope;
        let mut collection = RunningCollection { counts: None, profile: None, lacks: Vec::new() };
        if part == Part::Nothing {
            return collection;
        }
        let (CollectionTarget::Ours(pid) | CollectionTarget::Theirs(pid)) = target else {
            collection
                .lacks
                .push("the server is not visible from here: its counters are unavailable".into());
            return collection;
        };
        let counter = self.counter.clone().filter(|_| part.counts());
        if let Some(counter) = counter {
            let counter = match window_s {
                Some(window_s) => counter.fitted(window_s),
                None => counter,
            };
            let first = self.next.get(cell).copied().unwrap_or_default();
            // Without hardware counters perf would cost more time than it explains.
            let accounting = ProcessAccounting::default();
            let running = match counter.by_process_accounting(&accounting) {
                Some(counter) => {
                    counter.begin(first, Box::new(ProcessTree { pid }), Box::new(accounting))
                }
                None => counter.begin(first, self.targets(target, pid, cpus), Box::new(Live)),
            };
            match running {
                Ok(running) => {
                    running.begun();
                    collection.counts = Some(running);
                }
                Err(error) => collection.lacks.push(format!("no thread to count on: {error}")),
            }
        }
        if self.options.profile_hz > 0 && part.samples() {
            collection.lacks.extend(self.not_by.iter().cloned());
            let by = self.turn(cell);
            let options =
                Options { by, frequency_hz: self.options.profile_hz, ..Options::default() };
            match Sampler::begin(&ProfileTarget::Trees(vec![pid]), &options) {
                Ok(running) => collection.profile = Some(running),
                Err(error) => collection.lacks.push(format!("no function profile: {error}")),
            }
        }
        collection
    }

    /// The event of the next profile of a cell.
    fn turn(&self, cell: &str) -> By {
        let turn = self.profiled.get(cell).copied().unwrap_or_default();
        self.by[turn % self.by.len()].clone()
    }

    /// Puts a collection into a sample, and its metrics among the measures.
    pub fn keep(&mut self, cell: &str, collection: Collection, sample: &mut Sample) {
        if collection.profile.is_some() {
            *self.profiled.entry(cell.to_owned()).or_default() += 1;
        }
        if let Some(counts) = &collection.counts {
            *self.next.entry(cell.to_owned()).or_default() += counts.slots.len() as u64;
            let metrics = Metrics::of(counts);
            sample.measures.extend(metrics.measures());
            sample.measures.extend(self.non_overlapped(counts, &metrics));
            let per_tuple = instructions_per_tuple(counts, sample);
            sample.measures.extend(per_tuple.map(|n| ("instructions_per_tuple".to_owned(), n)));
        }
        sample.collection = Some(Box::new(collection));
    }

    /// The CPI as if nothing overlapped, by name (Keeton et al. 1998, figure 8).
    fn non_overlapped(&self, counts: &Stream, metrics: &Metrics) -> Vec<(String, f64)> {
        let table = counts.header.table.as_deref().and_then(|name| Table::named(name).ok());
        let Some((penalties, table)) = self.penalties.zip(table) else { return Vec::new() };
        let Some(ghz) = counts.most_per_ns(table.cycles()) else { return Vec::new() };
        let sides = [("", Privilege::Both), ("_user", Privilege::User)];
        let bar = |(suffix, side)| {
            let cpi = penalties.non_overlapped(metrics, side, ghz).cpi().ok()?;
            Some((format!("non_overlapped_cpi{suffix}"), cpi))
        };
        let mut measures: Vec<(String, f64)> = sides.into_iter().filter_map(bar).collect();
        measures.push(("core_ghz".to_owned(), ghz));
        measures
    }

    fn targets(&mut self, target: CollectionTarget, pid: u32, cpus: &CpuSet) -> Box<dyn Targets> {
        let cpus: Vec<u32> = cpus.iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect();
        match (target, self.group_of(target)) {
            (CollectionTarget::Ours(_), Some(directory)) => {
                Box::new(ControlGroup { directory, cpus })
            }
            _ => Box::new(Processes::of(pid, cpus)),
        }
    }

    /// A control group with all processes of a server of ours.
    fn group_of(&mut self, target: CollectionTarget) -> Option<PathBuf> {
        let CollectionTarget::Ours(pid) = target else { return None };
        let root = Sysroot::live();
        if self.own.is_none() {
            self.own = Own::make(&root, "server").ok();
        }
        let own = self.own.as_ref()?;
        let directory = own.group().for_events(&root)?;
        let pids = Tree::of(pid).look(&root).pids();
        pids.iter().try_for_each(|pid| own.take(*pid)).ok()?;
        Some(directory)
    }
}

/// The events that this machine can sample by, time if all others are unavailable; and a line for
/// each reason why one is unavailable.
fn profiles_by(wanted: &[ProfileEvent], machine: &Machine) -> (Vec<By>, Vec<String>) {
    let mut by = Vec::new();
    let mut not_by: Vec<(String, Vec<&str>)> = Vec::new();
    for wanted in wanted {
        let found = match (wanted, machine.counters.state) {
            (ProfileEvent::Time, _) => Ok(By::Time),
            (_, CounterState::Present) => wanted.by(Table::here()),
            _ => Err(machine.counters.reason.clone()),
        };
        match found {
            Ok(found) => by.push(found),
            Err(why) => match not_by.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(wanted.name()),
                None => not_by.push((why, vec![wanted.name()])),
            },
        }
    }
    if by.is_empty() {
        by.push(By::Time);
    }
    let line = |(why, names): (String, Vec<&str>)| {
        format!("no function profile by {}: {why}", names.join(", "))
    };
    (by, not_by.into_iter().map(line).collect())
}

impl RunningCollection {
    /// Stops collecting.
    pub(crate) fn end(self) -> Collection {
        Collection {
            counts: self.counts.map(counter::Running::end),
            profile: self.profile.map(profile::Running::end),
            functions: None,
            lacks: self.lacks,
        }
    }
}

/// Collects from this process while `run` runs, if there is a collector.
pub fn around<T>(
    collector: &mut Option<Collector>,
    cell: &str,
    run: impl FnOnce() -> T,
) -> (T, Option<Collection>) {
    let own = CollectionTarget::Theirs(std::process::id());
    let begin = |collector: &mut Collector| {
        let cpus = Machine::here().allowed_cpus().clone();
        let scope =
            CollectionScope { cell, window_s: None, target: own, cpus: &cpus, part: Part::All };
        collector.begin(&scope)
    };
    let collection = collector.as_mut().map(begin);
    (run(), collection.map(RunningCollection::end))
}

/// Instructions of all CPUs for each tuple, user and kernel together where both were counted.
fn instructions_per_tuple(counts: &Stream, sample: &Sample) -> Option<f64> {
    let table = Table::named(counts.header.table.as_deref()?).ok()?;
    let rates = Rates::of(counts, &table.work);
    let of = |privilege| Some(rates.rate(&table.work, privilege, None)?.per_s.mean);
    let user = of(Privilege::User)?;
    let per_s = user + of(Privilege::Kernel).unwrap_or_default();
    Some(per_s * sample.wall_s / sample.tuples as f64)
}
