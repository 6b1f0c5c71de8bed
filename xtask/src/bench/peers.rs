//! `cargo xtask bench peers`: our join and those of other engines on the same data.
//!
//! ```text
//! venv ── wheels of the engines, pinned             bench/peers/requirements.txt
//! data ── generated once, Arrow files                bench/peers/generate.py
//! one process an engine, its own copy of the data    bench/peers/worker.py, or ours (`columns`)
//!         ▲ a request each in turn, there and back ──► seconds, and the answer
//! ```
//!
//! A figure is the ratio of two engines' times in the same round, the median over the rounds, so
//! that whatever else the machine does falls on both; every answer must be the one that is known
//! from how the data were drawn.

mod cases;
mod data;
mod engine;
mod options;
mod phases;
pub(crate) mod rounds;
mod summary;
pub(crate) mod venv;

use anyhow::Result;
use serde_json::{Value, json};

use self::engine::Engine;
use self::options::Options;
use self::rounds::CaseTimes;
use self::venv::Venv;
use super::Bench;
use crate::python;
use crate::workspace::Workspace;

/// Our engine first: all ratios are relative to it.
const OURS: &str = "workahead";
const PEERS: [&str; 5] = ["duckdb", "polars", "datafusion", "acero", "chdb"];
/// Of our join from Python.
const PYTHON_PEERS: [&str; 4] = ["python", "python_stream", "polars", "duckdb"];

const HELP: &str = "\
usage: cargo xtask bench peers [WORDS]

  --rounds N        rounds, all engines in turn in each (6)
  --threads LIST    threads of each engine (1,2)
  --only TEXT       of the cases those with this in their name
  --engines LIST    of duckdb, polars, datafusion, acero and chdb these, beside ours (all)
  --python          our join from Python, read in two ways, Polars and DuckDB instead (a release
                    wheel of ours): python, python_stream, polars and duckdb
  --dense           keys that are the numbers from 0 on
  --small           a fiftieth of the rows: checks answers, and measures little
  --phases          the phases of our joins too
  --json FILE       where the figures so far are kept (target/peers/latest.json)

The engines are wheels from PyPI. Whole runs are kept in bench/record/.
";

/// Runs the selected cases, and records them.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, HELP) {
        return Ok(true);
    }
    let options = Options::read(words)?;
    let cases = options.cases();
    let venv = venv(workspace, &options)?;
    let ours = engine::build(workspace)?;
    let so_far = match &options.json {
        Some(path) => path.clone(),
        None => workspace.target().join("peers/latest.json"),
    };
    let mut versions = Vec::new();
    let mut measured = Vec::new();
    for case in &cases {
        let data = data::prepare(workspace, &venv, case)?;
        for &threads in &options.threads {
            println!("== {} · {threads} thread{}", case.name, if threads == 1 { "" } else { "s" });
            let mut engines = Vec::new();
            for name in options.engines() {
                let mut engine = Engine::start(workspace, &venv, &ours, name, threads)?;
                engine.load(&data, options.python)?;
                engines.push(engine);
            }
            if versions.is_empty() {
                versions = engines.iter().map(Engine::named).collect();
            }
            for form in rounds::FORMS {
                let done = rounds::run(case, form, threads, &mut engines, (&data, options.rounds))?;
                print!("{}", summary::line(&done));
                if options.phases {
                    print!("{}", phases::lines(&done));
                }
                measured.push(done);
                // Hours may have gone into it, and the next engine may fail.
                let result = result(&options, &versions, &measured);
                super::write(&so_far, &(serde_json::to_string_pretty(&result)? + "\n"))?;
            }
        }
    }
    println!("all measured is in {}", so_far.display());
    keep(workspace, &options, &result(&options, &versions, &measured))?;
    Ok(true)
}

/// The engines' wheels, and ours where it is one of them.
fn venv(workspace: &Workspace, options: &Options) -> Result<Venv> {
    if !options.python {
        return Venv::prepare(workspace);
    }
    let folder = workspace.target().join("python/bench");
    let (venv, wheel) = python::build_wheel(workspace, &folder, &["--profile", "release"])?;
    python::install_wheel(&venv, &wheel)?;
    Ok(venv)
}

/// The record.
fn result(options: &Options, versions: &[String], measured: &[CaseTimes]) -> Value {
    let kind = if options.dense { "dense keys" } else { "sparse keys" };
    let title = if options.python {
        "Our join from Python beside the Rust one, Polars and DuckDB"
    } else {
        "Whole joins beside other engines"
    };
    json!({
        "title": format!("{title}: {kind}"),
        "rows": summary::rows(measured),
        "phases": measured.iter().map(phases::row).collect::<Vec<_>>(),
        "rounds": measured.iter().map(CaseTimes::raw).collect::<Vec<_>>(),
        "notes": summary::notes(options, versions, measured),
    })
}

/// Keeps runs of whole cases in the record.
fn keep(workspace: &Workspace, options: &Options, result: &Value) -> Result<()> {
    if !options.is_whole() {
        println!("not kept in bench/record: that takes all engines, threads, sizes and rounds");
        return Ok(());
    }
    let bench = Bench { package: "workahead-join".into(), name: options.record() };
    super::record(workspace, &bench, &super::machine(workspace)?, result)
}
