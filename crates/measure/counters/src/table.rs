//! Machine tables: the events of a family of processors, and how its metrics are computed.
//!
//! ```text
//!   tables/intel-sapphire-rapids.toml
//!     events   MEM_LOAD_RETIRED.L2_MISS  = event 0xd1, umask 0x10, counters 0 to 3
//!     metrics  l2_load_mpki = 1000 * MEM_LOAD_RETIRED.L2_MISS / INST_RETIRED.ANY
//!              smt_contention : unavailable, because ..., instead ...
//! ```
//!
//! A table is data with its source and licence beside it. Reading one checks it: a formula uses
//! events of the table only, and of one source; it is a ratio; and every metric of the
//! [catalogue](crate::metric) has a formula or a reason. So a table can be queried for
//! any metric. The kernel's own events (`software`) belong to every table.

mod check;
mod encoding;
mod file;
mod processor;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Place};
use crate::formula::Formula;
use crate::metric::Metric;
use crate::nearest;

/// The embedded tables. The software table is last: it fits every machine.
const EMBEDDED: [&str; 9] = [
    include_str!("../tables/intel-skylake-sp.toml"),
    include_str!("../tables/intel-icelake-sp.toml"),
    include_str!("../tables/intel-sapphire-rapids.toml"),
    include_str!("../tables/intel-granite-rapids.toml"),
    include_str!("../tables/amd-zen3.toml"),
    include_str!("../tables/amd-zen4.toml"),
    include_str!("../tables/amd-zen5.toml"),
    include_str!("../tables/arm-architected.toml"),
    SOFTWARE,
];

/// The table of the kernel's own events.
const SOFTWARE: &str = include_str!("../tables/software.toml");

/// Events and metrics of a family of processors.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name: `intel/sapphire-rapids`.
    pub name: String,
    /// The names of its processors.
    pub title: String,
    /// Where names, numbers and formulas were taken from, with the version.
    pub source: String,
    /// The licence of that.
    pub licence: String,
    /// The event that all others are normalised by: instructions, or time where no event counts
    /// those.
    pub work: String,
    /// How many general counters a thread has.
    pub general_counters: GeneralCounters,
    processors: processor::Processors,
    events: Vec<EventEntry>,
    metrics: BTreeMap<String, MetricEntry>,
}

/// How many general counters a thread has, by whether its sibling has some too. Groups of events
/// must fit the smaller number if arms with and without SMT are to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneralCounters {
    /// With SMT on.
    pub smt_on: u8,
    /// With SMT off.
    pub smt_off: u8,
}

/// How a machine computes a metric of the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// By arithmetic over its events.
    Formula(Formula),
    /// It can't be computed.
    Unavailable {
        /// Why.
        why: String,
        /// Which metrics come nearest here.
        instead: Option<String>,
    },
}

/// An event with its description.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EventEntry {
    event: Event,
    says: String,
    /// The event that must lead its group.
    leader: Option<String>,
}

/// A definition, with what it counts here where that is not quite what the catalogue says.
#[derive(Debug, Clone, PartialEq)]
struct MetricEntry {
    definition: Definition,
    instead: Option<String>,
}

/// Why a text is not a table, or a name is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No table has this name.
    #[error("no table of counters is called `{given}`: {remedy}")]
    Unknown {
        /// The requested name.
        given: String,
        /// The nearest name, or all of them.
        remedy: String,
    },
    /// The text is not TOML, or of another form.
    #[error("the table is not of the form of a table: {0}")]
    Form(String),
    /// The kernel has no such encoding of an event.
    #[error("table `{table}`, event `{event}`: {why}")]
    Event {
        /// The table.
        table: String,
        /// The event.
        event: String,
        /// Its fault.
        why: String,
    },
    /// A metric can't be computed like this.
    #[error("table `{table}`, metric `{metric}`: {why}")]
    Metric {
        /// The table.
        table: String,
        /// The metric.
        metric: String,
        /// Its fault.
        why: String,
    },
}

