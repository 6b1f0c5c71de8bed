//! The form of a table's file, and the table made from it.

use std::collections::BTreeMap;

use serde::Deserialize;
use workahead_machine::nesting;

use super::encoding::{self, Layout, Raw};
use super::processor::{Processors, Range};
use super::{Definition, EventEntry, GeneralCounters, MetricEntry, Table, TableError};
use crate::event::{Code, Event, Place, Software};
use crate::formula::Formula;
use crate::metric;

/// A whole file. What is not a metric of the machine comes first, as TOML wants it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    vendor: String,
    family: u32,
    models: Vec<Range>,
    layout: Layout,
    source: String,
    licence: String,
    /// The event that all others are normalised by.
    work: String,
    general_counters: GeneralCounters,
    /// The reason for every metric that the file does not mention.
    otherwise: Option<String>,
    events: Vec<FileEvent>,
    metrics: BTreeMap<String, FileMetric>,
}

/// One event: an `event` with its modifiers, or a `software` one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEvent {
    name: String,
    says: String,
    software: Option<Software>,
    event: Option<u64>,
    #[serde(default)]
    umask: u64,
    #[serde(default)]
    cmask: u64,
    #[serde(default)]
    edge: bool,
    #[serde(default)]
    any: bool,
    #[serde(default)]
    inv: bool,
    /// Bits of `config` beyond those, as they stand there.
    #[serde(default)]
    bits: u64,
    #[serde(default)]
    config1: u64,
    /// The general counters that can count it; all if missing.
    counters: Option<Vec<u8>>,
    fixed: Option<u8>,
    leader: Option<String>,
    /// The source it is an event of, where that is not the core.
    pmu: Option<String>,
}

/// One metric: a formula, or a table with notes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FileMetric {
    Plain(String),
    Remarked { formula: String, instead: String },
    Unavailable { unavailable: String, instead: Option<String> },
}

/// Reads the file alone, without what belongs to every machine.
pub(super) fn read(text: &str) -> Result<Table, TableError> {
    nesting::check(text).map_err(|why| TableError::Form(why.to_owned()))?;
    let file: File = toml::from_str(text).map_err(|error| TableError::Form(error.to_string()))?;
    let name = file.name;
    let mut events = Vec::with_capacity(file.events.len());
    for event in file.events {
        events.push(event_entry(event, file.layout, &name)?);
    }
    let mut metrics = BTreeMap::new();
    for (metric, definition) in file.metrics {
        let entry = entry(definition).map_err(|error| TableError::Metric {
            table: name.clone(),
            metric: metric.clone(),
            why: error.to_string(),
        })?;
        metrics.insert(metric, entry);
    }
    if let Some(why) = file.otherwise {
        for metric in metric::catalogue() {
            metrics
                .entry(metric.name.clone())
                .or_insert_with(|| MetricEntry::unavailable(why.clone(), None));
        }
    }
    Ok(Table {
        name,
        title: file.title,
        source: file.source,
        licence: file.licence,
        work: file.work,
        general_counters: file.general_counters,
        processors: Processors::new(file.vendor, file.family, file.models),
        events,
        metrics,
    })
}

fn event_entry(file: FileEvent, layout: Layout, table: &str) -> Result<EventEntry, TableError> {
    let wrong = |why: &str| TableError::Event {
        table: table.to_owned(),
        event: file.name.clone(),
        why: why.to_owned(),
    };
    let code = match (file.software, file.event) {
        (Some(software), None) => Code::Software(software),
        (None, Some(event)) => {
            let raw = Raw {
                event,
                umask: file.umask,
                cmask: file.cmask,
                edge: file.edge,
                any: file.any,
                inv: file.inv,
                bits: file.bits,
            };
            let config = encoding::config(layout, &raw).map_err(|why| wrong(&why))?;
            let config1 = file.config1;
            match &file.pmu {
                None => Code::Core { config, config1 },
                Some(source) => Code::Other { source: source.clone(), config, config1 },
            }
        }
        _ => return Err(wrong("it has to be either `software` or an `event`")),
    };
    let place = place(&file, &code).map_err(wrong)?;
    let event = Event { name: file.name, code, place };
    Ok(EventEntry { event, says: file.says, leader: file.leader })
}

fn place(file: &FileEvent, code: &Code) -> Result<Place, &'static str> {
    match (code, file.fixed, &file.counters) {
        (Code::Software(_) | Code::Other { .. }, None, None) => Ok(Place::None),
        (Code::Core { .. }, None, None) => Ok(Place::Any),
        (Code::Core { .. }, Some(fixed), None) => Ok(Place::Fixed(fixed)),
        (Code::Core { .. }, None, Some(counters)) => {
            let bits = counters.iter().try_fold(0, |bits, counter| {
                1u16.checked_shl(u32::from(*counter)).map(|bit| bits | bit)
            });
            match bits {
                Some(0) | None => Err("its counters are none, or beyond the 16th"),
                Some(bits) => Ok(Place::Only(bits)),
            }
        }
        (Code::Core { .. }, Some(_), Some(_)) => Err("it has both `fixed` and `counters`"),
        (Code::Software(_) | Code::Other { .. }, ..) => {
            Err("it takes no counter of the core: leave out `fixed` and `counters`")
        }
    }
}

fn entry(file: FileMetric) -> Result<MetricEntry, crate::formula::FormulaError> {
    // Long formulas are broken over lines; a report prints them in one.
    let parse = |text: String| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Formula::parse(&line).map(Definition::Formula)
    };
    Ok(match file {
        FileMetric::Plain(formula) => MetricEntry { definition: parse(formula)?, instead: None },
        FileMetric::Remarked { formula, instead } => {
            MetricEntry { definition: parse(formula)?, instead: Some(instead) }
        }
        FileMetric::Unavailable { unavailable, instead } => {
            MetricEntry::unavailable(unavailable, instead)
        }
    })
}

impl MetricEntry {
    fn unavailable(why: String, instead: Option<String>) -> Self {
        Self { definition: Definition::Unavailable { why, instead: instead.clone() }, instead }
    }
}
