//! PostgreSQL: sessions, their errors, filling, templates, plans.

use workahead_engines::postgres::Connection;
use workahead_engines::server::Explain;
use workahead_workloads::session::{
    Date, Decimal, Session, SessionError, Timestamp, Value, first, transaction,
};

use crate::shared;

/// A connection to a database of the test's own.
fn database(
    name: &str,
) -> (std::sync::Arc<shared::SharedServer<workahead_engines::postgres::Server>>, Connection) {
    let server = shared::postgres();
    server.create_database(name).unwrap();
    let connection = server.connect(name).unwrap();
    (server, connection)
}

fn failed<T: std::fmt::Debug>(result: Result<T, SessionError>) -> String {
    match result {
        Err(SessionError::Failed(says) | SessionError::Duplicate(says)) => {
            assert!(!says.contains('\n'), "{says}");
            says
        }
        other => panic!("{other:?} did not fail"),
    }
}

#[test]
fn values_come_back_as_they_went() {
    let (_server, mut session) = database("values");
    session
        .run(
            "CREATE TABLE v (i2 smallint, i4 integer, i8 bigint, f4 real, f8 float, n numeric(12,2), \
             t text, c char(3), vc varchar(9), d date, ts timestamp, tz timestamptz, b boolean)",
        )
        .unwrap();
    let values = [
        Value::Int(-2),
        Value::Int(i64::from(i32::MIN)),
        Value::Int(i64::MAX),
        Value::Real(0.5),
        Value::Real(-1e300),
        Value::Decimal(Decimal::cents(-12_345)),
        Value::Text("größer\n\t'\\"),
        Value::Text("ab"),
        Value::Text(""),
        Value::Date(Date(-1)),
        Value::Timestamp(Timestamp(1_234_567_890_123_456)),
        Value::Timestamp(Timestamp(-1)),
        Value::Int(1),
    ];
    let marks = (1..=13).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
    let insert = session.prepare(&format!("INSERT INTO v VALUES ({marks})")).unwrap();
    assert_eq!(session.execute(insert, &values), Ok(1));
    assert_eq!(session.execute(insert, &[Value::Null; 13]), Ok(1));
    let select = session.prepare("SELECT * FROM v ORDER BY i2 NULLS LAST").unwrap();
    let mut seen = 0;
    let rows = session
        .query(select, &[], &mut |row| {
            for (column, value) in values.iter().enumerate() {
                let came = row.value(column)?;
                match (seen, column) {
                    (1, _) => assert_eq!(came, Value::Null),
                    (_, 5) => assert_eq!(row.decimal(5, 2)?, -12_345),
                    (_, 7) => assert_eq!(came, Value::Text("ab ")),
                    _ => assert_eq!(came, *value, "column {column}"),
                }
            }
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!((rows, seen), (2, 2));
}

#[test]
fn values_go_to_types_they_are_not_of() {
    let (_server, mut session) = database("casts");
    let text = "SELECT $1::numeric, $2::float8, $3::date, $4::text, $5::bigint, $6::numeric";
    let statement = session.prepare(text).unwrap();
    let values = [
        Value::Int(7),
        Value::Int(7),
        Value::Text("2024-02-29"),
        Value::Int(42),
        Value::Text("12"),
        Value::Real(0.25),
    ];
    let row = first(&mut session, statement, &values, |row| {
        Ok((row.int(0)?, row.real(1)?, row.value(2)? == Value::Date(Date(19_782)), row.int(4)?))
    });
    assert_eq!(row, Ok(Some((7, 7.0, true, 12))));
}

#[test]
fn counts_are_of_rows_read_and_of_rows_changed() {
    let (_server, mut session) = database("counts");
    session.run("CREATE TABLE t AS SELECT generate_series(1, 10) AS a").unwrap();
    let update = session.prepare("UPDATE t SET a = a WHERE a <= $1").unwrap();
    for count in [3, 0, 10] {
        assert_eq!(session.execute(update, &[Value::Int(count)]), Ok(count as u64));
    }
    let select = session.prepare("SELECT a FROM t WHERE a > $1").unwrap();
    for above in [0, 4, 10] {
        let rows = session.query(select, &[Value::Int(above)], &mut |_| Ok(()));
        assert_eq!(rows, Ok(10 - above as u64));
    }
    // Larger than any buffer, and in rows larger than the first one.
    let wide = session.prepare("SELECT repeat('x', $1), $1 FROM t").unwrap();
    let rows = session.query(wide, &[Value::Int(300_000)], &mut |row| {
        assert_eq!((row.text(0)?.len(), row.int(1)?), (300_000, 300_000));
        Ok(())
    });
    assert_eq!(rows, Ok(10));
}

#[test]
fn a_session_goes_on_after_an_error() {
    let (_server, mut session) = database("errors");
    let says = failed(session.run("SELECT 1;\n SELECT 1/0; CREATE TABLE never ()"));
    assert_eq!(
        says,
        "division by zero (SQLSTATE 22012), in: SELECT 1; SELECT 1/0; CREATE TABLE never ()"
    );
    assert!(failed(session.prepare("SELECT colour")).contains("SQLSTATE 42703"));
    assert!(failed(session.prepare("SELECT 1; SELECT 2")).contains("SQLSTATE 42601"));
    let divide = session.prepare("SELECT 10 / $1::int").unwrap();
    assert!(failed(session.query(divide, &[Value::Int(0)], &mut |_| Ok(()))).contains("22012"));
    let says = failed(session.execute(divide, &[]));
    assert!(says.contains("has 1 values, 0 were given"), "{says}");
    let says = failed(session.execute(divide, &[Value::Int(1 << 40)]));
    assert!(says.contains("out of range for a value of type integer"), "{says}");
    let no_statement = workahead_workloads::session::StatementId(99);
    assert!(failed(session.execute(no_statement, &[])).contains("not prepared"));
    // The closure's own error, with rows still to come.
    let many = session.prepare("SELECT generate_series(1, 1000)").unwrap();
    let mut seen = 0;
    let ended = session.query(many, &[], &mut |_| {
        seen += 1;
        Err(SessionError::Failed("enough".to_owned()))
    });
    assert_eq!(
        (failed(ended), seen),
        ("enough, in: SELECT generate_series(1, 1000)".to_owned(), 1)
    );
    let ten = first(&mut session, divide, &[Value::Int(1)], |row| row.int(0));
    assert_eq!(ten, Ok(Some(10)));
}

#[test]
fn a_commit_of_a_failed_transaction_is_none() {
    let (_server, mut session) = database("commits");
    session.run("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    session.begin().unwrap();
    session.run("INSERT INTO t VALUES (1)").unwrap();
    let twice = session.run("INSERT INTO t VALUES (1)");
    assert!(matches!(twice, Err(SessionError::Duplicate(_))), "{twice:?}");
    let says = failed(session.commit());
    assert!(says.contains("was rolled back"), "{says}");
    assert_eq!(session.rollback(), Ok(()));
    let insert = session.prepare("INSERT INTO t VALUES ($1)").unwrap();
    let done = transaction(&mut session, |session| session.execute(insert, &[Value::Int(2)]));
    assert_eq!(done, Ok(1));
    assert_eq!(session.texts("SELECT a::text FROM t"), Ok(vec!["2".to_owned()]));
}

#[test]
fn an_aborted_transaction_may_be_retried() {
    let (server, mut one) = database("conflicts");
    let mut other = server.connect("conflicts").unwrap();
    one.run("CREATE TABLE t AS SELECT 1 AS a, 0 AS n").unwrap();
    for session in [&mut one, &mut other] {
        session.run("SET default_transaction_isolation = 'repeatable read'").unwrap();
        session.run("SET lock_timeout = '100ms'").unwrap();
        session.begin().unwrap();
        session.run("SELECT * FROM t").unwrap();
    }
    one.run("UPDATE t SET n = 1").unwrap();
    // Waits for the lock until the timeout.
    assert!(matches!(other.run("UPDATE t SET n = 2"), Err(SessionError::Retry(_))));
    other.rollback().unwrap();
    other.begin().unwrap();
    other.run("SELECT * FROM t").unwrap();
    one.commit().unwrap();
    // Conflicts with its snapshot.
    assert!(matches!(other.run("UPDATE t SET n = 2"), Err(SessionError::Retry(_))));
    other.rollback().unwrap();
    other.run("UPDATE t SET n = 2").unwrap();
}

#[test]
fn texts_of_many_statements_answer_with_all_their_rows() {
    let (_server, mut session) = database("scripts");
    let texts = session.texts(
        "SELECT 'a'; DO $$ BEGIN RAISE NOTICE 'by the way'; END $$; ; SELECT 'b'; SELECT 'c'",
    );
    assert_eq!(texts, Ok(["a", "b", "c"].map(str::to_owned).to_vec()));
    assert_eq!(session.run(""), Ok(()));
    // COPY without a source of rows, and without a reader.
    assert!(failed(session.run("CREATE TABLE t (a int); COPY t FROM STDIN")).contains("57014"));
    assert_eq!(session.run("COPY (SELECT 1) TO STDOUT"), Ok(()));
    assert!(failed(session.run("bad\0text")).contains("null"));
    assert_eq!(session.texts("SELECT 'fine'"), Ok(vec!["fine".to_owned()]));
}

#[test]
fn tables_are_filled() {
    let (_server, mut session) = database("filling");
    session.run("CREATE TABLE t (a bigint PRIMARY KEY, b text, c numeric, d date)").unwrap();
    let mut copy = session.copy_in("t", &["a", "b", "c", "d"]).unwrap();
    for a in 0..50_000 {
        let b = if a % 2 == 0 { Value::Null } else { Value::Text("tab\tend\\N\nline") };
        let (c, d) = (Value::Decimal(Decimal::new(a, 1)), Value::Date(Date(a as i32)));
        copy.row(&[Value::Int(a), b, c, d]).unwrap();
    }
    assert_eq!(copy.finish(), Ok(50_000));
    let sums = "SELECT concat_ws(' ', count(*), count(b), sum(c), max(d), \
                min(b) = E'tab\\tend\\\\N\\nline') FROM t";
    let expected = "50000 25000 124997500.0 2106-11-23 t".to_owned();
    assert_eq!(session.texts(sums), Ok(vec![expected.clone()]));
    // A duplicate: then none of them is inserted.
    let mut copy = session.copy_in("t", &["a"]).unwrap();
    for a in [60_000, 1] {
        copy.row(&[Value::Int(a)]).unwrap();
    }
    assert!(failed(copy.finish()).contains("SQLSTATE 23505"));
    // Dropped half way.
    let mut copy = session.copy_in("t", &["a", "b"]).unwrap();
    copy.row(&[Value::Int(60_000), Value::Null]).unwrap();
    assert!(failed(copy.row(&[Value::Null])).contains("a row of 1 values for 2 columns"));
    drop(copy);
    assert!(failed(session.copy_in("t", &["colour"]).map(drop)).contains("SQLSTATE 42703"));
    assert!(failed(session.copy_in("nowhere", &["a"]).map(drop)).contains("SQLSTATE 42P01"));
    assert_eq!(session.texts(sums), Ok(vec![expected]));
}

#[test]
fn a_database_is_restored_from_its_template() {
    let (server, mut session) = database("kept");
    session.run("CREATE TABLE t AS SELECT generate_series(1, 1000) AS a").unwrap();
    drop(session);
    server.restore("cell", "kept").unwrap();
    let mut client = server.connect("cell").unwrap();
    client.run("DELETE FROM t").unwrap();
    client.run("VACUUM t").unwrap();
    let took = server.restore("cell", "kept").unwrap();
    assert!(took.as_secs() < 60, "{took:?}");
    // The client has been disconnected.
    assert!(matches!(client.run("SELECT 1"), Err(SessionError::Gone(_))));
    let mut client = server.connect("cell").unwrap();
    assert_eq!(client.texts("SELECT count(*)::text FROM t"), Ok(vec!["1000".to_owned()]));
    let says = server.restore("cell", "nowhere").unwrap_err().to_string();
    assert!(says.starts_with("restore a database: template database \"nowhere\""), "{says}");
}

/// A server that is killed while it drops a database leaves it with a limit of -2 connections: it
/// can be dropped, and nothing else (PostgreSQL 15.5 and later).
#[test]
fn a_database_that_was_half_dropped_is_made_anew() {
    let (server, session) = database("half_dropped");
    drop(session);
    let mut maintenance = server.connect("postgres").unwrap();
    maintenance
        .run("UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'half_dropped'")
        .unwrap();
    assert!(server.connect("half_dropped").is_err());
    server.create_database("half_dropped").unwrap();
    server.connect("half_dropped").unwrap();
}

/// The server would cut its name off, and take the database of the rest for it.
#[test]
fn a_database_whose_name_is_too_long_is_refused() {
    let server = shared::postgres();
    let (fits, long) = ("n".repeat(63), "n".repeat(64));
    server.create_database(&fits).unwrap();
    let cut_off = "its name has 64 bytes, and PostgreSQL cuts off what is beyond 63";
    for refused in [
        server.create_database(&long),
        server.restore(&long, &fits).map(drop),
        server.restore("cell_of_a_long_name", &long).map(drop),
    ] {
        let says = refused.unwrap_err().to_string();
        assert!(says.ends_with(cut_off), "{says}");
    }
    server.connect(&fits).unwrap();
}

#[test]
fn plans_come_as_json() {
    let (_server, mut session) = database("plans");
    session.run("CREATE TABLE t AS SELECT generate_series(1, 1000) AS a; ANALYZE t").unwrap();
    let planned = session.explain("SELECT sum(a) FROM t", Explain::Planned).unwrap();
    assert!(planned.contains("\"Seq Scan\"") && !planned.contains("Actual"), "{planned}");
    let run = session.explain("SELECT sum(a) FROM t", Explain::Run).unwrap();
    assert!(run.contains("\"Actual Rows\": 1000") && run.contains("Shared Hit"), "{run}");
    session.run("SET enable_seqscan = off").unwrap();
    let select = session.prepare("SELECT * FROM t WHERE a = $1").unwrap();
    let planned = session.explain_prepared(select, &["7"], Explain::Planned).unwrap();
    assert!(planned.contains("enable_seqscan"), "{planned}");
    assert!(
        failed(session.explain("SELECT", Explain::Run).and(session.explain("x", Explain::Planned)))
            .contains("42601")
    );
}

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    let (_server, mut session) = database("cancels");
    let canceller = session.canceller();
    let (done, ended) = std::sync::mpsc::channel();
    // Again and again: on a busy machine the first may come before the statement.
    let other = std::thread::spawn(move || {
        while ended.recv_timeout(std::time::Duration::from_millis(100)).is_err() {
            canceller.cancel();
        }
    });
    let says = failed(session.run("SELECT pg_sleep(60)"));
    done.send(()).unwrap();
    assert!(says.contains("SQLSTATE 57014"), "{says}");
    other.join().unwrap();
    assert_eq!(session.run("SELECT 1"), Ok(()));
}
