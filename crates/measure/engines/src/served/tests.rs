//! Cells on real servers: what they share, what they leave behind, and every workload on little
//! data.

use std::collections::BTreeMap;

use workahead_study::cell::Cell;
use workahead_study::plans::{Label, Node};
use workahead_study::setting::{Setting, Settings};
use workahead_study::spec::Spec;

use super::database::ProcessScope;
use super::*;

type CellConfiguration<'a> = [(&'a str, Setting)];

fn cell(settings: &CellConfiguration<'_>) -> Cell {
    let usual =
        [("workload", "dbmbench".into()), ("rows", 20_000.into()), ("inner_rows", 500.into())];
    of(&[&usual, settings].concat())
}

/// The later setting of a name wins.
fn of(settings: &CellConfiguration<'_>) -> Cell {
    let usual: [(&str, Setting); 2] = [("clients", 2.into()), ("queries", 10.into())];
    let settings: Settings = usual
        .iter()
        .chain(settings)
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect();
    let protocol = Protocol::default();
    Cell { index: 0, block: 0, seed: 7, place: BTreeMap::new(), settings, protocol }
}

/// Below a directory that a server's own user may enter.
fn engine() -> (DatabaseEngine, tempfile::TempDir) {
    homed(DatabaseEngine::postgres)
}

fn homed(
    open: fn(&EngineContext) -> Result<DatabaseEngine, EngineError>,
) -> (DatabaseEngine, tempfile::TempDir) {
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path(), permissions).unwrap();
    let context = EngineContext { data_dir: home.path().to_owned(), ..EngineContext::default() };
    (open(&context).unwrap(), home)
}

#[test]
fn wrong_settings_are_named_before_anything_starts() {
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
fn a_cell_that_this_machine_can_not_run_has_a_reason() {
    let (engine, _home) = engine();
    let need = |key, value: Setting| engine.check(&cell(&[(key, value)])).unwrap();
    assert_eq!(need("smt", "on".into()).impossible, None);
    let out = need("smt", "off-hotplug".into()).impossible;
    assert_eq!(out.is_some(), smt::can_switch(&Sysroot::live()).is_err());
    let reserved = Machine::here().huge_pages.reserved.iter().any(|pool| pool.pages > 0);
    assert_eq!(need("pages", "huge".into()).impossible.is_some(), !reserved);
    let many = need("cpus", 4096.into()).impossible.unwrap().to_string();
    assert!(many.starts_with("4096 CPUs requested"), "{many}");
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
        (sample, engine.database.scope())
    };
    let mut sample = |settings: &[(&str, Setting)]| sample_from(Start::Warm, settings);
    let (first, server) = sample(&[("query", "utpcc".into())]);
    assert_eq!(first.tuples, 10);
    assert!(first.cpu_s.is_some(), "{first:?}");
    assert!(first.wall_s > 0.0 && first.measures["latency_p50_ms"] > 0.0, "{first:?}");
    // A server's ten transactions may lie between two ticks of the CPU time that Linux reports.
    let [ours, theirs] = ["client_cpu_s", "server_cpu_s"].map(|name| first.measures[name]);
    assert!(ours > 0.0, "{first:?}");
    assert_eq!(first.measures["client_cpu_share"], ours / (ours + theirs), "{first:?}");
    let (join, same) = sample(&[("query", "unj".into())]);
    assert!(join.plan.is_some_and(|plan| plan.text.contains("Nested Loop")));
    assert_eq!(server, same, "other queries use the same server");
    let (_, other) = sample(&[("cpus", 1.into()), ("scheduler", "batch".into())]);
    assert_ne!(server, other, "other CPUs do");
    let timed = [("seconds", Setting::Number(0.2)), ("rate", Setting::Number(50.0))];
    assert!(sample(&timed).0.tuples <= 10 + 2);
    assert_eq!(sample_from(Start::Cold, &[]).0.tuples, 10);
    engine.finish().unwrap();
    assert_eq!(engine.database.scope(), ProcessScope::Unseen);
    let left = |scope| match scope {
        ProcessScope::Process(pid) => std::path::Path::new("/proc").join(pid.to_string()).exists(),
        ProcessScope::Within | ProcessScope::Unseen => panic!("its process was not seen"),
    };
    assert!(![server, same, other].into_iter().any(left));
}

/// Runs a cell twice, each time on the data as loaded. Returns the second sample.
fn twice(engine: &mut DatabaseEngine, settings: &CellConfiguration<'_>) -> Sample {
    both(engine, settings).1
}

