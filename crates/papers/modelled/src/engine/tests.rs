//! Ctrl-C ends every kind of run in its middle.

use std::time::Duration;

use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use super::*;

/// Begun, but far from done.
const RUNNING: Duration = Duration::from_millis(20);

/// The only cell of a study on a modelled machine.
fn cell(settings: &str) -> Cell {
    let text = format!(
        "title = \"t\"\nquestion = \"q\"\nengine = \"modelled\"\nseed = 7\n\
         workload = {{ machine = \"p4-ht-512k\", {settings} }}\n"
    );
    let spec = Spec::parse("test", &text).unwrap_or_else(|error| panic!("{settings}: {error}"));
    RunPlan::new(&spec).cells.swap_remove(0)
}

/// The outcome of work in whose middle a stop is requested.
fn stopped<R>(stop: &Stop, work: impl FnOnce() -> R) -> R {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(RUNNING);
            stop.request();
        });
        work()
    })
}

/// Each would take from a second to minutes.
#[test]
fn every_kind_of_run_can_be_stopped() {
    for settings in [
        "workload = \"sysbench-memory\", passes = 100000",
        "workload = \"sysbench-oltp\", rows = 1000, transactions = 100000",
        "workload = \"uss\", rows = 500, inner_rows = 500, queries = 200",
        "workload = \"order-entry\", items = 200, customers = 20, transactions = 2000",
        "operator = \"hash_join\", rows = 2000, probe_rows = 300000, pages = \"small\"",
        "operator = \"hash_join\", rows = 2000, probe_rows = 50000, pages = \"small\", \
         scheduler = \"cfs\", loops = 200",
    ] {
        let (mut engine, stop) = (ModelledEngine::default(), Stop::new());
        let cell = cell(settings);
        engine.check(&cell).unwrap_or_else(|error| panic!("{settings}: {error}"));
        engine.prepare(&cell, &stop).unwrap_or_else(|error| panic!("{settings}: {error}"));
        let ran = stopped(&stop, || engine.run(&cell, &stop));
        assert!(matches!(ran, Err(EngineError::Stopped)), "{settings}: {ran:?}");
    }
}

/// Two operators race while they are prepared; rows of half a race would count for every run.
#[test]
fn a_race_can_be_stopped() {
    let (mut engine, stop) = (ModelledEngine::default(), Stop::new());
    let cell = cell(
        "operator = \"heterogeneous\", rows = 2000, probe_rows = 200000, tree_rows = 100000, \
         pages = \"small\"",
    );
    let prepared = stopped(&stop, || engine.prepare(&cell, &stop));
    assert!(matches!(prepared, Err(EngineError::Stopped)), "{prepared:?}");
}
