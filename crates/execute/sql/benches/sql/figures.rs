//! Figures of the pairs: ratios with intervals, sums, medians.
//!
//! The interval of a query is that of the mean log-ratio of its pairs (Student's t), at a level
//! adjusted for the number of queries after Holm (1979): the query with the strongest evidence gets
//! the strictest level.

use std::fmt::Write;

use serde_json::{Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::arguments::{Arguments, SuiteName};
use crate::operator_time::Kind;
use crate::pairs::{QueryRuns, Run, Times};
use crate::sessions::{Arm, Storage};
use crate::{orders, shapes};

/// Queries of TPC-H that are mostly joins.
const JOIN_BOUND: [usize; 6] = [4, 5, 7, 9, 18, 21];
const LEVEL: f64 = 0.05;
/// A query is lost if its whole interval is above this ratio.
const LOST_RATIO: f64 = 1.03;

/// All queries in one setting.
pub(crate) struct Setting {
    pub(crate) suite: SuiteName,
    pub(crate) storage: Storage,
    pub(crate) threads: usize,
    pub(crate) arms: Vec<Arm>,
    pub(crate) measured: Vec<QueryRuns>,
}

impl Setting {
    /// The figures of every arm.
    fn of_arms(&self, figures: impl Fn(&Self, usize) -> Vec<Value>) -> Vec<Value> {
        (0..self.arms.len()).flat_map(|arm| figures(self, arm)).collect()
    }

    /// A row of figures, with the setting it belongs to.
    fn labelled(&self, arm: usize, query: &str, figures: Value) -> Value {
        let mut row = json!({
            "tables": self.storage.name(),
            "threads": self.threads,
            "arm": self.arms[arm].name(),
            "query": query,
        });
        if let (Value::Object(row), Value::Object(figures)) = (&mut row, figures) {
            row.extend(figures);
        }
        row
    }
}

/// CPU time of an arm to that of stock: less than 1 is faster.
struct Ratio {
    query: usize,
    mean: f64,
    low: f64,
    high: f64,
}

fn ratios(measured: &[QueryRuns], arm: usize) -> Vec<Ratio> {
    let mut order: Vec<_> = measured.iter().map(|query| (query, logs(query, arm))).collect();
    // By evidence, the strongest first.
    order.sort_by(|(_, one), (_, two)| two.strength().total_cmp(&one.strength()));
    let of = |(rank, (query, logs)): (usize, &(&QueryRuns, Logs))| {
        let width = logs.half_width(LEVEL / (measured.len() - rank) as f64);
        let at = |shift: f64| (logs.mean + shift).exp();
        Ratio { query: query.query, mean: at(0.0), low: at(-width), high: at(width) }
    };
    let mut all: Vec<Ratio> = order.iter().enumerate().map(of).collect();
    all.sort_by_key(|ratio| ratio.query);
    all
}

/// Log-ratios of one query's pairs.
struct Logs {
    mean: f64,
    /// The standard error of the mean.
    error: f64,
    freedom: f64,
}

fn logs(query: &QueryRuns, arm: usize) -> Logs {
    logs_of(&query.arms[arm].1, &query.stock, cpu)
}

/// Of an arm's times, planning included, to DuckDB's.
fn logs_over_duckdb(query: &QueryRuns, arm: usize) -> Option<Logs> {
    Some(logs_of(&query.arms[arm].1, query.duckdb.as_ref()?, whole))
}

fn logs_of(ours: &[Run], others: &[Run], of: fn(&Run) -> f64) -> Logs {
    let pairs = ours.iter().zip(others);
    let logs: Vec<f64> = pairs.map(|(ours, other)| (of(ours) / of(other)).ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let freedom = count - 1.0;
    Logs { mean, error: (squares / freedom.max(1.0) / count).sqrt(), freedom }
}

impl Logs {
    fn strength(&self) -> f64 {
        self.mean.abs() / self.error.max(1e-12)
    }

    /// Unknown from one pair.
    fn half_width(&self, level: f64) -> f64 {
        match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) => student.inverse_cdf(1.0 - level / 2.0) * self.error,
            Err(_) => f64::INFINITY,
        }
    }
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

fn cpu(run: &Run) -> f64 {
    run.cpu_s
}

fn wall(run: &Run) -> f64 {
    run.wall_s
}

/// From a query's text to its last row.
fn whole(run: &Run) -> f64 {
    run.plan_s + run.wall_s
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// A row for each arm and query.
pub(crate) fn rows(setting: &Setting) -> Vec<Value> {
    setting.of_arms(rows_of)
}

fn rows_of(setting: &Setting, arm: usize) -> Vec<Value> {
    let row = |(query, ratio): (&QueryRuns, Ratio)| {
        let ours = &query.arms[arm].1;
        let mut figures = json!({
            "stock_cpu_ms": median(&query.stock, cpu) * 1e3,
            "ours_cpu_ms": median(ours, cpu) * 1e3,
            "stock_wall_ms": median(&query.stock, wall) * 1e3,
            "ours_wall_ms": median(ours, wall) * 1e3,
            "times_less_cpu": 1.0 / ratio.mean,
            "cpu_ratio": ratio.mean,
            "ratio_low": finite(ratio.low),
            "ratio_high": finite(ratio.high),
            "lost": ratio.low > LOST_RATIO,
            "bound": 1.0 / (1.0 - query.join_share).max(1e-3),
            "joins": query.joins,
            "joins_left": query.left,
        });
        if let (Some(duckdb), Some(logs)) = (&query.duckdb, logs_over_duckdb(query, arm)) {
            let at = |shift: f64| finite((logs.mean + shift * logs.half_width(LEVEL)).exp());
            figures["whole_ms"] = json!(median(ours, whole) * 1e3);
            figures["duckdb_ms"] = json!(median(duckdb, whole) * 1e3);
            figures["over_duckdb"] = json!(logs.mean.exp());
            figures["over_duckdb_low"] = json!(at(-1.0));
            figures["over_duckdb_high"] = json!(at(1.0));
        }
        setting.labelled(arm, &format!("q{}", query.query), figures)
    };
    setting.measured.iter().zip(ratios(&setting.measured, arm)).map(row).collect()
}

/// Sums and geometric means over sets of queries, of each arm.
pub(crate) fn sums(setting: &Setting) -> Vec<Value> {
    setting.of_arms(sums_of)
}

fn sums_of(setting: &Setting, arm: usize) -> Vec<Value> {
    let measured = &setting.measured;
    let all: Vec<usize> = measured.iter().map(|query| query.query).collect();
    let without = |left_out: usize| move |query: &usize| *query != left_out;
    let sets = match setting.suite {
        SuiteName::Tpch => vec![
            ("all", all.clone()),
            ("all without q18", all.into_iter().filter(without(18)).collect()),
            ("join-bound six", JOIN_BOUND.to_vec()),
            ("join-bound without q18", JOIN_BOUND.into_iter().filter(without(18)).collect()),
        ],
        SuiteName::Tpcds | SuiteName::Shapes => vec![("all", all)],
        SuiteName::Orders => orders::sets().into(),
    };
    let row = |(name, set): (&str, Vec<usize>)| {
        let chosen: Vec<&QueryRuns> =
            measured.iter().filter(|query| set.contains(&query.query)).collect();
        if chosen.is_empty() {
            return None;
        }
        let sum =
            |of: &dyn Fn(&QueryRuns) -> f64| chosen.iter().map(|query| of(query)).sum::<f64>();
        let stock = |of: fn(&Run) -> f64| sum(&|query| median(&query.stock, of));
        let ours = |of: fn(&Run) -> f64| sum(&|query| median(&query.arms[arm].1, of));
        let joins = sum(&|query| median(&query.stock, cpu) * query.join_share);
        let log = sum(&|query| logs(query, arm).mean) / chosen.len() as f64;
        let mut figures = json!({
            "stock_cpu_ms": stock(cpu) * 1e3,
            "ours_cpu_ms": ours(cpu) * 1e3,
            "stock_wall_ms": stock(wall) * 1e3,
            "ours_wall_ms": ours(wall) * 1e3,
            "times_less_cpu": stock(cpu) / ours(cpu),
            "times_less_cpu_geometric_mean": (-log).exp(),
            "bound": stock(cpu) / (stock(cpu) - joins).max(1e-6),
        });
        if setting.suite == SuiteName::Orders {
            let of_stock = |query: &&QueryRuns| median(&query.stock, cpu);
            figures["stock_worst_over_best"] = json!(spread(chosen.iter().map(of_stock)));
            let of_ours = |query: &&QueryRuns| median(&query.arms[arm].1, cpu);
            figures["ours_worst_over_best"] = json!(spread(chosen.iter().map(of_ours)));
        }
        if chosen.iter().all(|query| query.duckdb.is_some()) {
            let duckdb =
                sum(&|query| query.duckdb.as_ref().map_or(0.0, |runs| median(runs, whole)));
            let mean_log =
                |query: &QueryRuns| logs_over_duckdb(query, arm).map_or(0.0, |logs| logs.mean);
            let log = sum(&mean_log) / chosen.len() as f64;
            figures["whole_ms"] = json!(ours(whole) * 1e3);
            figures["duckdb_ms"] = json!(duckdb * 1e3);
            figures["over_duckdb"] = json!(ours(whole) / duckdb);
            figures["over_duckdb_geometric_mean"] = json!(log.exp());
        }
        Some(setting.labelled(arm, name, figures))
    };
    sets.into_iter().filter_map(row).collect()
}

/// The largest over the least.
fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let (low, high) = values
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    high / low
}

/// Tables of where the time is, for settings of one thread.
pub(crate) fn times(all: &[Setting]) -> Vec<Value> {
    let tables = all.iter().filter(|setting| setting.threads == 1).map(|setting| {
        let rows: Vec<Value> = setting.measured.iter().flat_map(times_of).collect();
        let storage = setting.storage.name();
        let title = format!("Where the time is: tables in {storage}, one thread");
        json!({ "title": title, "rows": rows })
    });
    tables.collect()
}

fn times_of(query: &QueryRuns) -> Vec<Value> {
    let row = |system: &str, times: &Times| {
        let mut row = json!({ "query": format!("q{}", query.query), "system": system });
        for kind in Kind::ALL {
            row[format!("{}_ms", kind.name())] = json!(times[kind as usize] * 1e3);
        }
        row
    };
    let ours = row("ours", &query.times);
    std::iter::once(ours).chain(query.duckdb_times.as_ref().map(|of| row("DuckDB", of))).collect()
}

/// Every run, in seconds of CPU.
pub(crate) fn raw(setting: &Setting) -> Vec<Value> {
    let seconds = |runs: &[Run]| runs.iter().map(cpu).collect::<Vec<_>>();
    let row = |query: &QueryRuns| {
        let mut row = json!({
            "tables": setting.storage.name(), "threads": setting.threads, "query": query.query,
            "stock_cpu_s": seconds(&query.stock),
        });
        for (arm, runs) in &query.arms {
            row[format!("{}_cpu_s", arm.name())] = json!(seconds(runs));
        }
        if let Some(runs) = &query.duckdb {
            row["duckdb_cpu_s"] = json!(seconds(runs));
        }
        row
    };
    setting.measured.iter().map(row).collect()
}

/// A table for the terminal.
pub(crate) fn table(setting: &Setting) -> String {
    (0..setting.arms.len()).map(|arm| table_of(setting, arm)).collect()
}

fn table_of(setting: &Setting, arm: usize) -> String {
    let (storage, threads) = (setting.storage.name(), setting.threads);
    let arm_name = setting.arms[arm].name();
    let mut text = format!("tables in {storage}, threads: {threads}, {arm_name}\n");
    let _ = writeln!(text, "       stock ms   ours ms    ratio  low    high   bound  joins (left)");
    for row in rows_of(setting, arm) {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "  {:<4} {:>8.1}  {:>8.1}  {:>6.3} {:>6.3} {:>6.3} {:>6.2}  {} ({}){}{}",
            row["query"].as_str().unwrap_or_default(),
            number("stock_cpu_ms"),
            number("ours_cpu_ms"),
            number("cpu_ratio"),
            number("ratio_low"),
            number("ratio_high"),
            number("bound"),
            row["joins"],
            row["joins_left"],
            if row["lost"] == true { "  LOST" } else { "" },
            beside_duckdb(&row),
        );
    }
    for row in sums_of(setting, arm) {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "  {:<22} {:>8.1} {:>8.1} ms: {:.3} times less CPU (geometric mean {:.3}, bound {:.2}){}{}",
            row["query"].as_str().unwrap_or_default(),
            number("stock_cpu_ms"),
            number("ours_cpu_ms"),
            number("times_less_cpu"),
            number("times_less_cpu_geometric_mean"),
            number("bound"),
            beside_duckdb(&row),
            of_orders(&row),
        );
    }
    text
}

