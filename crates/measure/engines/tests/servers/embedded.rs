//! Databases in this process as engines of a study: cells, settings, cold starts, plans.

use std::collections::BTreeMap;

use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, Sample, Stop};
use workahead_study::protocol::{Protocol, Start};
use workahead_study::setting::Setting;

use crate::shared;

/// Queries of a repetition.
const QUERIES: i64 = 4;

fn cell(settings: &[(&str, Setting)], start: Start) -> Cell {
    let usual = [
        ("workload", Setting::from("dbmbench")),
        ("query", "unj".into()),
        ("rows", 20_000.into()),
        ("inner_rows", 3_000.into()),
        ("plan", "native".into()),
        ("queries", QUERIES.into()),
    ];
    let all = usual.into_iter().chain(settings.iter().cloned());
    let settings = all.map(|(key, value)| (key.to_owned(), value)).collect();
    let protocol = Protocol { start, ..Protocol::default() };
    Cell { index: 0, block: 0, seed: 7, place: BTreeMap::new(), settings, protocol }
}

/// Cells of a few kinds, one after the other.
fn goes_through(engine: &mut dyn Engine, always: &[(&str, Setting)]) {
    let stop = Stop::new();
    let mut sample = |settings: &[(&str, Setting)], start| -> Sample {
        let cell = cell(&[settings, always].concat(), start);
        assert_eq!(engine.check(&cell).unwrap().impossible, None);
        engine.prepare(&cell, &stop).unwrap_or_else(|error| panic!("{error}"));
        engine.run(&cell, &stop).unwrap_or_else(|error| panic!("{error}"))
    };
    let first = sample(&[], Start::Warm);
    assert_eq!(first.tuples, QUERIES as u64);
    assert!(first.wall_s > 0.0 && first.cpu_s.is_some(), "{first:?}");
    // The time of the two is one figure.
    assert!(!first.measures.contains_key("client_cpu_share"), "{first:?}");
    let tree = first.plan.expect("a plan").tree().unwrap();
    assert!(format!("{tree:?}").to_lowercase().contains("join"), "{tree:?}");
    for settings in [
        vec![("parallel", Setting::from(2)), ("clients", 2.into())],
        vec![("query", "uss".into()), ("cpus", 1.into())],
        vec![("query", "utpcc".into())],
    ] {
        assert_eq!(sample(&settings, Start::Warm).tuples, QUERIES as u64);
    }
    assert_eq!(sample(&[], Start::Cold).tuples, QUERIES as u64);
    let wrong = cell(&[("server.no_such_setting", 1.into())], Start::Warm);
    let error = engine.prepare(&wrong, &stop).unwrap_err().to_string();
    assert!(error.contains("no_such_setting") && !error.contains('\n'), "{error}");
    engine.finish().unwrap();
}

#[test]
fn duckdb_goes_through_a_study() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = shared::engine("duckdb", home.path(), None).unwrap();
    assert!(engine.version().starts_with("DuckDB 1."), "{}", engine.version());
    goes_through(engine.as_mut(), &[]);
}

#[test]
#[cfg(feature = "sql")]
fn datafusion_goes_through_a_study_with_either_joins() {
    for joins in ["stock", "workahead"] {
        let home = tempfile::tempdir().unwrap();
        let mut engine = shared::engine("datafusion", home.path(), None).unwrap();
        assert!(engine.version().starts_with("DataFusion "), "{}", engine.version());
        goes_through(engine.as_mut(), &[("server.joins", joins.into())]);
    }
}

#[test]
#[cfg(not(feature = "sql"))]
fn datafusion_names_the_build_that_has_it() {
    let home = tempfile::tempdir().unwrap();
    let opened = shared::engine("datafusion", home.path(), None);
    let error = opened.map(drop).unwrap_err().to_string();
    assert!(error.contains("--features sql"), "{error}");
}
