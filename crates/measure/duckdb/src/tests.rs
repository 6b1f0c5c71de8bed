//! Against the real library.

use std::time::{Duration, Instant};

use super::*;

fn memory() -> Connection {
    let library = Library::find(None).unwrap_or_else(|error| panic!("{error}"));
    Database::open(library, ":memory:".as_ref(), &[("threads", "2")]).unwrap().connect().unwrap()
}

/// The first column of the first row.
fn first(connection: &mut Connection, text: &str) -> String {
    let mut answer = connection.ask(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let chunk = answer.next_chunk().expect("a row");
    format!("{:?}", chunk.cell(0, 0).unwrap())
}

#[test]
fn values_of_every_kind_come_and_go() {
    let mut connection = memory();
    for (text, shown) in [
        ("select true", "Int(1)"),
        ("select (-7)::tinyint", "Int(-7)"),
        ("select 65535::usmallint", "Int(65535)"),
        ("select 18446744073709551615::ubigint", "Real(1.8446744073709552e19)"),
        ("select sum(x) from range(10) t(x)", "Int(45)"),
        ("select -5::hugeint", "Int(-5)"),
        ("select 1.5::float", "Real(1.5)"),
        ("select -12.34::decimal(4, 2)", "Decimal { units: -1234, scale: 2 }"),
        ("select 12.34::decimal(9, 2)", "Decimal { units: 1234, scale: 2 }"),
        ("select -12.34::decimal(18, 2)", "Decimal { units: -1234, scale: 2 }"),
        ("select -12.34::decimal(38, 2)", "Decimal { units: -1234, scale: 2 }"),
        ("select date '1970-02-01'", "Days(31)"),
        ("select timestamp '1970-01-01 00:00:01'", "Micros(1000000)"),
        ("select 'twelve bytes'", "Text(\"twelve bytes\")"),
        ("select 'thirteen byte'", "Text(\"thirteen byte\")"),
        ("select ''", "Text(\"\")"),
        ("select null::int", "Null"),
    ] {
        assert_eq!(first(&mut connection, text), shown, "{text}");
    }
    let mut answer = connection.ask("select [1, 2]").unwrap();
    let error = answer.next_chunk().unwrap().cell(0, 0).unwrap_err();
    assert!(error.to_string().contains("cast it to varchar"), "{error}");
}

#[test]
fn values_come_back_unchanged() {
    let mut connection = memory();
    connection
        .run("create table t (i int, r double, d decimal(15, 2), s varchar, x date, y timestamp)")
        .unwrap();
    let cells = [
        Cell::Int(7),
        Cell::Real(0.25),
        Cell::Decimal { units: -5, scale: 2 },
        Cell::Text("a text of more than twelve bytes"),
        Cell::Days(-1),
        Cell::Micros(1),
    ];
    let mut appender = connection.append("t").unwrap();
    appender.row(cells).unwrap();
    appender.row([Cell::Null; 6]).unwrap();
    assert_eq!(appender.finish().unwrap(), 2);
    let texts =
        "select * from t where i = $1 and r = $2 and d = $3 and s = $4 and x = $5 and y = $6";
    let statement = connection.prepare_plain(texts).unwrap();
    let mut answer = connection.execute(statement, &cells).unwrap();
    assert_eq!(answer.columns(), 6);
    let chunk = answer.next_chunk().unwrap();
    for (column, cell) in cells.iter().enumerate() {
        assert_eq!(chunk.cell(column, 0).unwrap(), *cell);
    }
    assert!(answer.next_chunk().is_none());
}

#[test]
fn chunks_are_all_of_an_answer() {
    let mut connection = memory();
    let statement = connection
        .prepare_plain("select x, if(x % 3 = 0, null, x::varchar) from range(10000) t(x)")
        .unwrap();
    let mut answer = connection.execute(statement, &[]).unwrap();
    let (mut sum, mut nulls) = (0, 0);
    while let Some(chunk) = answer.next_chunk() {
        for row in 0..chunk.rows() {
            let Cell::Int(int) = chunk.cell(0, row).unwrap() else { panic!("a number") };
            sum += int;
            match chunk.cell(1, row).unwrap() {
                Cell::Null => nulls += 1,
                text => assert_eq!(text, Cell::Text(&int.to_string())),
            }
        }
    }
    assert_eq!((sum, nulls), (49_995_000, 3334));
}

#[test]
fn refusals_are_of_the_kinds_that_clients_tell_apart() {
    let mut connection = memory();
    let why = |error: Error| match error {
        Error::Refused { why, says } => {
            assert!(!says.contains('\n'), "{says}");
            why
        }
        other => panic!("{other}"),
    };
    connection
        .run("create table t (k int primary key, v int); insert into t values (1, 0)")
        .unwrap();
    assert_eq!(
        why(connection.run("insert into t values (1, 1)").unwrap_err()),
        RefusalKind::Duplicate
    );
    assert_eq!(why(connection.run("select nothing").unwrap_err()), RefusalKind::Other);
    assert_eq!(why(connection.prepare_plain("selec 1").unwrap_err()), RefusalKind::Other);
    let statement = connection.prepare_plain("update t set v = $1").unwrap();
    assert_eq!(why(connection.execute(statement, &[]).map(drop).unwrap_err()), RefusalKind::Other);
    assert_eq!(connection.execute(statement, &[Cell::Int(5)]).unwrap().changed(), 1);
}

#[test]
fn two_transactions_conflict() {
    let library = Library::find(None).unwrap();
    let database = Database::open(library, ":memory:".as_ref(), &[]).unwrap();
    let (mut one, mut two) = (database.connect().unwrap(), database.connect().unwrap());
    one.run("create table t (v int); insert into t values (0)").unwrap();
    one.run("begin; update t set v = 1").unwrap();
    let error = two.run("begin; update t set v = 2").unwrap_err();
    assert!(matches!(error, Error::Refused { why: RefusalKind::Conflict, .. }), "{error}");
}

#[test]
fn a_statement_is_interrupted_from_another_thread() {
    let mut connection = memory();
    let interrupter = connection.interrupter();
    let begun = Instant::now();
    let (done, ended) = std::sync::mpsc::channel();
    // Again and again: on a busy machine the first may come before the statement.
    let other = std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_millis(100)).is_err() {
            interrupter.interrupt();
        }
    });
    let error = connection
        .run("select count(*) from range(10000000) a, range(10000000) b where a.range < b.range")
        .unwrap_err();
    done.send(()).unwrap();
    other.join().unwrap();
    assert!(matches!(error, Error::Refused { why: RefusalKind::Interrupted, .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_file_is_kept_and_a_wrong_one_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.duckdb");
    let library = Library::find(None).unwrap();
    let open = || Database::open(library, &path, &[]);
    open().unwrap().connect().unwrap().run("create table t as select 7 as v").unwrap();
    let mut again = open().unwrap().connect().unwrap();
    assert_eq!(first(&mut again, "select v from t"), "Int(7)");
    drop(again);
    std::fs::write(&path, "no database at all, but long enough to be looked at as one").unwrap();
    assert!(open().is_err());
    assert!(Database::open(library, ":memory:".as_ref(), &[("thread", "2")]).is_err());
}

#[test]
fn a_missing_or_invalid_library_is_reported_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libduckdb.so");
    let missing = Library::find(Some(&path)).map(drop).unwrap_err().to_string();
    assert!(missing.contains("cargo xtask setup") && !missing.contains('\n'), "{missing}");
    std::fs::write(&path, "no library").unwrap();
    let unusable = Library::find(Some(&path)).map(drop).unwrap_err().to_string();
    assert!(unusable.contains("not a usable library of DuckDB"), "{unusable}");
}
