//! Runs every embedded study of modelled machines on little data, each value of a setting once: it
//! is valid, and every answer is the oracle's.

use workahead_modelled::ModelledEngine;
use workahead_study::catalogue;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, Stop};
use workahead_study::run_plan::RunPlan;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;
use workahead_study::testing::{self, CellsRun, folder_of};

/// A cell of a modelled query over few rows.
fn short(mut cell: Cell) -> Cell {
    let clients = cell.integer("clients").unwrap_or(1).min(2);
    let numbers = [("rows", 1000), ("inner_rows", 3000), ("queries", 1), ("clients", clients)];
    for (key, number) in numbers {
        cell.settings.insert(key.to_owned(), Setting::Integer(number));
    }
    // Checked before; it changes no answer.
    cell.settings.remove("model.cache.L2.bytes");
    cell
}

/// A cell over little data: its kind stays, its size does not.
fn little(mut cell: Cell) -> Cell {
    let mut set = |key: &str, rows| {
        cell.settings.insert(key.to_owned(), Setting::Integer(rows));
    };
    set("probe_rows", 12_000);
    match cell.settings.get("operator").and_then(Setting::as_text) {
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

/// A cell of modelled order entry over few rows.
fn few_orders(mut cell: Cell) -> Cell {
    let numbers =
        [("transactions", 2), ("warmup", 1), ("items", 200), ("customers", 20), ("clients", 2)];
    for (key, number) in numbers {
        cell.settings.insert(key.to_owned(), Setting::Integer(number));
    }
    cell
}

/// A cell of modelled sysbench with little work and few threads.
fn few_threads(mut cell: Cell) -> Cell {
    let threads = cell.integer("threads").unwrap_or(1).min(8);
    cell.settings.insert("threads".to_owned(), Setting::Integer(threads));
    let numbers = match cell.text("workload") {
        Some("sysbench-memory") => [("block_bytes", 1 << 14), ("total_bytes", 1 << 20)],
        _ => [("transactions", 2), ("warmup", 1)],
    };
    for (key, number) in numbers {
        cell.settings.insert(key.to_owned(), Setting::Integer(number));
    }
    cell
}

/// A cell for a model, which takes a hundred times as long per probe.
fn least(cell: Cell) -> Cell {
    match cell.text("workload") {
        Some("order-entry") => few_orders(cell),
        Some("sysbench-memory" | "sysbench-oltp") => few_threads(cell),
        Some(_) => short(cell),
        None => {
            let mut cell = little(cell);
            cell.settings.insert("probe_rows".to_owned(), Setting::Integer(2000));
            cell
        }
    }
}

/// A test for each folder of the catalogue, or a part of one: no test takes more than a minute.
macro_rules! every_study_runs {
    ($($test:ident: $folder:literal, $part:literal of $parts:literal;)*) => {
        $(
            #[test]
            fn $test() {
                every_study_runs($folder, $part, $parts);
            }
        )*

        #[test]
        fn every_study_is_in_a_folder() {
            let folders = [$($folder),*];
            for study in catalogue::all() {
                let spec = Spec::parse(study.id, study.text).unwrap();
                let covered = spec.engine != "modelled" || folders.contains(&folder_of(study.id));
                assert!(covered, "{}", study.id);
            }
        }
    };
}

every_study_runs! {
    beyond: "beyond", 1 of 2;
    more_beyond: "beyond", 2 of 2;
    hassanein: "hassanein", 1 of 1;
    keeton: "keeton", 1 of 1;
    yamada: "yamada", 1 of 1;
    zhou: "zhou", 1 of 1;
}

/// Of a folder's studies, those of one part.
fn every_study_runs(folder: &str, part: usize, parts: usize) {
    let studies = testing::studies("modelled", folder, (part, parts));
    assert!(!studies.is_empty());
    for spec in studies {
        let run_plan = RunPlan::new(&spec);
        let mut engine = ModelledEngine::open(&run_plan.engine_context()).unwrap();
        let mut run = CellsRun::default();
        for cell in run_plan.cells {
            let need = engine.check(&cell);
            let need = need.unwrap_or_else(|error| panic!("{}: {error}", spec.id));
            if need.impossible.is_some() {
                continue;
            }
            let cell = least(cell);
            if !run.adds(&cell) {
                continue;
            }
            let stop = Stop::new();
            let ran = engine.prepare(&cell, &stop).and_then(|()| engine.run(&cell, &stop));
            let sample =
                ran.unwrap_or_else(|error| panic!("{}: {:?}: {error}", spec.id, cell.settings));
            assert!(sample.tuples > 0 && sample.wall_s > 0.0, "{}", spec.id);
            assert!(sample.answer.rows > 0, "{}", spec.id);
        }
        engine.finish().unwrap();
    }
}
