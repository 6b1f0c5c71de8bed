//! Every study that comes with the command, each of its cells run once on little data: what it
//! names exists, and every answer is the oracle's.

use workahead_engines::open;
use workahead_study::catalogue;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineError, Sample, Stop};
use workahead_study::plan::Plan;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;

/// The same cell over little data: which data it is about stays, how much of it does not.
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

fn run(engine: &mut dyn Engine, cell: &Cell) -> Result<Sample, EngineError> {
    let stop = Stop::new();
    engine.prepare(cell, &stop)?;
    engine.run(cell, &stop)
}

#[test]
fn every_cell_of_every_study_runs() {
    for study in catalogue::all() {
        let spec = Spec::parse(study.id, study.text).unwrap();
        let mut engine = open(&spec.engine).unwrap();
        for cell in Plan::new(&spec).cells {
            engine.check(&cell).unwrap_or_else(|error| panic!("{}: {error}", study.id));
            let cell = little(cell);
            let sample = run(engine.as_mut(), &cell)
                .unwrap_or_else(|error| panic!("{}: {:?}: {error}", study.id, cell.settings));
            assert!(sample.answer.rows > 0 && sample.wall_s > 0.0, "{}", study.id);
        }
        engine.finish().unwrap();
    }
}
