//! The metrics of a stream: every one of its machine's table, for user, kernel and both, over all
//! CPUs and on each that has a value. One without a value over all has a reason.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::counter::chosen;
use crate::event::Privilege;
use crate::formula::Formula;
use crate::metric::Metric;
use crate::rates::Rates;
use crate::stream::{Group, Header, Stream};
use crate::table::{Definition, Table};

/// All metrics of a stream.
#[derive(Debug, Clone, Serialize)]
pub struct Metrics {
    values: Vec<MetricValue>,
    /// Places in `values` by name, privilege and CPU: a recording may be of thousands of CPUs.
    #[serde(skip)]
    places: Vec<usize>,
}

/// A metric with its value or the reason why there is none.
#[derive(Debug, Clone, Serialize)]
pub struct MetricValue {
    /// The metric.
    pub metric: &'static Metric,
    /// User code, the kernel, or both.
    pub privilege: Privilege,
    /// On which CPU; none for all of them together.
    pub cpu: Option<u32>,
    /// The value, in the metric's unit.
    pub value: Option<f64>,
    /// Why there is none.
    pub why: Option<String>,
    /// How it is computed on this machine, where that differs from its name.
    pub instead: Option<String>,
    /// Slots that the least observed of its events was counted in.
    pub slots: usize,
    /// Whether one of its events scatters by more than a tenth of its mean (S2.5).
    pub noisy: bool,
}

/// The privileges in the order of display.
pub const PRIVILEGES: [Privilege; 3] = [Privilege::User, Privilege::Kernel, Privilege::Both];

impl Metrics {
    /// Of a stream, by the table that it names; software events by their own.
    #[must_use]
    pub fn of(stream: &Stream) -> Self {
        let header = &stream.header;
        let own = header.table.as_deref().and_then(|name| Table::named(name).ok());
        let software = Table::software();
        let rates = |table: &Table| Rates::of(stream, &table.work);
        let of_own = own.map(|table| (table, rates(table)));
        let of_software = (software, rates(software));
        let turns = turns(stream);
        let mut values = Vec::new();
        for metric in chosen(&header.metrics) {
            let is_software = matches!(software.metric(&metric.name), Some(Definition::Formula(_)));
            match (is_software, &of_own) {
                (true, _) => values.extend(valued(metric, &of_software, header, &turns)),
                (false, Some(own)) => values.extend(valued(metric, own, header, &turns)),
                (false, None) => {
                    values.push(MetricValue::unavailable(
                        metric,
                        Privilege::Both,
                        None,
                        no_table(header),
                    ));
                }
            }
        }
        values.into_iter().collect()
    }

    /// All of them, in the catalogue's order; for each metric user, kernel, both; for each of them
    /// all CPUs together and then one by one, where there is a value.
    #[must_use]
    pub fn values(&self) -> &[MetricValue] {
        &self.values
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, name: &str, privilege: Privilege, cpu: Option<u32>) -> Option<&MetricValue> {
        let wanted = (name, privilege, cpu);
        let found = self.places.binary_search_by(|place| self.values[*place].key().cmp(&wanted));
        found.ok().map(|at| &self.values[self.places[at]])
    }

    /// Some of them, for those who hold many.
    #[must_use]
    pub fn only(&self, is_meant: impl Fn(&MetricValue) -> bool) -> Self {
        self.values.iter().filter(|valued| is_meant(valued)).cloned().collect()
    }

    /// The values over all CPUs by name, for a study's samples: `cpi`, `cpi_user`, `cpi_kernel`.
    #[must_use]
    pub fn measures(&self) -> Vec<(String, f64)> {
        let named = self.values.iter().filter(|valued| valued.cpu.is_none()).filter_map(|valued| {
            let name = &valued.metric.name;
            let name = match valued.privilege {
                Privilege::Both => name.clone(),
                Privilege::User => format!("{name}_user"),
                Privilege::Kernel => format!("{name}_kernel"),
            };
            Some((name, valued.value?))
        });
        named.collect()
    }
}

impl FromIterator<MetricValue> for Metrics {
    fn from_iter<I: IntoIterator<Item = MetricValue>>(values: I) -> Self {
        let values: Vec<MetricValue> = values.into_iter().collect();
        let mut places: Vec<usize> = (0..values.len()).collect();
        places.sort_by_key(|place| values[*place].key());
        Self { values, places }
    }
}

impl MetricValue {
    fn key(&self) -> (&str, Privilege, Option<u32>) {
        (self.metric.name.as_str(), self.privilege, self.cpu)
    }

    fn unavailable(
        metric: &'static Metric,
        privilege: Privilege,
        cpu: Option<u32>,
        why: String,
    ) -> Self {
        let (value, instead) = (None, None);
        Self { metric, privilege, cpu, value, why: Some(why), instead, slots: 0, noisy: false }
    }
}

