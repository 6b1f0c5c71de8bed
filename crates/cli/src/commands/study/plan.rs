//! `workahead study plan`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use workahead_study::engine::Need;
use workahead_study::method::Order;
use workahead_study::needs;
use workahead_study::protocol::Start;
use workahead_study::run_plan::RunPlan;
use workahead_study::session::CheckedRunPlan;
use workahead_study::setting::{Settings, one_line};
use workahead_study::spec::Spec;

use super::arguments::{self, DataArguments, StudyArguments};
use super::summary;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study plan quick --scale small")]
pub(crate) struct Args {
    #[command(flatten)]
    study: StudyArguments,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts<'a> {
    #[serde(flatten)]
    run_plan: &'a RunPlan,
    scale: &'a Option<String>,
    engine: &'a str,
    fingerprint: &'a str,
    samples: usize,
    time_s: Option<f64>,
    memory_bytes_max: u64,
    needs: &'a [Need],
    /// Of a million visits, some of which only programs want.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    order: Vec<Round>,
}

/// One repetition of one block: the cells in the order of their visits.
#[derive(Serialize)]
struct Round {
    block: usize,
    repetition: u32,
    cells: Vec<usize>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let spec = args.study.spec()?;
    let setup = arguments::setup(&spec, &DataArguments::default());
    let CheckedRunPlan { run_plan, needs, fingerprint, .. } = CheckedRunPlan::new(&spec, &setup)?;
    let facts = Facts {
        scale: &spec.scale,
        engine: &spec.engine,
        fingerprint: &fingerprint,
        samples: run_plan.samples(),
        time_s: spec.time_s,
        memory_bytes_max: needs::memory_bytes_max(&needs),
        needs: &needs,
        order: if args.json { order(&run_plan) } else { Vec::new() },
        run_plan: &run_plan,
    };
    if args.json {
        output::json(&facts)?;
    } else {
        output::text(&text(&spec, &facts)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn order(run_plan: &RunPlan) -> Vec<Round> {
    let round = |block, repetition| Round {
        block,
        repetition,
        cells: run_plan.visits(block, repetition).iter().map(|visit| visit.cell).collect(),
    };
    let blocks = 0..run_plan.blocks;
    blocks.flat_map(|block| (0..run_plan.repetitions).map(move |r| round(block, r))).collect()
}

fn text(spec: &Spec, facts: &Facts<'_>) -> Result<String, std::fmt::Error> {
    let run_plan = facts.run_plan;
    let (same, names) = split(run_plan);
    let mut header = vec!["block", "cell"];
    header.extend(names.iter().map(String::as_str));
    header.extend(["memory", "limitation here"]);
    let mut table = summary::table(&header);
    for (cell, need) in run_plan.cells.iter().zip(facts.needs) {
        let value = |name: &String| cell.get(name).map(ToString::to_string).unwrap_or_default();
        let mut row = vec![cell.block.to_string(), cell.index.to_string()];
        row.extend(names.iter().map(value));
        row.push(summary::mebibytes(need.memory_bytes));
        row.push(need.note().unwrap_or_default());
        table.add_row(row);
    }
    let mut text = String::new();
    let [title, question] = [&spec.title, &spec.question].map(|words| output::one_line(words));
    writeln!(text, "{}: {title}\n{question}", spec.id)?;
    writeln!(text, "same in every cell: {}", output::one_line(&one_line(&same)))?;
    writeln!(text, "{}", summary::lines(table))?;
    writeln!(
        text,
        "order: {}, data once per block; {}, then {}, {}",
        summary::count(run_plan.blocks, "block"),
        summary::count(run_plan.warmup as usize, "warm-up round"),
        summary::count(run_plan.repetitions as usize, "repetition"),
        match run_plan.order {
            Order::Abba => "forward and backward in turn",
            Order::Random => "each in a random order of its own",
        }
    )?;
    let cold = run_plan.cells.iter().filter(|cell| cell.protocol.start == Start::Cold).count();
    if cold > 0 {
        let cells = summary::count(cold, "cell");
        writeln!(text, "{cells} with empty buffers and no cached plans before every sample")?;
    }
    let time = match spec.time_s {
        Some(time_s) => format!(", about {}", summary::duration(time_s)),
        None => ", time unknown before its samples (no time_s in the study)".to_owned(),
    };
    let memory = summary::mebibytes(facts.memory_bytes_max);
    writeln!(text, "{} samples{time}, {memory} at the peak", facts.samples)?;
    write!(text, "run plan {} on engine {}", facts.fingerprint, facts.engine)?;
    Ok(text)
}

/// Settings that are the same in every cell, and the names of those that change: axes first.
fn split(run_plan: &RunPlan) -> (Settings, Vec<String>) {
    let cells = &run_plan.cells;
    let all: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.settings.keys()).collect();
    let varies = |name: &String| cells.iter().any(|cell| cell.get(name) != cells[0].get(name));
    let value = |name: &String| Some((name.clone(), cells[0].get(name)?.clone()));
    let same = all.iter().copied().filter(|name| !varies(name)).filter_map(value).collect();
    let others = all.iter().copied().filter(|name| !run_plan.axes.contains(name));
    let names = run_plan.axes.iter().chain(others).filter(|name| varies(name));
    (same, names.cloned().collect())
}
