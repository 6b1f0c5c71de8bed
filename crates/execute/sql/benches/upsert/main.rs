//! Upserts of wide rows within a memory limit: the full outer join that `merge_insert` runs
//! (lance-format/lance#8129), with vectors of 16 B to 4 KB in each row, in a `FairSpillPool` of
//! 150 MB.
//!
//! ```text
//! target, source ─► streams of generated batches ─► full join on id ─► rows summed, then dropped
//! each run a process: time, answer, peak of its resident memory and of its pool above the start
//! ```
//!
//! The target is the build side: no statistics say that it is the larger one, which is what such a
//! plan has (lance-format/lance#7719). Tables are generated while they are read, so that all memory
//! above the start is the query's; a run that only reads them tells what that costs.

mod child;
// Only a part of these two is used here.
#[allow(dead_code)]
#[path = "../../../walks/benches/measure/mod.rs"]
mod measure;
#[allow(dead_code)]
#[path = "../../../walks/tests/resident/mod.rs"]
mod resident_memory;
mod tables;

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use measure::{Arguments, Report};
use serde_json::{Value, json};
use tables::Shape;

/// Of the recorded runs.
const ROUNDS: usize = 3;

/// A run without an answer by then has none: exchanges that run short of memory may wait for each
/// other forever (apache/datafusion#24883). Others take seconds.
const LIMIT: Duration = Duration::from_secs(300);
const SMALL_LIMIT: Duration = Duration::from_secs(60);

/// The work of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    /// Ours, in the pool.
    Limited,
    /// Ours, without a limit.
    Unlimited,
    /// DataFusion's own join, in the pool.
    StockLimited,
    /// DataFusion's own, without a limit.
    Stock,
    /// No join: both tables are read.
    Read,
}

impl Arm {
    const ALL: [Self; 5] =
        [Self::Limited, Self::Unlimited, Self::StockLimited, Self::Stock, Self::Read];

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Limited | Self::Unlimited)
    }

    pub(crate) fn is_limited(self) -> bool {
        matches!(self, Self::Limited | Self::StockLimited)
    }
}

/// The report of a process.
struct Run {
    ms: f64,
    cpu_ms: f64,
    answer: [u64; 2],
    resident_mb: f64,
    reserved_mb: f64,
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, arm, shape, size] = &words[..]
        && word == "--child"
    {
        let [arm, shape] = [arm, shape].map(|word| word.parse::<usize>().expect("an index"));
        let is_small = size == "small";
        println!("{}", child::run(Arm::ALL[arm], &Shape::all(is_small)[shape], is_small));
        return;
    }
    let arguments = Arguments::read();
    let mut report = Report::new(&arguments, "Upserts of wide rows in a pool of 150 MB");
    for (at, shape) in Shape::all(arguments.small).iter().enumerate() {
        let row = measured(&arguments, at, shape);
        report.row(&row.iter().map(|(name, value)| (*name, value.clone())).collect::<Vec<_>>());
    }
    report.finish(&[
        "`MB` are the resident memory (VmHWM) above that before the query; `reserved` is the \
         pool's peak. Times are medians of rounds in turn, each run a process of its own, on \
         two threads and partitions.",
        "`read` only reads both tables, in MB also the program's own pages. Stock's error is that of its first run in the pool.",
    ]);
}

/// All runs of a shape, in turn.
fn measured(arguments: &Arguments, at: usize, shape: &Shape) -> Vec<(&'static str, Value)> {
    let size = if arguments.small { "small" } else { "whole" };
    let mut runs: Vec<Vec<Run>> = Arm::ALL.map(|_| Vec::new()).into();
    let mut failure = None;
    for _ in 0..arguments.rounds(ROUNDS) {
        for (arm, runs) in runs.iter_mut().enumerate() {
            if Arm::ALL[arm] == Arm::StockLimited && failure.is_some() {
                continue;
            }
            match child_run([arm, at], size) {
                Ok(run) => runs.push(run),
                Err(why) if Arm::ALL[arm] == Arm::StockLimited => failure = Some(why),
                Err(why) => panic!("{}, {:?}: {why}", shape.name, Arm::ALL[arm]),
            }
        }
    }
    let joined = runs[..4].iter().flatten();
    for run in joined {
        assert_eq!(run.answer, runs[1][0].answer, "{}: another answer", shape.name);
    }
    let ms = |arm: Arm| median(&runs[arm as usize], |run| run.ms);
    let cpu_ms = |arm: Arm| median(&runs[arm as usize], |run| run.cpu_ms);
    let peak =
        |arm: Arm, of: fn(&Run) -> f64| runs[arm as usize].iter().map(of).fold(f64::NAN, f64::max);
    let (limited, unlimited) = (Arm::Limited, Arm::Unlimited);
    let resident_mb = peak(limited, |run| run.resident_mb);
    let reserved_mb = peak(limited, |run| run.reserved_mb);
    let stock = failure.unwrap_or_else(|| format!("{:.0} ms", ms(Arm::StockLimited)));
    vec![
        ("shape", json!(shape.name)),
        ("build MB", json!(shape.build_mb().round())),
        ("limited ms", json!(ms(limited).round())),
        ("unlimited ms", json!(ms(unlimited).round())),
        ("ratio", json!(ms(limited) / ms(unlimited))),
        ("limited CPU ms", json!(cpu_ms(limited).round())),
        ("unlimited CPU ms", json!(cpu_ms(unlimited).round())),
        ("read ms", json!(ms(Arm::Read).round())),
        ("MB", json!(resident_mb.round())),
        ("reserved MB", json!(reserved_mb.round())),
        ("reserved / MB", json!(reserved_mb / resident_mb)),
        ("read MB", json!(peak(Arm::Read, |run| run.resident_mb).round())),
        ("unlimited MB", json!(peak(unlimited, |run| run.resident_mb).round())),
        ("stock unlimited ms", json!(ms(Arm::Stock).round())),
        ("stock MB", json!(peak(Arm::Stock, |run| run.resident_mb).round())),
        ("stock in the pool", json!(stock)),
    ]
}

fn median(runs: &[Run], of: fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs this program again, for one query; or the error's first line.
fn child_run(indices: [usize; 2], size: &str) -> Result<Run, String> {
    let program = std::env::current_exe().expect("this program has a path");
    let [arm, shape] = indices.map(|index| index.to_string());
    let mut command = Command::new(program);
    command.args(["--child", &arm, &shape, size]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("this program starts again");
    let (start, limit) = (Instant::now(), if size == "small" { SMALL_LIMIT } else { LIMIT });
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > limit {
            child.kill().expect("a child");
            child.wait().expect("a child");
            return Err(format!("no answer in {} s", limit.as_secs()));
        }
        sleep(Duration::from_millis(5));
    }
    // Its output fits the pipes.
    let output = child.wait_with_output().expect("a child");
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let said: Value = serde_json::from_slice(&output.stdout).expect("one object");
    if let Some(error) = said["error"].as_str() {
        return Err(error.to_owned());
    }
    // The resident memory is unknown where its peak can't be reset.
    let number = |name: &str| said[name].as_f64().unwrap_or(f64::NAN);
    let answer = ["rows", "sum"].map(|name| said[name].as_u64().expect("a number"));
    let [ms, cpu_ms] = ["ms", "cpu_ms"].map(number);
    let [resident_mb, reserved_mb] = ["resident_mb", "reserved_mb"].map(number);
    Ok(Run { ms, cpu_ms, answer, resident_mb, reserved_mb })
}
