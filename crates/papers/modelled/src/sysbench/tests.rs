//! Settings of sharing, and what they come to.

use workahead_study::cell::Cell;
use workahead_study::engine::Engine as _;
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use super::*;
use crate::engine::ModelledEngine;

/// The only cell of a study on the paper's machine.
fn cell(settings: &str) -> Result<Cell, String> {
    let text = format!(
        "title = \"t\"\nquestion = \"q\"\nengine = \"modelled\"\nseed = 7\n\
         workload = {{ machine = \"core2quad\", {settings} }}\n"
    );
    let spec = Spec::parse("test", &text).map_err(|error| error.to_string())?;
    Ok(RunPlan::new(&spec).cells.remove(0))
}

/// Checks and runs it.
fn run(settings: &str) -> Result<Sample, String> {
    let cell = &cell(settings)?;
    let mut engine = ModelledEngine::default();
    engine.check(cell).map_err(|error| error.to_string())?;
    engine.run(cell, &Stop::new()).map_err(|error| error.to_string())
}

/// Ten programs, each with a block of its threads.
fn blocks(more: &str) -> Sample {
    let settings = "workload = \"sysbench-memory\", programs = 10, threads = 16, \
                    block_bytes = 1048576, passes = 200, between = \"yield\"";
    run(&format!("{settings}, {more}")).unwrap()
}

#[test]
fn a_group_finds_its_own_lines() {
    let [fair, tas, itas, gang] = ["cfs", "tas", "itas", "gang"]
        .map(|scheduler| blocks(&format!("scheduler = \"{scheduler}\"")));
    let misses = |sample: &Sample| sample.measures["last_level_misses_per_tuple"];
    // Under ITAS a group's threads under both last caches take each other's lines, and win all the
    // same.
    assert!(misses(&tas) < misses(&fair));
    assert!(itas.wall_s < fair.wall_s && gang.wall_s < fair.wall_s);
    let co_run = |sample: &Sample| sample.measures["co_run_share"];
    assert!(co_run(&itas) > 1.4 * co_run(&fair), "{} {}", co_run(&itas), co_run(&fair));
    assert!(co_run(&gang) > 0.9, "{}", co_run(&gang));
    assert!(tas.measures["aggregation_share"] > 0.95);
    assert_eq!(fair.answer, itas.answer);
    assert_eq!(blocks("scheduler = \"itas\"").measures, itas.measures);
}

/// A bonus of nothing is fair queueing, to the last figure.
#[test]
fn no_bonus_changes_nothing() {
    let fair = blocks("scheduler = \"cfs\"");
    let none = blocks("scheduler = \"tas\", bonus_ms = 0");
    assert_eq!((none.wall_s, none.measures), (fair.wall_s, fair.measures));
}

/// Loops run beside what sleeps, and nobody waits longer than the bound and a slice of each.
#[test]
fn loops_have_what_is_left() {
    let settings = "workload = \"sysbench-memory\", threads = 8, block_bytes = 65536, \
                    passes = 400, between = \"sleep\", loops = 4, scheduler = \"itas\", \
                    time_scale = 100, delay_max_ms = 50";
    let sample = run(settings).unwrap();
    assert!(sample.measures["loop_passes_per_cpu_s"] > 1000.0);
    let longest = sample.measures["loop_delay_max_ms"];
    assert!(longest <= 0.5 + 3.0 * 0.6, "{longest}");
}

/// Clients and servers wake each other; statements are all done.
#[test]
fn clients_have_their_own_time() {
    let settings = "workload = \"sysbench-oltp\", threads = 8, rows = 1000, transactions = 8, \
                    client_uops = 2000, scheduler = \"itas\"";
    let sample = run(settings).unwrap();
    assert_eq!(sample.tuples, 8);
    let [client, work] = ["client_cpu_s", "work_cpu_s"].map(|name| sample.measures[name]);
    assert!(client > 0.0 && client < work / 4.0, "{client} {work}");
}

/// Memory of a run grows with its threads, and with those that have a transaction.
#[test]
fn threads_take_memory() {
    let needs = |workload: &str, more: &str| {
        let settings = format!("workload = \"sysbench-{workload}\", {more}");
        ModelledEngine::default().check(&cell(&settings).unwrap()).unwrap().memory_bytes
    };
    let memory = |more: &str| needs("memory", more);
    let one = memory("threads = 1");
    assert!(one >= 64 << 20, "{one}");
    assert_eq!(memory("programs = 1000, threads = 1000") - one, (1_000_000 - 1) * 1200);
    let oltp = |more: &str| needs("oltp", more);
    let few = oltp("threads = 1000, transactions = 2");
    assert_eq!(oltp("threads = 1000, transactions = 1000") - few, 998 * (12 << 20));
    assert_eq!(few - oltp("threads = 2, transactions = 2"), 998 * 2400);
}

#[test]
fn a_misspelt_scheduler_is_named() {
    let settings = "workload = \"sysbench-oltp\", scheduler = \"itsa\"";
    let said = run(settings).unwrap_err();
    assert!(said.contains("itas"), "{said}");
}
