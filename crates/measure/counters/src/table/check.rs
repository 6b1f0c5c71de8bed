//! Rules of every table, checked whenever one is read.

use std::collections::BTreeSet;

use super::{Definition, EventEntry, Table, TableError};
use crate::event::{Code, Place};
use crate::formula::Formula;
use crate::metric;

/// Checks a table that has the kernel's events already.
pub(super) fn whole(table: &Table) -> Result<(), TableError> {
    events(table)?;
    for metric in metric::catalogue() {
        if table.metric(&metric.name).is_none() {
            return Err(wrong(table, &metric.name, "the table gives neither formula nor reason"));
        }
    }
    for (name, entry) in &table.metrics {
        if let Err(error) = metric::named(name) {
            return Err(wrong(table, name, &error.to_string()));
        }
        match &entry.definition {
            Definition::Formula(formula) => metric_formula(table, name, formula)?,
            Definition::Unavailable { why, .. } if why.trim().is_empty() => {
                return Err(wrong(table, name, "it is unavailable without a reason"));
            }
            Definition::Unavailable { .. } => {}
        }
    }
    Ok(())
}

fn events(table: &Table) -> Result<(), TableError> {
    let mut names = BTreeSet::new();
    for described in &table.events {
        let event = &described.event;
        let wrong = |why: &str| TableError::Event {
            table: table.name.clone(),
            event: event.name.clone(),
            why: why.to_owned(),
        };
        if !names.insert(event.name.as_str()) {
            return Err(wrong("another event has the same name"));
        }
        if described.says.trim().is_empty() {
            return Err(wrong("it has no description"));
        }
        if event.place == Place::Any && table.general_counters.smt_on == 0 {
            return Err(wrong("the table has no general counters"));
        }
        if !leads(table, described) {
            return Err(wrong("its leader is not an event with a fixed counter"));
        }
    }
    Ok(())
}

fn leads(table: &Table, described: &EventEntry) -> bool {
    let Some(leader) = &described.leader else { return true };
    table.event(leader).is_some_and(|leader| matches!(leader.place, Place::Fixed(_)))
}

fn metric_formula(table: &Table, name: &str, formula: &Formula) -> Result<(), TableError> {
    let mut sources = BTreeSet::new();
    for event in formula.names() {
        match table.event(event) {
            None => return Err(wrong(table, name, &format!("the table has no event `{event}`"))),
            Some(event) => sources.insert(source(&event.code)),
        };
    }
    if sources.len() > 1 {
        // One source counts for a thread, another for a socket.
        return Err(wrong(table, name, "its events are of different sources"));
    }
    if !formula.is_ratio() {
        return Err(wrong(table, name, "it depends on how long its events were counted"));
    }
    Ok(())
}

fn source(code: &Code) -> &str {
    match code {
        Code::Software(_) => "software",
        Code::Core { .. } => "cpu",
        Code::Other { source, .. } => source,
    }
}

fn wrong(table: &Table, metric: &str, why: &str) -> TableError {
    TableError::Metric { table: table.name.clone(), metric: metric.to_owned(), why: why.to_owned() }
}
