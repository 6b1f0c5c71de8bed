//! Queries run by the engine: their answers, and rejected settings.

use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineError, Sample, Stop};
use workahead_study::protocol::Protocol;
use workahead_study::setting::{Setting, Settings};

use crate::engine::ModelledEngine;

fn cell(words: &str) -> Cell {
    let setting = |word: &str| {
        let (key, value) = word.split_once('=').unwrap();
        let whole = value.parse().map(Setting::Integer);
        (key.to_owned(), whole.unwrap_or_else(|_| Setting::Text(value.to_owned())))
    };
    let machine = "machine=p4-ht-2m inner_rows=500 warmup=0 rows=500";
    let settings: Settings = machine.split(' ').chain(words.split(' ')).map(setting).collect();
    let (place, protocol) = (Settings::new(), Protocol::default());
    Cell { index: 0, block: 0, seed: 7, place, settings, protocol }
}

fn run(words: &str) -> Result<Sample, EngineError> {
    let mut engine = ModelledEngine::default();
    let cell = cell(words);
    engine.check(&cell)?;
    engine.run(&cell, &Stop::new())
}

/// Every client's answer is the oracle's for real databases.
#[test]
fn answers_are_the_served_databases() {
    for workload in ["utpcc", "uss", "unj"] {
        let sample = run(&format!("workload={workload} clients=2")).unwrap();
        assert_eq!(sample.tuples, 2);
        assert!(sample.answer.rows >= 2 && sample.answer.rows.is_multiple_of(2), "{workload}");
        // Each logical CPU executed about half.
        let share = sample.measures["instructions_share_p0"];
        assert!((0.45..0.55).contains(&share), "{share}");
    }
}

#[test]
fn a_wrong_setting_is_one_line() {
    for (words, said) in [
        ("workload=utpcd", "utpcc"),
        ("workload=utpcc clints=2", "clients"),
        ("workload=uss clients=0", "a whole number from 1 to 64"),
        ("workload=unj probe=ahead", "in-turn"),
        ("workload=unj probe=work-ahead clients=2", "fewer clients"),
        ("workload=uss probe=work-ahead", "probe"),
        ("workload=utpcc selectivity=2", "selectivity"),
        ("workload=unj set=hardware", "only a walk's"),
    ] {
        let error = run(words).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{words}: {error}");
    }
}

/// By hand: a server has five numbers for a row of T1 and one for a row of T2; a query keeps its
/// operations and, in vectors that double, twelve bytes of each selected row, a tenth of all.
#[test]
fn memory_grows_with_servers_and_clients() {
    let need = |words: &str| {
        let words = format!("workload=uss rows=1000000 {words}");
        ModelledEngine::default().check(&cell(&words)).unwrap().memory_bytes
    };
    let one = need("clients=8 servers=1");
    assert_eq!(need("clients=8 servers=8") - one, 7 * (1_000_000 * 20 + 500 * 4));
    let of_query = (4 << 20) + 2 * 12 * 100_000;
    assert_eq!(one - need("clients=1 servers=1"), 7 * of_query);
    assert_eq!(need("clients=8 servers=1 queries=2") - one, 8 * of_query);
}
