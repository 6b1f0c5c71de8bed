//! Cells on a real PostgreSQL: what is shared between them, and what is left when they are done.

use std::collections::BTreeMap;

use workahead_study::cell::Cell;
use workahead_study::setting::{Setting, Settings};

use super::*;

fn cell(settings: &[(&str, Setting)]) -> Cell {
    let usual: [(&str, Setting); 5] = [
        ("workload", "dbmbench".into()),
        ("rows", 20_000.into()),
        ("inner_rows", 500.into()),
        ("clients", 2.into()),
        ("queries", 10.into()),
    ];
    let given = settings.iter().cloned().chain([]);
    let settings: Settings =
        usual.into_iter().chain(given).map(|(key, value)| (key.to_owned(), value)).collect();
    let protocol = Protocol::default();
    Cell { index: 0, block: 0, seed: 7, place: BTreeMap::new(), settings, protocol }
}

/// Below a directory that a server's own user may enter.
fn engine() -> (Served, tempfile::TempDir) {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path(), permissions).unwrap();
    let mut engine = Served::postgres();
    engine.keep_in(home.path());
    (engine, home)
}

#[test]
fn what_is_wrong_is_named_before_anything_starts() {
    let (engine, _home) = engine();
    for (key, value, says) in [
        ("clients", Setting::from(0), "setting `clients`: `0` is not a whole number from 1"),
        ("query", "ujn".into(), "unknown query `ujn`"),
        ("client", 2.into(), "unknown setting `client`: did you mean `clients`"),
        ("selectivity", Setting::Number(1e-9), "selectivity"),
        ("placement", "mixed".into(), "unknown placement `mixed`"),
    ] {
        let error = engine.check(&cell(&[(key, value)])).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn what_this_machine_lacks_makes_a_cell_impossible_in_words() {
    let (engine, _home) = engine();
    let need = |key, value: Setting| engine.check(&cell(&[(key, value)])).unwrap();
    assert_eq!(need("smt", "on".into()).impossible, None);
    let out = need("smt", "off-hotplug".into()).impossible;
    assert_eq!(out.is_some(), smt::can_switch(&Root::live()).is_err());
    let many = need("cpus", 4096.into()).impossible.unwrap();
    assert!(many.starts_with("4096 CPUs can't be had"), "{many}");
}

#[test]
fn cells_share_a_server_and_its_data_and_leave_nothing_behind() {
    let (mut engine, _home) = engine();
    let stop = Stop::new();
    let mut sample_from = |start, settings: &[(&str, Setting)]| {
        let mut cell = cell(settings);
        cell.protocol.start = start;
        engine.prepare(&cell, &stop).unwrap();
        let sample = engine.run(&cell, &stop).unwrap();
        (sample, engine.database.pid().unwrap())
    };
    let mut sample = |settings: &[(&str, Setting)]| sample_from(Start::Warm, settings);
    let (first, server) = sample(&[("query", "utpcc".into())]);
    assert_eq!(first.tuples, 10);
    assert!(first.wall_s > 0.0 && first.measures["latency_p50_ms"] > 0.0, "{first:?}");
    assert!(first.measures["client_cpu_share"] < 1.0, "{first:?}");
    let (join, same) = sample(&[("query", "unj".into())]);
    assert!(join.plan.is_some_and(|plan| plan.text.contains("Nested Loop")));
    assert_eq!(server, same, "other queries need no other server");
    let (_, other) = sample(&[("cpus", 1.into())]);
    assert_ne!(server, other, "other CPUs do");
    let timed = [("seconds", Setting::Number(0.2)), ("rate", Setting::Number(50.0))];
    assert!(sample(&timed).0.tuples <= 10 + 2);
    assert_eq!(sample_from(Start::Cold, &[]).0.tuples, 10);
    engine.finish().unwrap();
    assert!(engine.database.pid().is_none());
    let left = |pid: u32| std::path::Path::new("/proc").join(pid.to_string()).exists();
    assert!(![server, same, other].into_iter().any(left));
}
