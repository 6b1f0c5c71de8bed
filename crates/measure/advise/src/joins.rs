//! Which joins of a workload wait for memory, and what working ahead would give at most.
//!
//! ```text
//!   plan, run with timed operators ─► joins: what each touches at random, how often, its time
//!   limits of a machine            ─► a line that is waited for, a line among others in flight
//!                                      └──► lines × (latency − 1 / lines a second), per join
//! ```
//!
//! All of it is *modelled*, and an upper bound: engines overlap some of their misses already. A
//! hash join touches two lines a probe, one after the other (the bucket, then the row: Zhou et al.
//! 2005, section 3.1), and one for each row that it inserts. Caches hold what is smaller than they
//! are, by the measured curve of latencies; nothing is assumed of an engine's own prefetching.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::{Table, Value};
use workahead_machine::limits::Limits;
use workahead_machine::pages::Pages;
use workahead_study::plans::{Node, PlanError, PlanText, Planner, bounded};
use workahead_study::results::Results;

use crate::request::{RequestError, Workload, table};
use crate::words::significant;

/// The id of the studies that ask it.
pub const JOINS_STUDY: &str = "advise-joins";

/// DataFusion's joins, and ours in their places.
const JOINERS: &str = "server.joins";
const STOCK: &str = "stock";

/// Lines of a probe that depend on each other.
const PROBE_LINES: f64 = 2.0;
/// Lines of a page that is looked up in: its directory, and the row.
const PAGE_LINES: f64 = 2.0;
/// Characters of a join in a sentence; of its statement half as many.
const NAME_LENGTH: usize = 100;
/// A part of the time that is worth saving.
const WORTH: f64 = 0.05;

/// Which workload's joins.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinsRequest {
    /// On which engine.
    pub engine: String,
    /// The statements, if they are not those of a workload.
    pub statements: Vec<String>,
    /// Of TPC-H's queries instead, their scale.
    pub tpch: Option<f64>,
}

impl JoinsRequest {
    /// The study that runs each statement alone and keeps its plan, as TOML.
    ///
    /// # Errors
    /// When there is no statement.
    pub fn study(&self) -> Result<String, RequestError> {
        if self.statements.is_empty() && self.tpch.is_none() {
            return Err(RequestError::new("there is no statement in it that reads"));
        }
        let mut workload = table([
            ("explain", "run".into()),
            ("queries", 1.into()),
            ("workload", if self.tpch.is_some() { "tpch" } else { "sql" }.into()),
        ]);
        let mut axes = Table::new();
        match self.tpch {
            Some(scale) => {
                workload.insert("scale".to_owned(), scale.into());
                let queries: Vec<Value> = (1..=22).map(Value::from).collect();
                axes.insert("query".to_owned(), queries.into());
            }
            None => {
                axes.insert("sql".to_owned(), self.statements.clone().into());
            }
        }
        let mut method =
            table([("repetitions", 3.into()), ("warmup", 1.into()), ("tuples", "queries".into())]);
        if self.engine == "datafusion" {
            axes.insert(JOINERS.to_owned(), vec![STOCK, "workahead"].into());
            method.insert("baseline".to_owned(), table([(JOINERS, STOCK.into())]).into());
        }
        let mut study = table([
            ("title", format!("Joins that wait for memory: {}", self.what()).into()),
            ("question", "Which joins wait for memory, and what would working ahead give?".into()),
            ("engine", self.engine.as_str().into()),
            ("seed", 1.into()),
        ]);
        study.insert("workload".to_owned(), workload.into());
        study.insert("axes".to_owned(), axes.into());
        study.insert("method".to_owned(), method.into());
        Ok(study.to_string())
    }

    fn what(&self) -> String {
        match self.tpch {
            Some(scale) => Workload::Tpch(scale).name(),
            None => "given statements".to_owned(),
        }
    }
}