fn of_orders(row: &Value) -> String {
    let Some(stock) = row["stock_worst_over_best"].as_f64() else { return String::new() };
    let ours = row["ours_worst_over_best"].as_f64().unwrap_or(f64::NAN);
    format!("  worst over best {ours:.2}, stock {stock:.2}")
}

fn beside_duckdb(row: &Value) -> String {
    let Some(over) = row["over_duckdb"].as_f64() else { return String::new() };
    let ms = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    format!("  whole {:.1} ms, {over:.2} of DuckDB's {:.1}", ms("whole_ms"), ms("duckdb_ms"))
}

/// How the figures were measured.
pub(crate) fn notes(arguments: &Arguments) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{} rounds, all arms in turn and in changing order, after a warm-up whose rows are \
             compared. \
             Times are of executing, without planning; medians over the rounds. CPU is that of \
             the whole process.",
            arguments.rounds
        ),
        "cpu_ratio is ours to stock: the mean log-ratio of the pairs, and its 95 % interval, \
         adjusted after Holm for the number of queries in the setting; lost means that the whole \
         interval is above 1.03."
            .to_owned(),
        "Where the time is: CPU inside operators without their inputs, of the first arm's plan, \
         medians of three runs with a clock around each operator; DuckDB's are its profiler's, of \
         one run, and its scans evaluate filters. Sideways filters are filters."
            .to_owned(),
        "bound is 1 / (1 - share of stock's CPU time inside its joins): what a query would gain \
         if joins were free. A sideways filter saves work of other operators too, so ours may \
         gain more."
            .to_owned(),
        "All arms have DataFusion's own settings and tables with statistics. `joins` is ours \
         without sideways filters (workahead.sideways_filters): each join for itself. `runtime` \
         is ours with the build side chosen at run time (workahead.build_side), which corrects \
         plans and not joins."
            .to_owned(),
    ];
    if arguments.duckdb {
        notes.push(
            "over_duckdb is the time from a query's text to its last row (whole_ms) to DuckDB's \
             (duckdb_ms), of the same rounds: planning is part of both. The mean log-ratio of \
             the pairs with its 95 % interval, and for sums that of the medians' sums. DuckDB \
             has as many threads, and reads the same Parquet files, with their metadata kept, or \
             its own tables of the same rows. Its answer is compared with stock's."
                .to_owned(),
        );
    }
    if let Some(mb) = arguments.memory_mb {
        notes.push(format!(
            "Each session has a greedy pool of {mb} MB; queries that fail in any arm are left out."
        ));
    }
    let named = arguments.suite.shapes().into_iter().zip(1..);
    let named: Vec<String> = named.map(|((name, _), number)| format!("q{number} {name}")).collect();
    let named = named.join("; ");
    match arguments.suite {
        SuiteName::Tpch | SuiteName::Tpcds => {}
        SuiteName::Shapes => notes.push(format!(
            "Shapes, after `dfbench hj`: {named}. A fact has {} M rows x scale, a dimension \
             100,000; counts and sums of keys are compared.",
            shapes::FACT_ROWS / 1e6
        )),
        SuiteName::Orders => notes.push(format!(
            "Orders, drawn at random, of a star and a chain of six tables: {named}. \
             worst_over_best is the largest CPU time of a set's orders over the least.",
        )),
    }
    notes
}