/// One metric for every privilege, and for every CPU where it has a value; a single row with its
/// reason where it was not counted.
fn valued(
    metric: &'static Metric,
    (table, rates): &(&Table, Rates),
    header: &Header,
    turns: &BTreeMap<&str, Turn>,
) -> Vec<MetricValue> {
    let formula = match table.metric(&metric.name) {
        Some(Definition::Formula(formula)) => formula,
        Some(Definition::Unavailable { why, instead }) => {
            let unavailable = MetricValue::unavailable(metric, Privilege::Both, None, why.clone());
            return vec![MetricValue { instead: instead.clone(), ..unavailable }];
        }
        None => return Vec::new(),
    };
    let missing = missing(formula, header, turns);
    if let Some(why) = missing {
        return vec![MetricValue::unavailable(metric, Privilege::Both, None, why)];
    }
    let cpus: Vec<Option<u32>> =
        std::iter::once(None).chain(rates.cpus().into_iter().map(Some)).collect();
    let counted = PRIVILEGES.into_iter().filter(|privilege| {
        let of = |group: &Group| group.privilege == *privilege;
        *privilege == Privilege::Both || header.groups.iter().any(of)
    });
    let at = |(privilege, cpu)| {
        let count = |name: &str| rates.per_unit(name, &table.work, privilege, cpu);
        let seen =
            formula.names().into_iter().filter_map(|name| sides(rates, name, privilege, cpu));
        let (slots, noisy) = seen.fold((usize::MAX, false), |(least, noisy), (slots, is)| {
            (least.min(slots), noisy || is)
        });
        match formula.eval(&count) {
            Ok(value) => Some(MetricValue {
                value: Some(value),
                why: None,
                instead: table.instead(&metric.name).map(str::to_owned),
                slots,
                noisy,
                ..MetricValue::unavailable(metric, privilege, cpu, String::new())
            }),
            // Of thousands of CPUs each would have the same reason.
            Err(_) if cpu.is_some() => None,
            Err(unavailable) => {
                Some(MetricValue::unavailable(metric, privilege, cpu, unavailable.to_string()))
            }
        }
    };
    let places = counted.flat_map(|side| cpus.iter().map(move |cpu| (side, *cpu)));
    places.filter_map(at).collect()
}

/// Slots that an event was counted in, and whether it scatters: the lesser side of user and kernel
/// where both are put together.
fn sides(
    rates: &Rates,
    name: &str,
    privilege: Privilege,
    cpu: Option<u32>,
) -> Option<(usize, bool)> {
    let of = |privilege| {
        let noisy = rates.rate(name, privilege, cpu)?.per_unit.noisy == Some(true);
        Some((rates.slots(name, privilege, cpu)?, noisy))
    };
    of(privilege).or_else(|| {
        let (user, kernel) = (of(Privilege::User)?, of(Privilege::Kernel)?);
        Some((user.0.min(kernel.0), user.1 || kernel.1))
    })
}

/// Why there is no table to compute by. The recorded reason goes first; a recording may also be of
/// a later version with more tables.
fn no_table(header: &Header) -> String {
    match (&header.lacks, &header.table) {
        (Some(lacks), _) => lacks.clone(),
        (None, Some(name)) => format!("this version has no table of events called `{name}`"),
        (None, None) => "no table of events knows this processor".to_owned(),
    }
}

/// What came of an event's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    DidNotCome,
    ThrownAway,
    Counted,
}

/// The best that came of each event of the groups.
fn turns(stream: &Stream) -> BTreeMap<&str, Turn> {
    let groups = &stream.header.groups;
    let mut of_groups = vec![Turn::DidNotCome; groups.len()];
    for slot in &stream.slots {
        let turn = if slot.spoilt.is_none() { Turn::Counted } else { Turn::ThrownAway };
        of_groups[slot.group] = of_groups[slot.group].max(turn);
    }
    let mut turns = BTreeMap::new();
    for (group, turn) in groups.iter().zip(of_groups) {
        for event in &group.events {
            let best = turns.entry(event.name.as_str()).or_insert(turn);
            *best = turn.max(*best);
        }
    }
    turns
}

/// Why a formula has no counts at all: an event of it was left out, or its turn never came.
fn missing(formula: &Formula, header: &Header, turns: &BTreeMap<&str, Turn>) -> Option<String> {
    formula.names().into_iter().find_map(|name| match turns.get(name) {
        Some(Turn::Counted) => None,
        Some(Turn::ThrownAway) => Some(format!("every slot of {name} was thrown away")),
        Some(Turn::DidNotCome) => Some(format!("the turn of {name} did not come: count longer")),
        None => Some(left_out(header, name)),
    })
}

fn left_out(header: &Header, name: &str) -> String {
    let left = header.left_out.iter().find(|left| left.event == name);
    match (left, &header.lacks) {
        (Some(left), _) => format!("{name}: {}", left.why),
        (None, Some(lacks)) => lacks.clone(),
        (None, None) => format!("{name} was not counted"),
    }
}
