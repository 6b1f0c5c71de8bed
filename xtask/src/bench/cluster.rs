//! `cargo xtask bench cluster`: TPC-H on workers, beside one process on the same CPUs.
//!
//! ```text
//! data tpch ─► files ─┬► workahead sql --threads 1 | N [--stock]      one process on 1 or N CPUs
//!                     └► workahead cluster, 1 and N workers, each with a thread and a CPU
//!                        └► workahead sql --cluster …                 as chosen, or on the workers
//!
//! each query in every way, in turn; a warm-up, then the rounds; rows compared, time and CPU kept
//! ```

mod figures;
mod process;
mod targets;
mod ways;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::{Bench, page, record};
use crate::workspace::{Workspace, succeed};
use figures::Figures;
use ways::{Runner, WAYS};

/// Options of the bench.
const WORDS: &str = "\
usage: cargo xtask bench cluster [WORDS]

  --scale N          of TPC-H [default: 1]
  --rounds N         measured runs of each query in each way, after a warm-up [default: 5]
  --workers N        workers of the larger cluster, and threads of the process beside it
                     [default: 2]
  --queries 4,5,18   only these
  --set NAME=VALUE   an option for the clusters' queries, as in `workahead sql`; repeat for several
  --pin-client       keep the client on its workers' CPUs, not where there is room
  --program FILE     this workahead, with clusters in it, and not a release build

Every run is added to bench-cluster/runs.jsonl in the target folder. A run of all queries at scale 1
with two workers, five rounds, and neither --set nor --pin-client is kept in bench/record/.
";

const QUERIES: usize = 22;
const ROUNDS: usize = 5;
const WORKERS: usize = 2;
/// Above this, something else is running: the average number of runnable threads.
const LOAD_MOST: f64 = 0.5;

#[derive(Debug)]
struct Options {
    scale: String,
    rounds: usize,
    workers: usize,
    queries: Vec<usize>,
    settings: Vec<String>,
    pin_client: bool,
    program: Option<PathBuf>,
}

/// Runs the bench with these words.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, WORDS) {
        return Ok(true);
    }
    let options = Options::read(words)?;
    let cpus = allowed_cpus()?;
    let Some(cpus) = cpus.get(..options.workers) else {
        bail!("{} workers need a CPU each, and {} are allowed here", options.workers, cpus.len());
    };
    let program = match &options.program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None => built(workspace)?,
    };
    let folder = workspace.target().join("bench-cluster");
    let data = data(&program, &folder, &options.scale)?;
    warn_of_load();
    let runner = Runner::start(&program, &data, &folder, cpus, &options)?;
    let figures = measure(&runner, &folder, &options)?;
    drop(runner);
    let mut tables = figures.tables();
    let first = tables.remove(0);
    let result = json!({
        "title": format!("TPC-H on 1 and {} workers, beside one process", options.workers),
        "rows": first["rows"],
        "tables": tables,
        "runs": figures.raw(),
        "notes": notes(&options, &figures),
    });
    let bench = Bench { package: "workahead-cluster".into(), name: "cluster".into() };
    let machine = machine_of(&program)?;
    if options.is_whole() {
        record(workspace, &bench, &machine, &result)?;
    } else {
        println!("{}", page::of(&json!({ "machine": machine, "result": result })));
        println!("not kept in bench/record: see --help");
    }
    Ok(true)
}

/// The warm-up and the rounds.
fn measure(runner: &Runner, folder: &Path, options: &Options) -> Result<Figures> {
    let path = folder.join("runs.jsonl");
    let mut log = File::create(&path).with_context(|| path.display().to_string())?;
    let mut figures = Figures::new(options.workers);
    let names: Vec<String> = WAYS.iter().map(|way| runner.name(*way)).collect();
    eprintln!("ms: {}", names.join(" | "));
    for round in 0..=options.rounds {
        for &query in &options.queries {
            let mut times = [0.0; WAYS.len()];
            for turn in 0..WAYS.len() {
                // None is always the one after the same other.
                let way = WAYS[(turn + round) % WAYS.len()];
                let (cost, rows) = runner.run(way, query)?;
                figures.check(query, rows).with_context(|| runner.name(way))?;
                times[way as usize] = cost.wall_s * 1e3;
                if round > 0 {
                    writeln!(log, "{}", cost.json(&names[way as usize], query, round))?;
                    figures.add(query, way, cost);
                }
            }
            let times: Vec<String> = times.iter().map(|ms| format!("{ms:>7.0}")).collect();
            match round {
                0 => eprint!("warm-up        "),
                _ => eprint!("round {round:>2} of {:<2} ", options.rounds),
            }
            eprintln!(" q{query:<3}{}", times.concat());
        }
    }
    Ok(figures)
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            scale: "1".into(),
            rounds: ROUNDS,
            workers: WORKERS,
            queries: (1..=QUERIES).collect(),
            settings: Vec::new(),
            pin_client: false,
            program: None,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            let above_zero = |text: &str| {
                let number = text.parse().ok().filter(|number| *number > 0);
                number.with_context(|| format!("{word} needs a number above zero, not {text:?}"))
            };
            match word {
                "--scale" => options.scale = (*value()?).to_owned(),
                "--rounds" => options.rounds = above_zero(value()?)?,
                "--workers" => options.workers = above_zero(value()?)?,
                "--set" => options.settings.push((*value()?).to_owned()),
                "--pin-client" => options.pin_client = true,
                "--program" => options.program = Some(PathBuf::from(value()?)),
                "--queries" => {
                    let numbers = value()?.split(',').map(str::parse).collect();
                    let numbers: Result<Vec<usize>, _> = numbers;
                    options.queries = numbers.context("--queries takes numbers, as 4,5,18")?;
                }
                other => bail!("`bench cluster` knows no {other}\n\n{WORDS}"),
            }
        }
        ensure!(
            options.queries.iter().all(|query| (1..=QUERIES).contains(query)),
            "queries are 1 to {QUERIES}"
        );
        ensure!(options.workers > 1, "the larger cluster has two workers at least");
        Ok(options)
    }

    fn is_whole(&self) -> bool {
        self.scale == "1"
            && self.rounds >= ROUNDS
            && self.workers == WORKERS
            && self.queries.len() == QUERIES
            && self.settings.is_empty()
            && !self.pin_client
    }
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Result<Vec<usize>> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(cpus_of).context("/proc/self/status has no list of CPUs")
}

