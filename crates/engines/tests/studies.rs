//! Every study that comes with the command, each of its cells run once on little data: what it
//! names exists, and every answer is the oracle's.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

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

/// The same cell of a served database over little data.
fn few(mut cell: Cell) -> Cell {
    for (key, number) in [("rows", 20_000), ("inner_rows", 500), ("queries", 12)] {
        cell.settings.insert(key.to_owned(), Setting::Integer(number));
    }
    cell
}

fn run(engine: &mut dyn Engine, cell: &Cell) -> Result<Sample, EngineError> {
    let stop = Stop::new();
    engine.prepare(cell, &stop)?;
    engine.run(cell, &stop)
}

#[test]
fn every_cell_of_every_study_runs() {
    // A server's own user may enter it, as it may not /root.
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    for study in catalogue::all() {
        let spec = Spec::parse(study.id, study.text).unwrap();
        let mut engine = open(&spec.engine).unwrap();
        let served = spec.engine != "native";
        engine.keep_in(home.path());
        for cell in Plan::new(&spec).cells {
            let need = engine.check(&cell);
            let need = need.unwrap_or_else(|error| panic!("{}: {error}", study.id));
            if need.impossible.is_some() {
                continue;
            }
            let cell = if served { few(cell) } else { little(cell) };
            let sample = run(engine.as_mut(), &cell)
                .unwrap_or_else(|error| panic!("{}: {:?}: {error}", study.id, cell.settings));
            // Clients of a server look at each answer themselves.
            assert!(sample.tuples > 0 && sample.wall_s > 0.0, "{}", study.id);
            assert!(served || sample.answer.rows > 0, "{}", study.id);
        }
        engine.finish().unwrap();
    }
}
