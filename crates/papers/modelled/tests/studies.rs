//! Runs each cell of every embedded study of modelled machines once on little data: its settings
//! are valid, and every answer is the oracle's.

use std::collections::HashSet;

use workahead_modelled::Modelled;
use workahead_study::catalogue;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, Stop};
use workahead_study::run_plan::RunPlan;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;

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
macro_rules! every_cell_runs {
    ($($test:ident: $folder:literal, $part:literal of $parts:literal;)*) => {
        $(
            #[test]
            fn $test() {
                every_cell_runs($folder, $part, $parts);
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

every_cell_runs! {
    beyond: "beyond", 1 of 2;
    more_beyond: "beyond", 2 of 2;
    hassanein: "hassanein", 1 of 1;
    keeton: "keeton", 1 of 1;
    yamada: "yamada", 1 of 1;
    zhou: "zhou", 1 of 1;
}

/// The part of a study's name before the slash.
fn folder_of(id: &str) -> &str {
    id.split_once('/').map_or(id, |(folder, _)| folder)
}

/// Of a folder's studies, those of one part.
fn every_cell_runs(folder: &str, part: usize, parts: usize) {
    let mut studies = 0;
    for study in catalogue::all() {
        let spec = Spec::parse(study.id, study.text).unwrap();
        if spec.engine != "modelled" || folder_of(study.id) != folder {
            continue;
        }
        studies += 1;
        if studies % parts != part % parts {
            continue;
        }
        let plan = RunPlan::new(&spec);
        let mut engine = Modelled::open(&plan.engine_context()).unwrap();
        // Cells that differ in size only are then the same.
        let mut seen = HashSet::new();
        for cell in plan.cells {
            let need = engine.check(&cell);
            let need = need.unwrap_or_else(|error| panic!("{}: {error}", study.id));
            if need.impossible.is_some() {
                continue;
            }
            let cell = least(cell);
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
    assert!(studies >= parts);
}
