//! Every study of these engines that comes with the command, each value of its settings run once on
//! little data: its names exist, and every answer is the oracle's.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;

use workahead_study::catalogue;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, EngineRegistry, Sample, Stop};
use workahead_study::instrument::CACHES;
use workahead_study::run_plan::RunPlan;
use workahead_study::setting::Setting;
use workahead_study::spec::Spec;
use workahead_study::testing::{self, CellsRun, folder_of};
use workahead_study::worker_process::{Command, Request};

/// The same cell of a served database over little data.
fn few(mut cell: Cell) -> Cell {
    let workload = cell.text("workload").unwrap_or_default().to_owned();
    let numbers: &[(&str, i64)] = match workload.as_str() {
        "dbmbench" => &[("rows", 20_000), ("inner_rows", 500), ("queries", 12)],
        "order-entry" => &[("warehouses", 1), ("items", 2_000), ("customers", 60), ("queries", 60)],
        "sysbench-oltp" => &[("rows", 300), ("queries", 60)],
        _ => &[("queries", 1)],
    };
    for (key, number) in numbers {
        cell.settings.insert((*key).to_owned(), Setting::Integer(*number));
    }
    if cell.get("scale").is_some() {
        cell.settings.insert("scale".to_owned(), Setting::Number(0.01));
    }
    // One query stands for all others: each of them is run where answers are compared.
    if workload == "tpch" && cell.integer("query").is_some() {
        cell.settings.insert("query".to_owned(), Setting::Integer(6));
    }
    if let Some(parallel) = cell.integer("parallel") {
        cell.settings.insert("parallel".to_owned(), Setting::Integer(parallel.min(2)));
    }
    if cell.get("server.shared_buffers").is_some() {
        cell.settings.insert("server.shared_buffers".to_owned(), "64MB".into());
    }
    let clients = cell.integer("clients").unwrap_or(1).min(8);
    cell.settings.insert("clients".to_owned(), Setting::Integer(clients));
    // Crashes need a time; all other cells are counted.
    let seconds = if cell.get("kill_at").is_some() { 1.0 } else { 0.0 };
    cell.settings.insert("seconds".to_owned(), Setting::Number(seconds));
    cell.settings.remove("warmup_s");
    // The rate would require many warehouses.
    cell.settings.remove("scale_to_bound");
    cell
}

/// The same cell of sysbench's memory program over few bytes.
fn brief(mut cell: Cell) -> Cell {
    let block = cell.integer("block_bytes").unwrap_or(1024).min(1 << 16);
    let threads = cell.integer("threads").unwrap_or(1).min(8);
    let programs = cell.integer("programs").unwrap_or(1).min(2);
    let total = 8 * block * threads * programs;
    for (key, number) in [
        ("block_bytes", block),
        ("threads", threads),
        ("programs", programs),
        ("total_bytes", total),
    ] {
        cell.settings.insert(key.to_owned(), Setting::Integer(number));
    }
    cell
}

/// The command of a worker process: this program, running only the test [`one_cell_alone`].
fn command() -> Command {
    let program = std::env::current_exe().unwrap();
    let arguments = [ALONE, "--exact", "--nocapture", "--test-threads=1"];
    Command { program, arguments: arguments.map(Into::into).into() }
}

const ALONE: &str = "one_cell_alone";

/// The other test starts it under valgrind, with a request on its standard input. Without one, or
/// beside other tests, there is nothing to do.
#[test]
fn one_cell_alone() {
    let mut text = Vec::new();
    if std::env::args().any(|word| word == ALONE) {
        io::stdin().read_to_end(&mut text).unwrap();
    }
    if text.is_empty() {
        return;
    }
    let reply = engines().reply(&Request::parse(&text).unwrap());
    let line = format!("\n{}\n", reply.unwrap_or_else(|error| panic!("{error}")).line());
    io::stdout().write_all(line.as_bytes()).unwrap();
}

fn engines() -> EngineRegistry {
    let mut engines = EngineRegistry::default();
    workahead_engines::register(&mut engines);
    engines
}