/// Which joins wait, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinsAnswer {
    /// The answer in a sentence.
    pub sentence: String,
    /// Statements with a plan.
    pub statements: usize,
    /// Time of all their operators, in milliseconds, workers added up; none of plans that were not
    /// run.
    pub total_ms: Option<f64>,
    /// The most that working ahead would save of it: modelled.
    pub saved_ms: f64,
    /// The further saving if the indexes that joins look up in are larger than the caches.
    pub saved_in_indexes_ms: f64,
    /// Stock's time over that with our joins, of all statements together: measured, on DataFusion.
    pub gain: Option<f64>,
    /// The joins, those that wait longest first.
    pub joins: Vec<JoinAnswer>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A join of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinAnswer {
    /// The statement that it belongs to.
    pub statement: String,
    /// Its operator, with conditions.
    pub join: String,
    /// Whether it looks up in an index: how large that is, plans don't say.
    pub through_index: bool,
    /// Bytes that it touches at random; of an index, at most.
    pub bytes: f64,
    /// Lines that it touches one after the other.
    pub lines: f64,
    /// Its own time, in milliseconds.
    pub time_ms: Option<f64>,
    /// The most that working ahead would save of it, in milliseconds: modelled.
    pub saved_ms: f64,
}

impl JoinsAnswer {
    /// The answer of plans, each with its statement's name, on a machine with these limits.
    ///
    /// # Errors
    /// When one is not a plan.
    pub fn of_plans(
        plans: &[(String, PlanText)],
        limits: &Limits,
    ) -> Result<JoinsAnswer, PlanError> {
        let mut joins = Vec::new();
        let mut total_ms = Some(0.0);
        for (statement, plan) in plans {
            let tree = plan.timed().map_or_else(|| plan.tree(), Ok)?;
            total_ms = total_ms.zip(time_of(&tree, plan.planner)).map(|(sum, time)| sum + time);
            let mut found = Vec::new();
            visit(&tree, plan.planner, &mut found);
            joins.extend(found.into_iter().map(|join| join.answer(statement, limits)));
        }
        joins.sort_by(|one, other| other.saved_ms.total_cmp(&one.saved_ms));
        let saved = |index: bool| {
            let of_kind = joins.iter().filter(|join| join.through_index == index);
            bounded(of_kind.map(|join| join.saved_ms).sum())
        };
        let mut answer = JoinsAnswer {
            sentence: String::new(),
            statements: plans.len(),
            total_ms: total_ms.filter(|total| *total > 0.0).map(bounded),
            saved_ms: saved(false),
            saved_in_indexes_ms: saved(true),
            gain: None,
            joins,
            notes: Vec::new(),
        };
        answer.sentence = answer.says();
        answer.notes = answer.notes(limits);
        Ok(answer)
    }

    /// The answer of a result of [`JoinsRequest::study`]. `None` of another study.
    ///
    /// # Errors
    /// When an engine printed no plan.
    pub fn of(results: &Results, limits: &Limits) -> Option<Result<JoinsAnswer, PlanError>> {
        if results.spec.id != JOINS_STUDY {
            return None;
        }
        // Statement by statement, whose joins they are.
        let mut wall_s: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let mut plans = Vec::new();
        for cell in &results.run_plan.cells {
            let place = |axis: &str| cell.place.get(axis).map(ToString::to_string);
            let statement = place("query").map(|number| format!("Q{number}"));
            let Some(statement) = statement.or_else(|| place("sql")) else { continue };
            let joiner = place(JOINERS).unwrap_or_else(|| STOCK.to_owned());
            if let (STOCK, Some(plan)) = (joiner.as_str(), results.plan_of(cell.index)) {
                plans.push((statement.clone(), plan.clone()));
            }
            if let Some(summary) = results.summary(cell.index, "wall_s") {
                wall_s.entry(statement).or_default().insert(joiner, summary.median);
            }
        }
        let sum = |joiner: &str| -> f64 {
            let of_both = wall_s.values().filter(|of| of.len() == 2);
            of_both.filter_map(|of| of.get(joiner)).sum()
        };
        let (stock, ours) = (sum(STOCK), sum("workahead"));
        let answer = JoinsAnswer::of_plans(&plans, limits);
        let gain = stock / ours;
        Some(answer.map(|answer| match ours > 0.0 && gain.is_finite() {
            true => answer.with_gain(gain),
            false => answer,
        }))
    }

