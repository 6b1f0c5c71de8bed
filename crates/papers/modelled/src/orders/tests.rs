//! Settings of order entry: which machine they make, and what is said of wrong ones.

use workahead_study::engine::Engine as _;
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use super::*;
use crate::engine::ModelledEngine;

const TINY: &str = "transactions = 3, warmup = 1, items = 200, customers = 20, clients = 2";

/// Checks and runs the only cell of a study on the quad.
fn run(settings: &str) -> Result<Sample, String> {
    let text = format!(
        "title = \"t\"\nquestion = \"q\"\nengine = \"modelled\"\nseed = 7\n\
         workload = {{ machine = \"ppro-quad\", workload = \"order-entry\", {settings} }}\n"
    );
    let spec = Spec::parse("test", &text).map_err(|error| error.to_string())?;
    let run_plan = RunPlan::new(&spec);
    let (mut engine, stop) = (ModelledEngine::default(), Stop::new());
    let cell = &run_plan.cells[0];
    engine.check(cell).map_err(|error| error.to_string())?;
    engine.prepare(cell, &stop).map_err(|error| error.to_string())?;
    engine.run(cell, &stop).map_err(|error| error.to_string())
}

#[test]
fn settings_choose_the_machine() {
    let of = |settings: &str| run(&format!("{TINY}, {settings}")).unwrap();
    let one = of("cpus = 1, l2_kib = 256");
    assert_eq!((one.tuples, one.measures["dirty_miss_share"]), (3, 0.0));
    let four = of("cpus = 4, l2_kib = 256");
    assert_eq!(four.tuples, 12);
    assert!(four.measures["dirty_miss_share"] > 0.0);
    assert!(four.measures.contains_key("instructions_share_p3"));
    let large = of("cpus = 4, l2_kib = 1024");
    assert!(large.measures["l2_mpki"] < four.measures["l2_mpki"]);
    // Nobody waits for room of another's where only one has any.
    let alone = of("cpus = 1, l2_kib = 256, outstanding = 1");
    assert_eq!(alone.answer, one.answer);
    assert!(alone.wall_s > one.wall_s);
    let free = of("cpus = 4, l2_kib = 256, index = \"lock-free\"");
    assert_eq!(free.answer, four.answer);
    assert_eq!(of("cpus = 1, index_only = \"reads\"").tuples, 3 * PROBES);
}

/// Two draws are other transactions, and their mean lies between them.
#[test]
fn transactions_are_drawn() {
    let two = run(&format!("{TINY}, cpus = 2, draws = 2")).unwrap();
    let first = run(&format!("{TINY}, cpus = 2")).unwrap();
    let [shortest, longest] = ["wall_s_shortest", "wall_s_longest"].map(|time| two.measures[time]);
    assert!(shortest < two.wall_s && two.wall_s < longest);
    assert!((shortest..=longest).contains(&first.wall_s));
    assert_eq!(two.tuples, first.tuples);
    assert!(two.answer.rows > first.answer.rows);
}

#[test]
fn wrong_settings_are_one_line() {
    for (settings, says) in [
        ("cpus = 0", "1 to 64"),
        ("l2_kib = 0", "1 to 1048576"),
        ("outstanding = 0", "1 to 64"),
        ("items = 5", "100 to 100000"),
        ("clients = 0", "1 to 1000"),
        ("transactions = 0", "1 to 1000000"),
        ("draws = 0", "1 to 1000"),
        ("cpus = 64, warehouses = 7", "lower it to 6 each"),
        ("index = \"latchless\"", "latched"),
        ("index_only = \"writes\"", "mixed"),
        ("warehuoses = 3", "warehouses"),
    ] {
        let error = run(settings).unwrap_err();
        assert!(error.contains(says) && !error.contains('\n'), "{settings}: {error}");
    }
}
