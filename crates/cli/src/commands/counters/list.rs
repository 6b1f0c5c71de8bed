//! `workahead counters list`.

use std::process::ExitCode;

use serde::Serialize;
use workahead_counters::event::{Code, Event};
use workahead_counters::metric::{self, Metric};
use workahead_counters::table::{Definition, Table};
use workahead_machine::Machine;
use workahead_machine::evidence_tier::CounterState;

use super::super::study::summary;
use crate::errors::WrongUse;
use crate::output;

const HELP: &str = "\
Examples:
  workahead counters list                                  of this machine
  workahead counters list --group l2
  workahead counters list --table all                      the tables of other machines
  workahead counters list --table amd/zen4 --events";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Of another machine's table; `all` names the tables
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Only metrics of this group
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// The table's events instead, with their codes
    #[arg(long, conflicts_with = "group")]
    events: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// A metric for programs.
#[derive(Serialize)]
struct MetricEntry {
    #[serde(flatten)]
    metric: &'static Metric,
    formula: Option<String>,
    why: Option<String>,
    instead: Option<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.table.as_deref() == Some("all") {
        if args.events || args.group.is_some() {
            return Err(WrongUse::error(
                "`--table all` names the tables: give one of them instead",
            ));
        }
        return tables(args.json);
    }
    let table = match &args.table {
        Some(name) => Table::named(name).map_err(|error| WrongUse::error(error.to_string()))?,
        None => Table::here().unwrap_or(Table::software()),
    };
    if args.events {
        return events(table, args.json);
    }
    let metrics = match &args.group {
        Some(group) => {
            metric::of_group(group).map_err(|error| WrongUse::error(error.to_string()))?
        }
        None => metric::catalogue().iter().collect(),
    };
    let listed: Vec<MetricEntry> =
        metrics.into_iter().map(|metric| listed(metric, table)).collect();
    output::show(args.json, &listed, || {
        let of_here = args.table.is_none().then(nothing_here).flatten();
        text(&listed, table, of_here)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Why the table is of no use on this machine, if it has no counters.
fn nothing_here() -> Option<String> {
    let counters = Machine::here().counters;
    (counters.state != CounterState::Present).then_some(counters.reason)
}

fn listed(metric: &'static Metric, table: &Table) -> MetricEntry {
    let (formula, why) = match table.metric(&metric.name) {
        Some(Definition::Formula(formula)) => (Some(formula.to_string()), None),
        Some(Definition::Unavailable { why, .. }) => (None, Some(why.clone())),
        None => (None, Some("the table does not have it".to_owned())),
    };
    let instead = table.instead(&metric.name).map(str::to_owned);
    MetricEntry { metric, formula, why, instead }
}

fn text(listed: &[MetricEntry], table: &Table, nothing_here: Option<String>) -> String {
    let mut rows = summary::table(&["metric", "unit", "groups", "how, or why not", "note"]);
    for one in listed {
        let how = match (&one.formula, &one.why) {
            (Some(formula), _) => formula.clone(),
            (None, Some(why)) => format!("– {why}"),
            (None, None) => String::new(),
        };
        rows.add_row([
            one.metric.name.clone(),
            one.metric.unit.to_string(),
            one.metric.groups.join(", "),
            how,
            one.instead.clone().unwrap_or_default(),
        ]);
    }
    let Table { title, name, source, licence, .. } = table;
    let mut head = format!("{title} (table {name}; {source}; {licence})");
    if let Some(why) = nothing_here {
        head.push_str(&format!(
            "\nonly the kernel's own events (--group system) are counted on this machine: {why}"
        ));
    }
    format!("{head}\n\n{}", summary::lines(rows))
}

fn tables(json: bool) -> anyhow::Result<ExitCode> {
    #[derive(Serialize)]
    struct One {
        table: &'static str,
        title: &'static str,
        source: &'static str,
        here: bool,
    }
    let here = Table::here().map(|table| table.name.as_str());
    let all: Vec<One> = Table::all()
        .iter()
        .map(|table| One {
            table: &table.name,
            title: &table.title,
            source: &table.source,
            here: here == Some(&table.name),
        })
        .collect();
    output::show(json, &all, || {
        let mut rows = summary::table(&["table", "processors", "here", "source"]);
        for one in &all {
            let here = if one.here { "this machine" } else { "" };
            rows.add_row([one.table, one.title, here, one.source]);
        }
        summary::lines(rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn events(table: &Table, json: bool) -> anyhow::Result<ExitCode> {
    output::show(json, &table.events().collect::<Vec<_>>(), || {
        let mut rows = summary::table(&["event", "code", "counts"]);
        for event in table.events() {
            let says = table.says(&event.name).unwrap_or_default();
            rows.add_row([event.name.clone(), code(event), says.to_owned()]);
        }
        summary::lines(rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// As `perf stat -e` takes it.
fn code(event: &Event) -> String {
    let of = |source: &str, config: u64, config1: u64| match config1 {
        0 => format!("{source}/config={config:#x}/"),
        _ => format!("{source}/config={config:#x},config1={config1:#x}/"),
    };
    match &event.code {
        Code::Software(_) => "the kernel's own".to_owned(),
        Code::Core { config, config1 } => of("cpu", *config, *config1),
        Code::Other { source, config, config1 } => of(source, *config, *config1),
    }
}
