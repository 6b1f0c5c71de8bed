//! `workahead simulate`: a workload on a modelled machine.

mod tables;

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use workahead_machine::Machine;
use workahead_modelled as modelled;
use workahead_simulator::catalogue;
use workahead_simulator::preset::{Figure, Preset};
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, Sample, Stop};
use workahead_study::host;
use workahead_study::protocol::Protocol;
use workahead_study::setting::{Setting, Settings};

use super::study::summary;
use crate::errors::WrongUse;
use crate::interrupt::{self, Interrupted};
use crate::{engines, output};

const HELP: &str = "\
Examples:
  workahead simulate                                    list the modelled machines
  workahead simulate --machine ppro-quad --describe     its parameters, with their sources
  workahead simulate --machine p4-ht-512k --workload hash_join --set technique=work-ahead
  workahead simulate --machine p4-ht-512k/ht-off --workload csb_tree --set rows=1000000
  workahead simulate --machine p4-ht-512k --change cache.L2.bytes=2097152 --workload hash_join
  workahead simulate --machine p4-ht-2m --workload utpcc --set clients=4 --set siblings=off
  workahead study run zhou/modelled_hash_join           a study on modelled machines

Settings are those of a study with `engine = \"modelled\"`: for walks technique, threads, rows,
probe_rows, probes, set_size, siblings, placement; for workloads see docs/models.md. Nothing is
measured: every figure is modelled (tier E), and the same on every computer.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// A modelled machine (variants after a slash), or the path of its file
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// An operator: hash_join, csb_tree, join_index, columnar, bucket or heterogeneous; or a
    /// database workload: utpcc, uss, unj, order-entry, sysbench-memory or sysbench-oltp
    #[arg(long, value_name = "WORKLOAD", requires = "machine")]
    workload: Option<String>,
    /// A setting of the workload; may be given several times
    #[arg(long, value_name = "KEY=VALUE", requires = "workload")]
    set: Vec<String>,
    /// Change a parameter of the machine, by its path; may be given several times
    #[arg(long, value_name = "PATH=VALUE", requires = "machine")]
    change: Vec<String>,
    /// Print every parameter of the machine with its source
    #[arg(long, requires = "machine", conflicts_with = "workload")]
    describe: bool,
    /// Seed of the random number generator for the data
    #[arg(long, default_value_t = 2005)]
    seed: u64,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(name) = &args.machine else {
        list(args.json)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut preset = Preset::named(name).map_err(wrong)?;
    for change in &args.change {
        preset = preset.with_override(change).map_err(wrong)?;
    }
    match &args.workload {
        Some(workload) if !args.describe => run_on(&args, &preset, workload)?,
        _ if args.describe => describe(&preset, args.json)?,
        _ => {
            return Err(WrongUse::error(format!(
                "no workload for {name}: add `--workload hash_join`, or `--describe` to see its \
                 parameters"
            )));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn wrong(error: impl std::fmt::Display) -> anyhow::Error {
    WrongUse::error(error.to_string())
}

/// A machine in a list.
#[derive(Serialize)]
struct MachineEntry {
    name: String,
    title: String,
    cpus: u32,
    variants: Vec<String>,
}

fn list(json: bool) -> anyhow::Result<()> {
    let mut machines = Vec::new();
    for name in catalogue::names() {
        let preset = Preset::named(name)?;
        machines.push(MachineEntry {
            name: name.to_owned(),
            cpus: preset.cpus(),
            variants: preset.variant.keys().cloned().collect(),
            title: preset.title,
        });
    }
    if json {
        return output::json(&machines);
    }
    let mut table = summary::table(&["machine", "CPUs", "variants", "description"]);
    for MachineEntry { name, title, cpus, variants } in machines {
        table.add_row([name, cpus.to_string(), variants.join(", "), title]);
    }
    output::text(&table.to_string())
}

/// The parameters of a machine.
#[derive(Serialize)]
struct MachineParameters {
    machine: String,
    title: String,
    figures: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    path: String,
    value: String,
    origin: String,
}

fn describe(preset: &Preset, json: bool) -> anyhow::Result<()> {
    let figure = |Figure { path, value, origin }| Parameter { path, value, origin };
    let parameters = MachineParameters {
        machine: preset.name.clone(),
        title: preset.title.clone(),
        figures: preset.described().into_iter().map(figure).collect(),
    };
    if json {
        return output::json(&parameters);
    }
    let mut table = summary::table(&["parameter", "value", "source"]);
    for Parameter { path, value, origin } in parameters.figures {
        table.add_row([path, value, origin]);
    }
    output::text(&format!("{}: {}\n\n{table}", parameters.machine, parameters.title))
}

/// The outcome of a run.
#[derive(Serialize)]
struct ModelledRun {
    machine: String,
    tier: &'static str,
    /// The code that the model stands for, if it is an engine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    settings: BTreeMap<String, String>,
    tuples: u64,
    modelled_s: f64,
    mtuples_per_s: f64,
    rows: u64,
    measures: BTreeMap<String, f64>,
}

fn run_on(args: &Args, preset: &Preset, workload: &str) -> anyhow::Result<()> {
    let settings = settings(args, workload)?;
    let cell = Cell {
        index: 0,
        block: 0,
        seed: args.seed,
        place: Settings::new(),
        settings,
        protocol: Protocol::default(),
    };
    let stop = Stop::from(interrupt::listen()?);
    let mut engine = engines::registry().open("modelled", &EngineContext::default())?;
    let sample = sample(engine.as_mut(), &cell, &stop).map_err(|error| match error {
        EngineError::Unknown { .. }
        | EngineError::Setting { .. }
        | EngineError::Refused(_)
        | EngineError::Failed(_) => wrong(error),
        EngineError::Stopped => Interrupted.into(),
        error => error.into(),
    })?;
    let outcome = ModelledRun {
        machine: preset.name.clone(),
        tier: "E",
        code: modelled::description(workload).map(|known| known.code),
        settings: cell
            .settings
            .iter()
            .map(|(key, value)| (key.clone(), value.to_string()))
            .collect(),
        tuples: sample.tuples,
        modelled_s: sample.wall_s,
        mtuples_per_s: sample.mtuples_per_s(),
        rows: sample.answer.rows,
        measures: sample.measures,
    };
    output::show(args.json, &outcome, || text(&outcome))
}

fn sample(engine: &mut dyn Engine, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
    let needed = engine.check(cell)?.memory_bytes;
    let available = host::available_bytes(&Machine::here());
    if needed > available {
        let [needed, available] = [needed.div_ceil(1 << 20), available >> 20];
        return Err(EngineError::refused(format!(
            "it needs {needed} MiB of memory, and {available} MiB are available: lower its sizes, \
             or those of the machine's caches"
        )));
    }
    engine.prepare(cell, stop)?;
    engine.run(cell, stop)
}

/// Settings as the study's engine reads them: a small run unless set otherwise.
fn settings(args: &Args, workload: &str) -> anyhow::Result<Settings> {
    let mut settings = Settings::new();
    // A walk, whose tables are sized here, or a workload with its own sizes.
    let kind = if modelled::description(workload).is_some() { "workload" } else { "operator" };
    if kind == "operator" {
        for (key, value) in [("rows", 200_000), ("probe_rows", 100_000)] {
            settings.insert(key.to_owned(), Setting::Integer(value));
        }
        settings.insert("pages".to_owned(), Setting::Text("small".to_owned()));
    }
    settings.insert(kind.to_owned(), Setting::Text(workload.to_owned()));
    let machine = args.machine.clone().unwrap_or_default();
    settings.insert("machine".to_owned(), Setting::Text(machine));
    let changes = args.change.iter().map(|change| (change, "model."));
    for (words, beginning) in args.set.iter().map(|set| (set, "")).chain(changes) {
        let Some((key, value)) = words.split_once('=') else {
            return Err(WrongUse::error(format!("`{words}` is not a setting: write KEY=VALUE")));
        };
        settings.insert(format!("{beginning}{}", key.trim()), setting(value.trim()));
    }
    Ok(settings)
}

fn setting(value: &str) -> Setting {
    match (value.parse(), value.parse(), value.parse()) {
        (Ok(switch), _, _) => Setting::Switch(switch),
        (_, Ok(whole), _) => Setting::Integer(whole),
        (_, _, Ok(number)) => Setting::Number(number),
        _ => Setting::Text(value.to_owned()),
    }
}

fn text(outcome: &ModelledRun) -> String {
    let words =
        outcome.settings.get("workload").and_then(|workload| modelled::description(workload));
    let (noun, checked) =
        words.map_or(("probes", "as an oracle says"), |words| (words.tuples, words.checked));
    let rate = match words {
        Some(_) => (format!("{noun} a second"), outcome.mtuples_per_s * 1e6),
        None => ("million probes a second".to_owned(), outcome.mtuples_per_s),
    };
    let tables = tables::all(&outcome.measures, "probe", rate);
    let settings: Vec<String> =
        outcome.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let code = outcome.code.map(|code| format!("\ncode: {code}")).unwrap_or_default();
    format!(
        "{}, modelled (tier E: nothing here was measured){code}\n{}\n{} {noun}, {} rows found, \
         {checked}\n\n{tables}",
        outcome.machine,
        settings.join(", "),
        outcome.tuples,
        outcome.rows,
    )
}