impl Table {
    /// The embedded tables; the last one is `software`.
    pub fn all() -> &'static [Self] {
        static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
            let read = |text| Table::parse(text).expect("the embedded tables are tested");
            EMBEDDED.into_iter().map(read).collect()
        });
        &TABLES
    }

    /// An embedded table by its name.
    ///
    /// # Errors
    /// If there is none; names the nearest one.
    pub fn named(name: &str) -> Result<&'static Self, TableError> {
        Self::all().iter().find(|table| table.name == name).ok_or_else(|| {
            let known: Vec<&str> = Self::all().iter().map(|table| table.name.as_str()).collect();
            let remedy = nearest::remedy(name, &known);
            TableError::Unknown { given: name.to_owned(), remedy }
        })
    }

    /// The table of a processor by what CPUID says; on Arm, `arm`, the architecture's version and
    /// the part. None means that no table knows it: `software` is left.
    pub fn for_processor(vendor: &str, family: u32, model: u32) -> Option<&'static Self> {
        Self::all().iter().find(|table| table.processors.have(vendor, family, model))
    }

    /// The table of the processor that `/proc/cpuinfo` describes.
    pub fn for_cpuinfo(text: &str) -> Option<&'static Self> {
        let (vendor, family, model) = processor::of_cpuinfo(text)?;
        Self::for_processor(&vendor, family, model)
    }

    /// The table of this machine's processor.
    pub fn here() -> Option<&'static Self> {
        Self::for_cpuinfo(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
    }

    /// The kernel's software events, on every machine.
    pub fn software() -> &'static Self {
        Self::all().last().expect("the software table is embedded")
    }

    /// Reads a table and checks it.
    ///
    /// # Errors
    /// If it is not a table, an event can't be encoded, or a metric is missing, unknown, not a
    /// ratio, or uses events that the table lacks.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let mut table = file::read(text)?;
        if table.name != "software" {
            table.adopt(file::read(SOFTWARE)?);
        }
        check::whole(&table)?;
        Ok(table)
    }

    /// Its events, in its order; those of the kernel last.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().map(|described| &described.event)
    }

    /// An event by its name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.event_entry(name).map(|described| &described.event)
    }

    /// The description of an event, in one line.
    pub fn says(&self, event: &str) -> Option<&str> {
        self.event_entry(event).map(|described| described.says.as_str())
    }

    /// The event that must lead an event's group: Intel's PERF_METRICS can be read only beside
    /// TOPDOWN.SLOTS.
    pub fn leader(&self, event: &str) -> Option<&Event> {
        self.event(self.event_entry(event)?.leader.as_deref()?)
    }

    /// The events that have a counter of their own and take none from others, so that they can be
    /// in every group.
    pub fn fixed(&self) -> Vec<&Event> {
        let own = |described: &&EventEntry| {
            matches!(described.event.place, Place::Fixed(_)) && described.leader.is_none()
        };
        self.events.iter().filter(own).map(|described| &described.event).collect()
    }

    /// The events that belong into every group: what CPI is made of, and the nominal clock where it
    /// has a counter of its own.
    pub fn always(&self) -> Vec<Event> {
        let names = |metric: &str| match self.metric(metric) {
            Some(Definition::Formula(formula)) => formula.names(),
            Some(Definition::Unavailable { .. }) | None => BTreeSet::new(),
        };
        let (cpi, clock) = (names("cpi"), names("frequency_ratio"));
        let fixed = self.fixed();
        let belongs = |event: &&Event| {
            let name = event.name.as_str();
            name == self.work || cpi.contains(name) || clock.contains(name) && fixed.contains(event)
        };
        self.events().filter(belongs).cloned().collect()
    }

    /// The event that counts cycles in which a thread runs: what CPI has beside the work.
    pub fn cycles(&self) -> &str {
        let names = match self.metric("cpi") {
            Some(Definition::Formula(formula)) => formula.names(),
            Some(Definition::Unavailable { .. }) | None => BTreeSet::new(),
        };
        let cycles = self
            .events()
            .find(|event| names.contains(event.name.as_str()) && event.name != self.work);
        cycles.map_or("", |event| event.name.as_str())
    }

    /// How many general counters a group may use, the same with siblings on and off.
    pub fn counters(&self) -> u8 {
        self.general_counters.smt_on.min(self.general_counters.smt_off)
    }

    /// How it gives a metric of the catalogue; None for a name that the catalogue does not have.
    pub fn metric(&self, name: &str) -> Option<&Definition> {
        self.metrics.get(name).map(|entry| &entry.definition)
    }

    /// For a metric with a formula: what it counts here, where that is not quite what the
    /// catalogue says. For an unavailable one: which metrics come nearest here.
    pub fn instead(&self, metric: &str) -> Option<&str> {
        self.metrics.get(metric)?.instead.as_deref()
    }

    /// The events that these metrics need, each once, in the table's order. Leaders of groups are
    /// among them; unavailable metrics need none.
    pub fn needed(&self, metrics: &[&Metric]) -> Vec<&Event> {
        let definitions = metrics.iter().filter_map(|metric| self.metric(&metric.name));
        let mut names: Vec<&str> = definitions
            .filter_map(|definition| match definition {
                Definition::Formula(formula) => Some(formula.names()),
                Definition::Unavailable { .. } => None,
            })
            .flatten()
            .collect();
        let leaders: Vec<&Event> = names.iter().filter_map(|name| self.leader(name)).collect();
        names.extend(leaders.into_iter().map(|event| event.name.as_str()));
        self.events().filter(|event| names.contains(&event.name.as_str())).collect()
    }

    fn event_entry(&self, event: &str) -> Option<&EventEntry> {
        self.events.iter().find(|described| described.event.name == event)
    }

    /// Adds the kernel's software events.
    fn adopt(&mut self, software: Self) {
        self.events.extend(software.events);
        for (name, entry) in software.metrics {
            if matches!(entry.definition, Definition::Formula(_)) {
                self.metrics.entry(name).or_insert(entry);
            }
        }
    }
}
