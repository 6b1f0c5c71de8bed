//! Studies on servers that already run: refusals, tables left behind, visible processes.

use std::collections::BTreeMap;

use workahead_engines::attach::{Access, Target};
use workahead_engines::attached;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, Stop};
use workahead_study::protocol::{Protocol, Start};
use workahead_study::setting::Setting;
use workahead_workloads::session::Session;

use crate::shared;

/// A query on little data, with more settings.
fn cell(more: &[(&str, Setting)]) -> Cell {
    let usual = [
        ("workload", "dbmbench".into()),
        ("query", "utpcc".into()),
        ("rows", 20_000.into()),
        ("inner_rows", 200.into()),
        ("queries", 10.into()),
    ];
    of(usual.into_iter().chain(more.iter().cloned()))
}

fn of<'a>(settings: impl IntoIterator<Item = (&'a str, Setting)>) -> Cell {
    let all = settings.into_iter();
    let settings = all.map(|(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>();
    Cell {
        index: 0,
        block: 0,
        seed: 7,
        place: BTreeMap::new(),
        settings,
        protocol: Protocol::default(),
    }
}

fn failed<T>(result: Result<T, EngineError>) -> String {
    match result {
        Err(EngineError::Failed(says) | EngineError::Refused(says)) => {
            let says = says.to_string();
            assert!(!says.contains('\n'), "{says}");
            says
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

fn impossible(engine: &dyn Engine, cell: &Cell) -> String {
    engine.check(cell).unwrap().impossible.expect("it was not refused").to_string()
}

/// How many rows a query answers with.
fn rows(owner: &mut dyn Session, text: &str) -> u64 {
    let statement = owner.prepare(text).unwrap();
    owner.query(statement, &[], &mut |_| Ok(())).unwrap()
}

/// Whatever another data set's mark says; of one by an earlier version only its own tables follow.
fn spares_tables_of_others(writer: &mut dyn Engine, owner: &mut dyn Session) {
    let stop = Stop::new();
    let mark = "SELECT name FROM workahead_data WHERE name LIKE 'dbmbench%'";
    assert!(rows(owner, mark) > 0);
    owner.run("CREATE TABLE orders (precious int)").unwrap();
    owner.run("INSERT INTO orders VALUES (1), (2)").unwrap();
    let order_entry = of([("workload", "order-entry".into()), ("warehouses", 1.into())]);
    let says = failed(writer.prepare(&order_entry, &stop));
    assert!(says.contains("a table `orders` that is not ours"), "{says}");
    let nothing = of([("workload", "sql".into()), ("sql", "select 1".into())]);
    writer.prepare(&nothing, &stop).unwrap();
    assert!(rows(owner, mark) > 0, "what needs no data leaves others' mark");

    owner.run("ALTER TABLE workahead_data DROP COLUMN made").unwrap();
    let says = failed(writer.prepare(&order_entry, &stop));
    assert!(says.contains("a table `orders` that is not ours"), "{says}");
    let says = failed(writer.prepare(&cell(&[("inner_rows", 300.into())]), &stop));
    assert!(says.contains("a table `t1` that is not ours"), "{says}");
    // It has to be made again.
    owner.run("DELETE FROM t1").unwrap();
    writer.prepare(&cell(&[("inner_rows", 500.into())]), &stop).unwrap();
    assert_eq!(rows(owner, "SELECT a1 FROM t1"), 20_000);
    assert_eq!(rows(owner, "SELECT name FROM workahead_data WHERE made = 't1'"), 1);
    assert_eq!(rows(owner, "SELECT precious FROM orders"), 2);
    owner.run("DROP TABLE orders").unwrap();
}

/// The checks of both products; `setting` is one that only the server's owner can set.
fn is_a_guest(engine: &str, url: &str, mut owner: Box<dyn Session>, setting: &str) {
    let stop = Stop::new();
    let context = EngineContext::default();
    let open = |access| {
        let target = Target { superuser: true, ..Target::parse(url, access).unwrap() };
        attached(engine, target, &context).unwrap()
    };
    let mut reader = open(Access::ReadOnly);
    let says = failed(reader.prepare(&cell(&[]), &stop));
    assert!(says.ends_with("--allow-writes lets the run make the tables of `dbmbench`"), "{says}");

    owner.run("CREATE TABLE t1 (precious int)").unwrap();
    let mut writer = open(Access::Write);
    let says = failed(writer.prepare(&cell(&[]), &stop));
    assert!(says.contains("a table `t1` that is not ours"), "{says}");
    owner.run("DROP TABLE t1").unwrap();
    let nothing = of([("workload", "sql".into()), ("sql", "select 1".into())]);
    writer.prepare(&nothing, &stop).unwrap();
    assert!(owner.prepare("SELECT name FROM workahead_data").is_err(), "nothing was made");

    let mut sample = |more: &[(&str, Setting)]| {
        let cell = cell(more);
        assert_eq!(writer.check(&cell).unwrap().impossible, None);
        writer.prepare(&cell, &stop).unwrap();
        writer.run(&cell, &stop).unwrap()
    };
    let first = sample(&[]);
    assert_eq!(first.tuples, 10);
    // It may be less than a tick of the clock.
    assert!(first.cpu_s.is_some(), "its socket shows its process");
    assert_eq!(sample(&[("inner_rows", 500.into())]).tuples, 10, "other data is made again");
    assert_eq!(sample(&[("inner_rows", 500.into())]).tuples, 10, "the same is found again");
    spares_tables_of_others(writer.as_mut(), owner.as_mut());

    let says = impossible(writer.as_ref(), &cell(&[("cpus", 1.into())]));
    assert_eq!(says, "the server is not ours to put on CPUs");
    let mut cold = cell(&[]);
    cold.protocol.start = Start::Cold;
    assert_eq!(impossible(writer.as_ref(), &cold), "the server is not ours to start anew");
    let says = impossible(writer.as_ref(), &cell(&[(setting, "100MB".into())]));
    assert!(
        says.starts_with("only session settings can be changed on a server that is not ours: "),
        "{says}"
    );

    let cell = cell(&[("inner_rows", 500.into()), ("answers", "stored".into())]);
    reader.prepare(&cell, &stop).unwrap();
    let says = failed(reader.run(&cell, &stop));
    assert!(says.ends_with("--allow-writes lets the run write"), "{says}");
    writer.finish().unwrap();
    owner.run("SELECT * FROM workahead_data").unwrap();
}

#[test]
fn postgres_is_left_as_it_was() {
    let server = shared::postgres();
    server.create_database("guest").unwrap();
    let run = server.directory().join("run");
    let url = format!("postgres://workahead@/guest?host={}", run.display());
    let owner = Box::new(server.connect("guest").unwrap());
    is_a_guest("postgres", &url, owner, "server.shared_buffers");
    let target = Target::parse(&url, Access::ReadOnly).unwrap();
    let says = failed(attached("postgres", target.clone(), &EngineContext::default()));
    assert!(says.contains("`workahead` is a superuser"), "{says}");
    let target = Target { superuser: true, ..target };
    let says = failed(attached("mariadb", target, &EngineContext::default()));
    assert!(says.contains("is for `mariadb`, and the URL leads to `postgres`"), "{says}");
}

#[test]
fn mariadb_is_left_as_it_was() {
    let server = shared::mariadb();
    server.create_database("guest").unwrap();
    let socket = server.directory().join("run/mariadb.sock");
    let url = format!("mysql://root@/guest?socket={}", socket.display());
    let owner = Box::new(server.connect("guest").unwrap());
    is_a_guest("mariadb", &url, owner, "server.innodb_buffer_pool_instances");
}
