//! Runs each cell of every embedded study of this engine once on little data: its settings are
//! valid, and every answer is the oracle's.

use std::collections::HashSet;
use std::io::{self, Read, Write};

use workahead_study::catalogue;
use workahead_study::cell::Cell;
use workahead_study::engine::{EngineContext, EngineRegistry, Stop};
use workahead_study::instrument::CACHES;
use workahead_study::run_plan::RunPlan;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;
use workahead_study::worker_process::{Command, Request};

/// A cell over little data: its kind stays, its size does not.
fn little(mut cell: Cell) -> Cell {
    let mut set = |key: &str, rows| {
        cell.settings.insert(key.to_owned(), Setting::Integer(rows));
    };
    set("probe_rows", 12_000);
    match cell.settings.get("operator").and_then(Setting::as_text) {
        Some("interference") => {}
        Some("heterogeneous") => {
            cell.settings.insert("rows".to_owned(), Setting::Integer(4000));
            cell.settings.insert("tree_rows".to_owned(), Setting::Integer(4000));
        }
        _ => {
            cell.settings.insert("rows".to_owned(), Setting::Integer(4000));
        }
    }
    cell.settings.remove("size");
    cell
}

/// The command that runs one cell: this program, with only [`one_cell_alone`] selected.
fn command() -> Command {
    let program = std::env::current_exe().unwrap();
    let arguments = [ALONE, "--exact", "--nocapture", "--test-threads=1"];
    Command { program, arguments: arguments.map(Into::into).into() }
}

const ALONE: &str = "one_cell_alone";

/// Started by the other test under valgrind, with a request on standard input. Without a request,
/// or with other tests, it does nothing.
#[test]
fn one_cell_alone() {
    let mut text = Vec::new();
    if std::env::args().any(|word| word == ALONE) {
        io::stdin().read_to_end(&mut text).unwrap();
    }
    if text.is_empty() {
        return;
    }
    let reply = engines().reply(&Request::parse(&text).unwrap());
    let line = format!("\n{}\n", reply.unwrap_or_else(|error| panic!("{error}")).line());
    io::stdout().write_all(line.as_bytes()).unwrap();
}

fn engines() -> EngineRegistry {
    let mut engines = EngineRegistry::default();
    workahead_native::register(&mut engines);
    engines
}

#[test]
fn every_cell_of_every_study_runs() {
    let home = tempfile::tempdir().unwrap();
    let engines = engines();
    let mut studies = 0;
    for study in catalogue::all() {
        let spec = Spec::parse(study.id, study.text).unwrap();
        if spec.engine != "native" {
            continue;
        }
        studies += 1;
        let run_plan = RunPlan::new(&spec);
        let context = EngineContext {
            data_dir: home.path().to_owned(),
            worker: Some(command()),
            ..run_plan.engine_context()
        };
        let mut engine = engines.open(&spec.engine, &context).unwrap();
        // Cells that differ in size only are then the same.
        let mut seen = HashSet::new();
        for cell in run_plan.cells {
            let need = engine.check(&cell);
            let need = need.unwrap_or_else(|error| panic!("{}: {error}", study.id));
            if need.impossible.is_some() {
                continue;
            }
            let mut cell = little(cell);
            if run_plan.instrumented.is_some() {
                // Checked above; the same work by another model.
                cell.settings.remove(CACHES);
                // So is the rest of a study that needs this large program: it takes ten seconds
                // under valgrind to start.
                if !seen.is_empty() {
                    continue;
                }
            }
            if !seen.insert(format!("{:?} {:?}", cell.settings, cell.protocol)) {
                continue;
            }
            let stop = Stop::new();
            let ran = engine.prepare(&cell, &stop).and_then(|()| engine.run(&cell, &stop));
            let sample =
                ran.unwrap_or_else(|error| panic!("{}: {:?}: {error}", study.id, cell.settings));
            assert!(sample.tuples > 0 && sample.wall_s > 0.0, "{}", study.id);
            assert!(sample.answer.rows > 0, "{}", study.id);
        }
        engine.finish().unwrap();
    }
    assert!(studies > 0);
}