fn run(engine: &mut dyn Engine, cell: &Cell) -> Result<Sample, EngineError> {
    let stop = Stop::new();
    engine.prepare(cell, &stop)?;
    engine.run(cell, &stop)
}

/// A test for each engine and folder of the catalogue, or a part of one: no test takes more than a
/// minute.
macro_rules! every_study_runs {
    ($($test:ident: $engine:literal, $folder:literal, $part:literal of $parts:literal;)*) => {
        $(
            #[test]
            fn $test() {
                every_study_runs($engine, $folder, ($part, $parts));
            }
        )*

        #[test]
        fn every_study_is_in_a_group() {
            let groups = [$(($engine, $folder)),*];
            let engines = engines();
            for study in catalogue::all() {
                let spec = Spec::parse(study.id, study.text).unwrap();
                let registered = engines.entries().any(|entry| entry.name == spec.engine);
                let group = (spec.engine.as_str(), folder_of(study.id));
                assert!(!registered || groups.contains(&group), "{}: {group:?}", study.id);
            }
        }
    };
}

every_study_runs! {
    datafusion_of_chang: "datafusion", "chang", 1 of 1;
    duckdb_of_chang: "duckdb", "chang", 1 of 1;
    duckdb_of_hassanein: "duckdb", "hassanein", 1 of 1;
    mariadb_of_hassanein: "mariadb", "hassanein", 1 of 1;
    mariadb_of_yamada: "mariadb", "yamada", 1 of 1;
    postgres_of_chang: "postgres", "chang", 1 of 3;
    postgres_of_chang_more: "postgres", "chang", 2 of 3;
    postgres_of_chang_rest: "postgres", "chang", 3 of 3;
    postgres_of_hassanein: "postgres", "hassanein", 1 of 1;
    postgres_of_keeton: "postgres", "keeton", 1 of 1;
    postgres_of_order_entry: "postgres", "order-entry", 1 of 1;
    sysbench_of_yamada: "sysbench", "yamada", 1 of 1;
}

/// Of an engine's studies in a folder, those of one part.
fn every_study_runs(engine_name: &str, folder: &str, (part, parts): (usize, usize)) {
    if engine_name == "datafusion" && !cfg!(feature = "sql") {
        return;
    }
    // A server's own user may enter it, as it may not /root.
    let home = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let engines = engines();
    let studies = testing::studies(engine_name, folder, (part, parts));
    assert!(!studies.is_empty());
    for spec in studies {
        let run_plan = RunPlan::new(&spec);
        let context = EngineContext {
            data_dir: home.path().to_owned(),
            worker: Some(command()),
            ..run_plan.engine_context()
        };
        let mut engine = engines.open(&spec.engine, &context).unwrap();
        let served = spec.engine != "sysbench";
        let mut run_already = CellsRun::default();
        for cell in run_plan.cells {
            let need = engine.check(&cell);
            let need = need.unwrap_or_else(|error| panic!("{}: {error}", spec.id));
            if need.impossible.is_some() {
                continue;
            }
            let mut cell = match spec.engine.as_str() {
                "sysbench" => brief(cell),
                _ => few(cell),
            };
            if run_plan.instrumented.is_some() {
                if served {
                    cell.settings.insert("queries".to_owned(), Setting::Integer(1));
                }
                // Checked above; the same work by another model.
                cell.settings.remove(CACHES);
                // So is the rest of a study: this large program, where it is started for a cell,
                // takes ten seconds under valgrind before it does anything.
                let all = spec.engine == "postgres" && CellsRun::are_all();
                if !all && !run_already.is_empty() {
                    continue;
                }
            }
            if !run_already.adds(&cell) {
                continue;
            }
            let sample = run(engine.as_mut(), &cell)
                .unwrap_or_else(|error| panic!("{}: {:?}: {error}", spec.id, cell.settings));
            // Clients of a server look at each answer themselves.
            assert!(sample.tuples > 0 && sample.wall_s > 0.0, "{}", spec.id);
            assert!(served || sample.answer.rows > 0, "{}", spec.id);
        }
        engine.finish().unwrap();
    }
}