fn both(engine: &mut DatabaseEngine, settings: &CellConfiguration<'_>) -> (Sample, Sample) {
    let (cell, stop) = (of(settings), Stop::new());
    let mut run = || {
        let sample = engine.prepare(&cell, &stop).and_then(|()| engine.run(&cell, &stop));
        sample.unwrap_or_else(|error| panic!("{settings:?}: {error}"))
    };
    let (first, second) = (run(), run());
    assert_eq!(first.answer, second.answer, "{settings:?}");
    (first, second)
}

fn every_workload(engine: &mut DatabaseEngine) {
    let orders = [
        ("workload", "order-entry".into()),
        ("items", 2_000.into()),
        ("customers", 60.into()),
        ("queries", 200.into()),
    ];
    let sample = twice(engine, &orders);
    let measure = |name: &str| sample.measures[name];
    assert!(measure("nopm") > 0.0 && measure("new_order_share") > 0.3, "{sample:?}");
    let of_bound = measure("nopm") / 12.863;
    assert!((measure("of_bound_share") / of_bound - 1.0).abs() < 1e-3, "{sample:?}");
    // On any machine a few clients without pauses exceed people at two warehouses.
    let scaled = twice(engine, &[&orders[..], &[("scale_to_bound", 2.into())]].concat());
    assert_eq!(scaled.measures["warehouses"], 2.0);
    let sysbench = [("workload", "sysbench-oltp".into()), ("rows", 300.into())];
    for form in ["0.4", "1.0"] {
        let form = [("form", form.into()), ("distribution", "gaussian".into())];
        assert_eq!(twice(engine, &[&sysbench[..], &form].concat()).tuples, 10);
    }
    // Where nothing changes, both repetitions must have been answered alike.
    let reads = [("script", "read-only".into()), ("clients", 2.into())];
    let answer = twice(engine, &[&sysbench[..], &reads].concat()).answer;
    assert!(answer.rows > 3_000 && answer.checksum != 0, "{answer:?}");
    let tpch = [("workload", "tpch".into()), ("scale", Setting::Number(0.01))];
    let one = [("query", Setting::from(6)), ("queries", 2.into())];
    let sample = twice(engine, &[&tpch[..], &one].concat());
    assert_eq!((sample.tuples, sample.answer.rows), (2, 1));
    assert!(sample.plan.is_some() && sample.measures["planning_ms"] > 0.0);
    // A year of lines of orders, if an index leads to it, or all 60,000; twice.
    let read = sample.measures["rows_read"];
    assert!((10_000.0..200_000.0).contains(&read), "{read} rows");
    let (first, second) = both(engine, &[&tpch[..], &one, &[("explain", "run".into())]].concat());
    let timed = [first, second].map(|sample| sample.plan.unwrap().timed());
    let took = |node: &Node| {
        let mut took_ms = 0.0;
        node.visit(0, &mut |_, node| took_ms += node.time_ms.unwrap_or_default());
        took_ms
    };
    assert!(timed[0].as_ref().is_some_and(|tree| took(tree) > 0.0));
    assert_eq!(timed[0], timed[1], "it is run once, and no time is twice the same");
    let some = [("query", "1,3-5".into()), ("texts", "date-correlated".into())];
    assert!(twice(engine, &[&tpch[..], &some].concat()).measures["q04_per_s"] > 0.0);
    let own =
        [("workload", "sql".into()), ("data", "tpch".into()), ("scale", Setting::Number(0.01))];
    let text = [("sql", "select count(*) from orders; select 1".into())];
    assert_eq!(twice(engine, &[&own[..], &text].concat()).tuples, 10);
}

#[test]
fn every_workload_runs_on_postgres() {
    let (mut engine, _home) = engine();
    every_workload(&mut engine);
    engine.finish().unwrap();
}

#[test]
fn every_workload_runs_on_mariadb() {
    let (mut engine, _home) = homed(DatabaseEngine::mariadb);
    every_workload(&mut engine);
    // Its own clock, where it is configured.
    let counting = [("server.userstat", "on".into()), ("queries", 400.into())];
    let sample = twice(&mut engine, &[&[("workload", "dbmbench".into())], &counting[..]].concat());
    let (own, seen) = (sample.measures["engine_cpu_s"], sample.measures["server_cpu_s"]);
    assert!((0.1..1.5).contains(&(own / seen)), "{own} of {seen}");
    engine.finish().unwrap();
}