    fn with_gain(mut self, gain: f64) -> Self {
        self.gain = Some(gain);
        self.sentence = format!(
            "{} Measured: all statements together take {gain:.2} times as long with DataFusion's \
             joins as with ours.",
            self.sentence
        );
        self
    }

    /// The part of the time that could be saved.
    fn share(&self) -> Option<f64> {
        Some((self.saved_ms / self.total_ms?).min(1.0))
    }

    fn says(&self) -> String {
        let of = match self.statements {
            1 => "of the statement's time".to_owned(),
            many => format!("of the {many} statements' time"),
        };
        let Some(largest) = self.joins.iter().map(|join| join.bytes).reduce(f64::max) else {
            return "There is no join in it that looks anything up.".to_owned();
        };
        let hashed: Vec<&JoinAnswer> =
            self.joins.iter().filter(|join| !join.through_index).collect();
        let first = hashed.first().filter(|join| join.saved_ms > 0.0);
        match (self.share(), first) {
            (Some(share), Some(first)) if share >= WORTH => format!(
                "Joins wait for memory for up to {:.0} % {of}: working ahead would save at most {} \
                 of {}, {} of it in {}.",
                share * 100.0,
                milliseconds(self.saved_ms),
                milliseconds(self.total_ms.unwrap_or_default()),
                milliseconds(first.saved_ms),
                first.named()
            ),
            (None, Some(first)) => format!(
                "Working ahead would save at most {}, {} of it in {}; how large a part that is a \
                 plan says that was run (EXPLAIN ANALYZE).",
                milliseconds(self.saved_ms),
                milliseconds(first.saved_ms),
                first.named()
            ),
            (share, _) if !hashed.is_empty() => {
                let share = share.map_or_else(String::new, |share| {
                    format!(": working ahead would save at most {:.1} % {of}", share * 100.0)
                });
                format!("No hash join waits for memory{share}.")
            }
            _ => format!(
                "All joins look up in indexes, in up to {}: how large those are, a plan does not \
                 say.",
                size(largest)
            ),
        }
    }

    fn notes(&self, limits: &Limits) -> Vec<String> {
        let mut notes = Vec::new();
        if self.saved_in_indexes_ms > 0.0 {
            notes.push(format!(
                "Up to {} more are spent on lookups in indexes, if these are larger than the \
                 caches: their size is in no plan.",
                milliseconds(self.saved_in_indexes_ms)
            ));
        }
        let processor = limits.processor.as_deref().unwrap_or("this machine");
        notes.push(format!(
            "Modelled, from the plans and the measured limits of {processor}: a hash join touches \
             two lines a probe and one a row that it inserts, each waited for. What an engine \
             overlaps already is not taken off."
        ));
        notes
    }
}

impl JoinAnswer {
    /// Its operator and its keys.
    #[must_use]
    pub fn name(&self) -> String {
        let (operator, conditions) = self.join.split_once(" [").unwrap_or((&self.join, ""));
        let is_key = |part: &&str| part.contains(" = ") || part.starts_with("on:");
        let keys = conditions.trim_end_matches(']').split("; ").find(is_key);
        // `Hash Cond: (a = b)`, `Conditions: a = b`, `on: [(a, b)]`
        let keys = keys.map(|keys| keys.split_once(": ").map_or(keys, |(_, keys)| keys));
        let keys = keys.map(|keys| keys.trim_matches(['(', ')', '[', ']']));
        keys.map_or_else(|| operator.to_owned(), |keys| format!("{operator} [{keys}]"))
    }

    fn named(&self) -> String {
        let short = |text: &str, length| text.chars().take(length).collect::<String>();
        // A statement has the lines that its user gave it.
        let statement = self.statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let name = short(&self.name(), NAME_LENGTH);
        format!("{name} ({})", short(&statement, NAME_LENGTH / 2))
    }
}

/// A join as a plan has it.
struct Join<'a> {
    node: &'a Node,
    through_index: bool,
    bytes: f64,
    lines: f64,
    time_ms: Option<f64>,
}

