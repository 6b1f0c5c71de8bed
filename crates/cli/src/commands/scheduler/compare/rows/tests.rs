//! Rows of a small record.

use std::collections::BTreeMap;

use super::super::loads::LOADS;
use super::super::record::{Cell, SchedulerName};
use super::*;

fn record(values: &[(&str, &str, &str, &[f64])]) -> Record {
    let named = |words: &str| SchedulerName {
        words: words.to_owned(),
        ours: words.starts_with("itas"),
        name: None,
    };
    let cells = values.iter().flat_map(|(scheduler, load, figure, values)| {
        values.iter().map(|value| Cell {
            round: 1,
            scheduler: (*scheduler).to_owned(),
            load: (*load).to_owned(),
            figures: BTreeMap::from([((*figure).to_owned(), *value)]),
            failure: None,
        })
    });
    Record {
        workahead: String::new(),
        kernel: String::new(),
        cpu: String::new(),
        cpus: 4,
        cores: 2,
        seconds: 1.0,
        rounds: 2,
        schedulers: ["default", "itas", "scx_lavd"].map(named).into(),
        cells: cells.collect(),
    }
}

#[test]
fn every_measure_is_of_a_load() {
    for measure in &MEASURES {
        assert!(LOADS.iter().any(|load| load.name == measure.load), "{measure:?}");
    }
    for load in &LOADS {
        assert!(MEASURES.iter().any(|measure| measure.load == load.name), "{load:?}");
    }
}

#[test]
fn the_best_and_who_is_level_with_it() {
    let record = record(&[
        ("default", "memory", "passes_per_s", &[10.0, 12.0]),
        ("itas", "memory", "passes_per_s", &[11.0, 14.0]),
        ("scx_lavd", "memory", "passes_per_s", &[7.0, 8.0]),
        ("default", "overload", "wait_ns_max", &[2e6, 4e6]),
        ("itas", "overload", "wait_ns_max", &[9e6]),
        ("itas", "wakeups", "delay_ns_p50", &[1e6]),
    ]);
    let rows = rows(&record);
    let loads: Vec<&str> = rows.iter().map(|row| row.load).collect();
    assert_eq!(loads, ["memory", "wakeups", "overload"], "rows without a value are left out");
    assert_eq!(rows[0].best, Some(1));
    assert_eq!([0, 1, 2].map(|at| rows[0].is_level(at)), [true, true, false]);
    assert_eq!(rows[1].best, None, "one alone is not the best");
    assert_eq!((rows[2].best, rows[2].ratio(0, 1)), (Some(0), Some(3.0)));
    let losses = losses(&record, &rows);
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].row, losses[0].by, losses[0].ours), (2, 0, 1));
    let said = sentence(&record, &rows, &losses);
    assert!(said.starts_with("In 1 of 2 rows another"), "{said}");
    assert!(said.contains("in 1 it is the best, 0 of them alone"), "{said}");
}

#[test]
fn a_ratio_needs_two_numbers() {
    let record = record(&[
        ("default", "nice", "unfairness_points", &[0.0]),
        ("itas", "nice", "unfairness_points", &[3.0]),
        ("scx_lavd", "nice", "unfairness_points", &[0.0]),
    ]);
    let rows = rows(&record);
    assert_eq!((rows[0].ratio(0, 1), rows[0].ratio(0, 2)), (None, Some(1.0)));
    assert_eq!(losses(&record, &rows)[0].ratio, None);
}
