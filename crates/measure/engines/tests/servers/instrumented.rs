//! Cells of PostgreSQL under valgrind: repeated counts are equal, and unsupported cells are
//! refused.

use std::collections::BTreeMap;

use workahead_counters::instrumented::Tool;
use workahead_machine::EvidenceTier;
use workahead_study::cell::Cell;
use workahead_study::engine::Stop;
use workahead_study::instrument::Instrumentation;
use workahead_study::protocol::{Protocol, Start};
use workahead_study::setting::Setting;

use crate::shared;

/// Rows of the table that is read.
const ROWS: i64 = 20_000;

fn with(caches: &str) -> Instrumentation {
    Instrumentation { tool: Tool::Callgrind, caches: caches.to_owned() }
}

fn cell(settings: &[(&str, Setting)], start: Start) -> Cell {
    let usual = [
        ("workload", Setting::from("dbmbench")),
        ("query", "utpcc".into()),
        ("rows", ROWS.into()),
        ("answers", "returned".into()),
        ("queries", 1.into()),
    ];
    let all = usual.into_iter().chain(settings.iter().cloned());
    let settings = all.map(|(key, value)| (key.to_owned(), value)).collect();
    let protocol = Protocol { start, ..Protocol::default() };
    Cell { index: 0, block: 0, seed: 7, place: BTreeMap::new(), settings, protocol }
}

#[test]
fn a_query_on_postgres_is_counted_without_its_start() {
    let home = shared::directory();
    assert_eq!(shared::engine("postgres", home.path(), None).unwrap().tier(), None);
    let tool = Some(with("pentium-4-ht-2m"));
    let mut engine = shared::engine("postgres", home.path(), tool).unwrap();
    let (tier, why) = engine.tier().unwrap();
    assert!(tier == EvidenceTier::D && why.contains("model"), "{why}");
    let mut instructions = |settings: &[(&str, Setting)], start| {
        let (cell, stop) = (cell(settings, start), Stop::new());
        assert_eq!(engine.check(&cell).unwrap().impossible, None);
        engine.prepare(&cell, &stop).unwrap_or_else(|error| panic!("{error}"));
        let sample = engine.run(&cell, &stop).unwrap_or_else(|error| panic!("{error}"));
        assert!(sample.wall_s > 0.0 && sample.plan.is_some(), "{sample:?}");
        assert_eq!(sample.tuples, cell.integer("queries").unwrap() as u64);
        for name in ["load_share", "store_share", "l1d_mpki"] {
            let value = sample.measures.get(name).copied();
            assert!(value.is_some_and(|value| value > 0.0), "{name}: {:?}", sample.measures);
        }
        sample.measures["instructions"]
    };
    // More instructions than rows, and no server's start among them, which takes 54 million.
    let one = instructions(&[], Start::Warm);
    assert!((10.0 * ROWS as f64..20e6).contains(&one), "{one}");
    let three = instructions(&[("queries", 3.into())], Start::Warm);
    assert!((2.7..3.3).contains(&(three / one)), "{three} in three runs, {one} in one");
    // The first run in a backend fills its catalog caches.
    let cold =
        instructions(&[("caches", "32KiB,8,64; 32KiB,8,64; 2MiB,16,64".into())], Start::Cold);
    assert!(cold > 1.05 * one, "{cold} cold, {one} warm");
    engine.finish().unwrap();
}

#[test]
fn uncountable_cells_are_refused_in_a_line() {
    let home = shared::directory();
    let open = |name, instrumented: bool| {
        let tool = instrumented.then(|| with("pentium-pro-1m"));
        shared::engine(name, home.path(), tool)
    };
    let model = cell(&[("caches", "pentium-4-ht-2m".into())], Start::Warm);
    let error = open("postgres", false).unwrap().check(&model).unwrap_err().to_string();
    assert!(error.contains("`instrumented`"), "{error}");
    let engine = open("postgres", true).unwrap();
    for (settings, why) in [
        (vec![("caches", Setting::from("pentium-4-ht-2n"))], "did you mean `pentium-4-ht-2m`?"),
        (vec![("answers", "stored".into())], "answers = \"returned\""),
        (vec![("clients", 2.into())], "leave `clients` out"),
        (vec![("seconds", 1.into())], "give `queries`"),
        (vec![("parallel", 2.into())], "leave `parallel` out"),
    ] {
        let error = engine.check(&cell(&settings, Start::Warm)).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{settings:?}: {error}");
    }
    let mut several = cell(&[("workload", "tpch".into())], Start::Warm);
    several.settings.retain(|key, _| key == "workload" || key == "queries");
    several.settings.insert("scale".to_owned(), Setting::Number(0.01));
    let error = engine.check(&several).unwrap_err().to_string();
    assert!(error.contains("this `tpch` has 22 to explain"), "{error}");
    // It is a superuser's, whatever a view calls that the study made.
    let mut stranger = cell(&[("workload", "sql".into())], Start::Warm);
    stranger.settings.retain(|key, _| key == "workload" || key == "queries");
    stranger.settings.insert("sql".to_owned(), "select a from v".into());
    let view = home.path().join("view.sql");
    std::fs::write(&view, "create view v as select 1 as a;").unwrap();
    stranger.settings.insert("set_up".to_owned(), view.to_str().unwrap().into());
    let error = engine.check(&stranger).unwrap_err().to_string();
    assert!(error.contains("leave `set_up` out"), "{error}");
    // One that is several to PostgreSQL, where a backslash means nothing.
    stranger.settings.remove("set_up");
    let several = "select e'\\'; create table public.x (); -- '";
    stranger.settings.insert("sql".to_owned(), several.into());
    let error = engine.check(&stranger).unwrap_err().to_string();
    assert!(error.contains("a single backend runs queries only"), "{error}");
    let error = open("mariadb", true).map(drop).unwrap_err().to_string();
    assert!(error.contains("`mariadb` can't be run under valgrind"), "{error}");
    let error = open("duckdb", true).map(drop).unwrap_err().to_string();
    assert!(error.contains("`workahead study run`") && error.contains("duckdb"), "{error}");
}