impl Join<'_> {
    fn answer(self, statement: &str, limits: &Limits) -> JoinAnswer {
        let (bytes, lines) = (bounded(self.bytes), bounded(self.lines));
        let time_ms = self.time_ms.map(bounded);
        let saved_ms = bounded(lines * saved_ns(bytes, limits) / 1e6);
        JoinAnswer {
            statement: statement.to_owned(),
            join: self.node.line(),
            through_index: self.through_index,
            bytes,
            lines,
            time_ms,
            saved_ms: time_ms.map_or(saved_ms, |time| saved_ms.min(time)),
        }
    }
}

/// The saving of a line among others in flight over one alone, in nanoseconds.
fn saved_ns(bytes: f64, limits: &Limits) -> f64 {
    let bytes = bytes as usize;
    let latency = limits.latency_ns(bytes).unwrap_or(0.0);
    match limits.lines_per_s(bytes, 1, Pages::Huge) {
        Some(lines) if lines > 0.0 => (latency - 1e9 / lines).max(0.0),
        _ => 0.0,
    }
}

fn visit<'a>(node: &'a Node, planner: Planner, found: &mut Vec<Join<'a>>) {
    found.extend(hash_join(node, planner));
    if node.operator.starts_with("Nested Loop") {
        let inner = node.inputs.iter().skip(1);
        inner.for_each(|inner| lookups(inner, found));
    }
    node.inputs.iter().for_each(|input| visit(input, planner, found));
}

/// A hash join: what it builds from and what it probes with.
fn hash_join(node: &Node, planner: Planner) -> Option<Join<'_>> {
    let name = node.operator.to_lowercase();
    let is_hashed = name.starts_with("hash") || name.starts_with("workahead");
    let [first, second] = node.inputs.as_slice() else { return None };
    if !is_hashed || !name.contains("join") {
        return None;
    }
    let (build, probe) = match planner {
        Planner::Datafusion => (first, second),
        Planner::Postgres | Planner::Mariadb | Planner::Duckdb => (second, first),
    };
    let rows = |node: &Node| node.rows.or(node.rows_estimated).unwrap_or(0.0);
    let table = node.memory.table_bytes.or(build.memory.table_bytes);
    let by_rows = || Some(rows(build) * build.memory.row_bytes?);
    // PostgreSQL makes its table in a node of its own.
    let building = (build.operator == "Hash").then_some(build.time_ms).flatten();
    Some(Join {
        node,
        through_index: false,
        bytes: table.or_else(by_rows).unwrap_or(0.0),
        lines: rows(probe) * PROBE_LINES + rows(build),
        time_ms: node.time_ms.map(|time| time + building.unwrap_or(0.0)),
    })
}

/// Lookups in indexes on the inner side of a nested loop.
fn lookups<'a>(node: &'a Node, found: &mut Vec<Join<'a>>) {
    let is_lookup = node.operator.starts_with("Index") || node.operator.starts_with("Unique");
    if let (true, Some(pages)) = (is_lookup, node.memory.pages) {
        found.push(Join {
            node,
            through_index: true,
            bytes: pages * node.memory.page_bytes.unwrap_or(0.0),
            lines: pages * PAGE_LINES,
            time_ms: node.time_ms,
        });
    }
    if !node.operator.starts_with("Nested Loop") {
        node.inputs.iter().for_each(|input| lookups(input, found));
    }
}

/// The time of a whole plan: MariaDB's first operator has that of all others in it.
fn time_of(tree: &Node, planner: Planner) -> Option<f64> {
    if planner == Planner::Mariadb {
        return tree.time_ms;
    }
    let inputs = tree.inputs.iter().filter_map(|input| time_of(input, planner)).sum::<f64>();
    match tree.time_ms {
        Some(time) => Some(time + inputs),
        None => (inputs > 0.0).then_some(inputs),
    }
}

/// `420 ms`, `2.31 s`.
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 1000.0 => format!("{} s", significant(ms / 1e3)),
        ms => format!("{} ms", significant(ms)),
    }
}

/// `43.1 MB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let unit = units.iter().find(|(_, one)| bytes >= *one);
    unit.map_or_else(
        || format!("{bytes:.0} bytes"),
        |(name, one)| format!("{} {name}", significant(bytes / one)),
    )
}

#[cfg(test)]
mod tests;
