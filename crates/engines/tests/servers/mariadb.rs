//! MariaDB: sessions, their errors, filling, plans.

use std::sync::Arc;

use workahead_engines::mariadb::{Connection, Server};
use workahead_engines::server::Explain;
use workahead_workloads::session::{
    Date, Decimal, Session, SessionError, Timestamp, Value, first, transaction,
};

use crate::shared::{self, Shared};

/// A connection to a database of the test's own.
fn database(name: &str) -> (Arc<Shared<Server>>, Connection) {
    let server = shared::mariadb();
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
    let (_server, mut session) = database("mvalues");
    session
        .run(
            "CREATE TABLE v (i2 smallint, i4 int, i8 bigint, f4 float, f8 double, n decimal(12,2), \
             t text, c char(3), d date, ts datetime(6))",
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
        Value::Date(Date(-1)),
        Value::Timestamp(Timestamp(1_234_567_890_123_456)),
    ];
    let insert = session.prepare("INSERT INTO v VALUES (?,?,?,?,?,?,?,?,?,?)").unwrap();
    assert_eq!(session.execute(insert, &values), Ok(1));
    assert_eq!(session.execute(insert, &[Value::Null; 10]), Ok(1));
    let select = session.prepare("SELECT * FROM v ORDER BY i2 DESC").unwrap();
    let mut seen = 0;
    let rows = session
        .query(select, &[], &mut |row| {
            for (column, value) in values.iter().enumerate() {
                let came = row.value(column)?;
                match (seen, column) {
                    (1, _) => assert_eq!(came, Value::Null),
                    (_, 5) => assert_eq!(row.decimal(5, 2)?, -12_345),
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
fn counts_are_of_rows_found() {
    let (_server, mut session) = database("mcounts");
    session.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1),(2),(3),(4),(5)").unwrap();
    let update = session.prepare("UPDATE t SET a = a WHERE a <= ?").unwrap();
    for count in [3, 0, 5] {
        assert_eq!(session.execute(update, &[Value::Int(count)]), Ok(count as u64));
    }
    let select = session.prepare("SELECT a FROM t WHERE a > ?").unwrap();
    for above in [0, 4, 5] {
        let rows = session.query(select, &[Value::Int(above)], &mut |_| Ok(()));
        assert_eq!(rows, Ok(5 - above as u64));
    }
}

#[test]
fn a_session_goes_on_after_an_error() {
    let (_server, mut session) = database("merrors");
    let says = failed(session.run("SELECT 1; SELECT *\n FROM nowhere; SELECT 2"));
    assert!(says.starts_with("Table 'merrors.nowhere' doesn't exist (error 1146), in: "), "{says}");
    assert!(failed(session.prepare("SELECT colour")).contains("(error 1054)"));
    let add = session.prepare("SELECT 1 + ?").unwrap();
    assert!(failed(session.execute(add, &[])).contains("takes 1 parameters but 0"));
    let no_statement = workahead_workloads::session::StatementId(99);
    assert!(failed(session.execute(no_statement, &[])).contains("not prepared"));
    let many = session.prepare("SELECT seq FROM seq_1_to_1000").unwrap();
    let mut seen = 0;
    let ended = session.query(many, &[], &mut |_| {
        seen += 1;
        Err(SessionError::Failed("enough".to_owned()))
    });
    assert_eq!((failed(ended), seen), ("enough, in: SELECT seq FROM seq_1_to_1000".to_owned(), 1));
    let unsigned = session.prepare("SELECT 18446744073709551615, curtime()").unwrap();
    let says = failed(session.query(unsigned, &[], &mut |row| row.value(0).map(drop)));
    assert!(says.contains("beyond 63 bits"), "{says}");
    let says = failed(session.query(unsigned, &[], &mut |row| row.value(1).map(drop)));
    assert!(says.contains("cast it to char"), "{says}");
    assert_eq!(first(&mut session, add, &[Value::Int(1)], |row| row.int(0)), Ok(Some(2)));
}

#[test]
fn who_gives_way_may_try_again() {
    let (server, mut one) = database("mconflicts");
    let mut other = server.connect("mconflicts").unwrap();
    one.run("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)")
        .unwrap();
    other.run("SET innodb_lock_wait_timeout = 1").unwrap();
    one.begin().unwrap();
    one.run("UPDATE t SET n = 1 WHERE a = 1").unwrap();
    assert!(matches!(other.run("UPDATE t SET n = 2 WHERE a = 1"), Err(SessionError::Retry(_))));
    // Each waits for the other: one is given up at once.
    other.run("SET innodb_lock_wait_timeout = 50").unwrap();
    other.begin().unwrap();
    other.run("UPDATE t SET n = 2 WHERE a = 2").unwrap();
    let waiting = std::thread::spawn(move || {
        let waited = other.run("UPDATE t SET n = 2 WHERE a = 1");
        other.rollback().unwrap();
        waited
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    let crossed = one.run("UPDATE t SET n = 1 WHERE a = 2");
    one.rollback().unwrap();
    let waited = waiting.join().unwrap();
    let given_up = [crossed, waited]
        .into_iter()
        .filter(|result| matches!(result, Err(SessionError::Retry(_))));
    assert_eq!(given_up.count(), 1);
}

#[test]
fn transactions_are_whole() {
    let (_server, mut session) = database("mcommits");
    session.run("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (?)").unwrap();
    let undone = transaction(&mut session, |session| {
        session.execute(insert, &[Value::Int(1)])?;
        session.execute(insert, &[Value::Int(1)])
    });
    assert!(failed(undone).contains("(error 1062)"));
    let done = transaction(&mut session, |session| session.execute(insert, &[Value::Int(2)]));
    assert_eq!(done, Ok(1));
    assert_eq!(
        session.texts("SELECT a FROM t; SELECT 'b'"),
        Ok(vec!["2".to_owned(), "b".to_owned()])
    );
}

#[test]
fn tables_are_filled() {
    let (_server, mut session) = database("mfilling");
    session.run("CREATE TABLE t (a bigint PRIMARY KEY, b text, c decimal(12,1), d date)").unwrap();
    let mut bulk = session.fill("t", &["a", "b", "c", "d"]).unwrap();
    for a in 0..50_000 {
        let b = if a % 2 == 0 { Value::Null } else { Value::Text("tab\tend\\N\nli'ne\"") };
        let (c, d) = (Value::Decimal(Decimal::new(a, 1)), Value::Date(Date(a as i32)));
        bulk.row(&[Value::Int(a), b, c, d]).unwrap();
    }
    assert_eq!(bulk.finish(), Ok(50_000));
    let sums = "SELECT concat_ws(' ', count(*), count(b), sum(c), max(d), \
                min(b) = 'tab\\tend\\\\N\\nli''ne\"') FROM t";
    let expected = "50000 25000 124997500.0 2106-11-23 1".to_owned();
    assert_eq!(session.texts(sums), Ok(vec![expected.clone()]));
    let mut bulk = session.fill("t", &["a"]).unwrap();
    for a in [60_000, 1] {
        bulk.row(&[Value::Int(a)]).unwrap();
    }
    assert!(failed(bulk.finish()).contains("(error 1062)"));
    let mut bulk = session.fill("t", &["a", "b"]).unwrap();
    bulk.row(&[Value::Int(60_000), Value::Null]).unwrap();
    assert!(failed(bulk.row(&[Value::Null])).contains("a row of 1 values for 2 columns"));
    drop(bulk);
    assert_eq!(session.texts(sums), Ok(vec![expected]));
    assert_eq!(session.texts("SELECT @@unique_checks"), Ok(vec!["1".to_owned()]));
}

#[test]
fn plans_come_as_json() {
    let (_server, mut session) = database("mplans");
    session.run("CREATE TABLE t (a int); INSERT INTO t SELECT seq FROM seq_1_to_1000").unwrap();
    let planned = session.explain("SELECT sum(a) FROM t", Explain::Planned).unwrap();
    assert!(planned.contains("\"table_name\": \"t\"") && !planned.contains("r_rows"), "{planned}");
    let run = session.explain("SELECT sum(a) FROM t", Explain::Run).unwrap();
    assert!(run.contains("\"r_rows\": 1000"), "{run}");
    assert!(failed(session.explain("x", Explain::Planned)).contains("(error 1064)"));
}

/// Runs for days.
const LONG: &str = "SELECT count(*) FROM seq_1_to_10000000 a, seq_1_to_10000000 b";

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    let (_server, mut session) = database("mcancels");
    let canceller = session.canceller();
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        canceller.cancel();
    });
    let says = failed(session.run(LONG));
    assert!(says.contains("(error 1317)"), "{says}");
    other.join().unwrap();
    assert_eq!(session.run("SELECT 1"), Ok(()));
}