/// CPUs of a list as the kernel writes it: `0-3,8`.
fn cpus_of(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn warn_of_load() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > LOAD_MOST) {
        eprintln!("other programs are running (load average {load}): figures will be worse");
    }
}

fn built(workspace: &Workspace) -> Result<PathBuf> {
    let words = ["build", "--release", "--package", "workahead-cli", "--features", "cluster"];
    succeed(&mut workspace.cargo(&words))?;
    Ok(workspace.target().join("release/workahead"))
}

/// The tables, generated unless they are there, and read once: later runs find them in memory.
fn data(program: &Path, folder: &Path, scale: &str) -> Result<PathBuf> {
    let data = folder.join(format!("tpch-{scale}"));
    if !data.join("supplier.parquet").is_file() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut command = Command::new(program);
        command.args(["data", "tpch", "--scale", scale, "--out"]).arg(&data);
        succeed(command.stdout(Stdio::null())).context("there are no tables to run queries on")?;
    }
    let mut buffer = vec![0; 1 << 20];
    for entry in std::fs::read_dir(&data)? {
        let mut file = File::open(entry?.path())?;
        while file.read(&mut buffer)? > 0 {}
    }
    Ok(data)
}

/// Uses the measured program: one without clusters would have to be built first.
fn machine_of(program: &Path) -> Result<serde_json::Value> {
    let output = Command::new(program).args(["machine", "--json"]).output()?;
    serde_json::from_slice(&output.stdout).context("workahead machine --json")
}

fn notes(options: &Options, figures: &Figures) -> Vec<String> {
    let build = match options.program {
        None => "release build",
        Some(_) => "a build that was given, not the release build of this bench",
    };
    let client = match options.pin_client {
        true => "The client runs on its workers' CPUs.",
        false => {
            "The client runs where there is room: beside one worker on another CPU, beside all of \
             them on theirs."
        }
    };
    let Options { rounds, scale, workers, .. } = options;
    let mut notes = vec![
        format!(
            "Times are medians in milliseconds, from the plan to the last row in a file; rounds: \
             {rounds}; scale {scale}, Parquet in the page cache, {build}. A process of 1 thread \
             has one CPU, one of {workers} threads {workers}; each worker has one thread and a CPU \
             of its own. {client} Every query's rows were equal in all ways."
        ),
        "CPU time is that of all workers and of the client or process, its start included, as \
         means over the rounds: the kernel counts it in steps of 10 ms. `stock` is with \
         DataFusion's joins. `chosen` leaves to the client whether a query runs in it or on the \
         workers (`cluster.run=auto`); the other columns of workers have `cluster.run=workers`."
            .to_owned(),
        "Among the targets a time is the sum of the medians above. A gain is the time of one \
         thread or worker over that of all of them. The worst query is the one with the largest \
         ratio of its time, as chosen, to the shorter of its times in the process of all threads \
         and on all workers."
            .to_owned(),
    ];
    let elsewhere = figures.run_elsewhere();
    if !elsewhere.is_empty() {
        notes.push(format!(
            "**Not run on workers**, which took no CPU time for them, but in the client: {}. These \
             figures are not of a cluster.",
            elsewhere.join("; ")
        ));
    }
    if !options.settings.is_empty() {
        notes.push(format!("Settings of the clusters' queries: {}.", options.settings.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_checked() {
        let words = ["--scale", "0.1", "--pin-client", "--queries", "4,5", "--workers", "3"];
        let options = Options::read(&words).unwrap();
        assert_eq!((options.scale.as_str(), options.queries.as_slice()), ("0.1", &[4, 5][..]));
        assert!(options.pin_client && !options.is_whole());
        assert!(Options::read(&[]).unwrap().is_whole());
        for wrong in [
            &["--rounds"][..],
            &["--rounds", "0"],
            &["--queries", "23"],
            &["--queries", ""],
            &["--workers", "1"],
            &["--x", "1"],
        ] {
            assert!(Options::read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus_of("\t0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus_of("7"), Some(vec![7]));
        assert_eq!(cpus_of("x"), None);
        assert!(!allowed_cpus().unwrap().is_empty());
    }
}