#[test]
fn a_users_own_data_is_set_up_once_and_brought_back() {
    let (mut engine, home) = engine();
    let set_up = home.path().join("schema.sql");
    let table = "create table t (n int); insert into t values (1), (2); analyze t";
    std::fs::write(&set_up, table).unwrap();
    let path = set_up.to_str().unwrap();
    let own = |sql: &'static str| {
        [("workload", Setting::from("sql")), ("set_up", path.into()), ("sql", sql.into())]
    };
    let sample = twice(&mut engine, &own("insert into t values (3)"));
    assert_eq!(sample.tuples, 10);
    let mut connection = engine.database.connector().unwrap().open().unwrap();
    let statement = connection.session().prepare("select count(*) from t").unwrap();
    let rows =
        workahead_workloads::session::first(connection.session(), statement, &[], |row| row.int(0));
    assert_eq!(rows, Ok(Some(12)));
    drop(connection);
    engine.finish().unwrap();
    for (settings, says) in [
        (&own("select 'a")[..], "setting `sql`: line 1"),
        (&[("workload", "sql".into())], "needs its statements"),
        (&[("workload", "sql".into()), ("file", "none.sql".into())], "none.sql: "),
        (
            &[("workload", "sql".into()), ("sql", "select 1".into()), ("data", "tpcc".into())],
            "tpch",
        ),
        (&[("workload", "tpch".into()), ("query", 23.into())], "does not name queries"),
        (&[("workload", "order-entry".into()), ("items", 5.into())], "5 items"),
        (&[("workload", "tpch".into()), ("explain", "ran".into())], "unknown explain `ran`"),
    ] {
        let error = engine.check(&of(settings)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_server_that_is_killed_recovers_and_goes_on_beside_loops() {
    let (mut engine, _home) = engine();
    let orders = [
        ("workload", Setting::from("order-entry")),
        ("items", 2_000.into()),
        ("customers", 60.into()),
        ("seconds", Setting::Number(1.5)),
        ("kill_at", Setting::Number(0.4)),
        ("loops", "per-cpu".into()),
        ("loop_bytes", 8192.into()),
    ];
    let sample = twice(&mut engine, &orders);
    let measure = |name: &str| sample.measures[name];
    assert!(measure("per_s_before") > 0.0 && measure("per_s_after") > 0.0, "{sample:?}");
    assert!((measure("killed_after_s") - 0.6).abs() < 1e-9 && measure("recovery_s") > 0.0);
    assert!(sample.wall_s > 1.4 && measure("nopm") > 0.0, "{sample:?}");
    assert!(measure("loop_passes_per_cpu_s") > 0.0 && measure("load_s") > 0.0, "{sample:?}");
    engine.finish().unwrap();
    let error = engine.check(&of(&[&orders[..], &[("seconds", 0.into())]].concat())).unwrap_err();
    assert!(error.to_string().contains("give `seconds` too"), "{error}");
}

#[test]
fn bounds_on_correlated_dates_save_rows_and_keep_answers() {
    let (mut engine, _home) = engine();
    let tpch: [(&str, Setting); 4] = [
        ("workload", "tpch".into()),
        ("scale", Setting::Number(0.01)),
        ("queries", 1.into()),
        ("layout", "by-ship-date".into()),
    ];
    // Of the queries that bound one date and read another, those whose plan can use the bound.
    for query in [3, 4, 10, 12] {
        let query = [("query", Setting::from(query))];
        let mut sample = |texts: &str| {
            twice(&mut engine, &[&tpch[..], &query, &[("texts", texts.into())]].concat())
        };
        let (one, other) = (sample("specified"), sample("date-correlated"));
        assert_eq!(one.answer, other.answer, "{query:?}");
        let rows = [one, other].map(|sample| sample.measures["rows_read"]);
        assert!(2.0 * rows[1] < rows[0], "{query:?}: {rows:?}");
    }
}

/// Q10 and Q15 are left to the study: on so few rows they waver between two orders of joins.
#[test]
fn forced_plans_are_one_whatever_the_degree() {
    let study = include_str!("../../../../../studies/chang/forced-plans.toml");
    let study = Spec::parse("chang/forced-plans", study).unwrap();
    let forced = study.cases.into_iter().find(|case| case.name == "plans forced").unwrap().settings;
    let forced: Vec<(&str, Setting)> =
        forced.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let (mut engine, _home) = engine();
    for query in [1, 6, 18] {
        let mut plan = |parallel: i64| {
            let tpch = [
                ("workload", Setting::from("tpch")),
                ("scale", Setting::Number(0.01)),
                ("layout", "by-ship-date".into()),
                ("query", query.into()),
                ("queries", 1.into()),
                ("parallel", parallel.into()),
                ("server.max_worker_processes", 64.into()),
                ("server.max_parallel_workers", 64.into()),
            ];
            let (cell, stop) = (of(&[&tpch[..], &forced].concat()), Stop::new());
            engine.prepare(&cell, &stop).unwrap();
            engine.run(&cell, &stop).unwrap().plan.unwrap()
        };
        let two = plan(2);
        assert!(two.text.contains("Gather"), "query {query}: {}", two.text);
        for parallel in [4, 5, 6, 7, 8] {
            let label = plan(parallel).against(&two);
            assert_eq!(label, Label::Same, "query {query} by {parallel}");
        }
    }
    engine.finish().unwrap();
}
