//! MariaDB: sessions, their errors, filling, plans, and what clients leave behind.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use workahead_engines::mariadb::{Connection, Server};
use workahead_engines::server::{Error, Explain};
use workahead_study::engine::Stop;
use workahead_workloads::session::{
    Date, Decimal, Session, SessionError, Timestamp, Value, first, transaction,
};

use crate::shared::{self, SharedServer};

/// A connection to a database of the test's own.
fn database(name: &str) -> (Arc<SharedServer<Server>>, Connection) {
    let server = shared::mariadb();
    server.create_database(name).unwrap();
    let connection = server.connect(name).unwrap();
    (server, connection)
}

/// A server of the test's own, whose clients leave behind what others would wait for; with a table
/// `d.t`.
fn own() -> (Server, TempDir) {
    let directory = shared::directory();
    let server = Server::start(&shared::options(directory.path()), &Stop::new())
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("d").unwrap();
    server.connect("d").unwrap().run("CREATE TABLE t (a int)").unwrap();
    (server, directory)
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
    assert!(failed(session.execute(add, &[])).contains("has 1 values, 0 were given"));
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
fn values_may_change_their_types() {
    let (_server, mut session) = database("mtypes");
    let typed = session.prepare("SELECT concat(?, ''), ?").unwrap();
    let given = [
        (Value::Int(12), Value::Text("a")),
        (Value::Int(-1), Value::Text("")),
        (Value::Text("12"), Value::Null),
        (Value::Null, Value::Int(i64::MIN)),
        (Value::Real(0.5), Value::Real(-0.25)),
    ];
    let expected = [("12", "a"), ("-1", ""), ("12", "-"), ("-", "-9223372036854775808")];
    for ((one, other), texts) in given.into_iter().zip(expected) {
        let said = first(&mut session, typed, &[one, other], |row| {
            let said = |column: usize| match row.value(column)? {
                Value::Null => Ok("-".to_owned()),
                Value::Int(int) => Ok(int.to_string()),
                _ => row.text(column).map(str::to_owned),
            };
            Ok((said(0)?, said(1)?))
        });
        let (one, other) = texts;
        assert_eq!(said, Ok(Some((one.to_owned(), other.to_owned()))));
    }
    let (one, other) = given[4];
    let said = first(&mut session, typed, &[one, other], |row| Ok((row.real(0)?, row.real(1)?)));
    assert_eq!(said, Ok(Some((0.5, -0.25))));
}

#[test]
fn columns_that_have_changed_are_read_as_they_are_now() {
    let (_server, mut session) = database("mcolumns");
    session.run("CREATE TABLE t (a int); INSERT INTO t VALUES (7)").unwrap();
    let select = session.prepare("SELECT * FROM t").unwrap();
    for _ in 0..2 {
        assert_eq!(first(&mut session, select, &[], |row| row.int(0)), Ok(Some(7)));
    }
    session.run("ALTER TABLE t MODIFY a varchar(9), ADD b tinyint DEFAULT -3").unwrap();
    for _ in 0..2 {
        let both = first(&mut session, select, &[], |row| {
            Ok((row.text(0)?.to_owned(), row.int(1)?, row.columns()))
        });
        assert_eq!(both, Ok(Some(("7".to_owned(), -3, 2))));
    }
    session.run("DROP TABLE t").unwrap();
    assert!(failed(session.query(select, &[], &mut |_| Ok(()))).contains("(error 1146)"));
    session.run("CREATE TABLE t (a double); INSERT INTO t VALUES (0.5)").unwrap();
    assert_eq!(first(&mut session, select, &[], |row| row.real(0)), Ok(Some(0.5)));
}

#[test]
fn all_results_of_a_text_and_of_a_procedure_are_read() {
    let (_server, mut session) = database("mresults");
    session
        .run(
            "CREATE TABLE t (a int, b text); \
             CREATE PROCEDURE p(n int) BEGIN SELECT n; SELECT n + 1, 'x'; UPDATE t SET a = 0; END",
        )
        .unwrap();
    let mut seen = Vec::new();
    let text = "INSERT INTO t VALUES (1, NULL), (2, ''); SELECT b, a FROM t ORDER BY a; CALL p(4)";
    let rows = session.query_text(text, &mut |row| {
        let said: Result<Vec<String>, SessionError> = (0..row.columns())
            .map(|column| match row.value(column)? {
                Value::Null => Ok("-".to_owned()),
                _ => row.text(column).map(str::to_owned),
            })
            .collect();
        seen.push(said?.join(" "));
        Ok(())
    });
    assert_eq!(rows, Ok(4));
    assert_eq!(seen, ["- 1", " 2", "4", "5 x"]);
    let call = session.prepare("CALL p(?)").unwrap();
    for n in [8, 9] {
        let mut seen = Vec::new();
        let rows = session.query(call, &[Value::Int(n)], &mut |row| {
            seen.push(row.int(0)?);
            Ok(())
        });
        assert_eq!((rows, seen), (Ok(2), vec![n, n + 1]));
    }
}

#[test]
fn values_longer_than_a_packet_are_sent_in_several() {
    let (server, mut session) = database("mlong");
    session.run("SET GLOBAL max_allowed_packet = 67108864").unwrap();
    let mut session = {
        drop(session);
        server.connect("mlong").unwrap()
    };
    let length = session.prepare("SELECT length(?), ?").unwrap();
    // A packet holds 2^24 - 1 bytes: below, at and beyond one and two of them.
    for bytes in [0xff_ff00, 0xff_ffff - 4, 0xff_ffff, 0x100_0000, 0x200_0100] {
        let given = "a".repeat(bytes);
        let values = [Value::Text(&given), Value::Int(1)];
        let said = first(&mut session, length, &values, |row| row.int(0));
        assert_eq!(said, Ok(Some(bytes as i64)));
        let mut whole = false;
        let repeated = format!("SELECT repeat('b', {bytes})");
        let read = session.query_text(&repeated, &mut |row| {
            let said = row.text(0)?;
            whole = said.len() == bytes && said.bytes().all(|byte| byte == b'b');
            Ok(())
        });
        assert!(read == Ok(1) && whole, "{bytes}");
    }
    assert_eq!(session.texts("SELECT 1"), Ok(vec!["1".to_owned()]));
}

#[test]
fn a_client_of_a_gone_server_gets_an_error() {
    let (server, mut session) = database("mgone");
    let select = session.prepare("SELECT 1").unwrap();
    let id = session.texts("SELECT connection_id()").unwrap().concat();
    server.connect("mgone").unwrap().run(&format!("KILL {id}")).unwrap();
    let ended = session.query(select, &[], &mut |_| Ok(()));
    assert!(matches!(ended, Err(SessionError::Gone(_))), "{ended:?}");
    assert!(matches!(session.run("SELECT 1"), Err(SessionError::Gone(_))));
}

#[test]
fn an_aborted_transaction_may_be_retried() {
    let (server, mut one) = database("mconflicts");
    let mut other = server.connect("mconflicts").unwrap();
    one.run("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)")
        .unwrap();
    other.run("SET innodb_lock_wait_timeout = 1").unwrap();
    one.begin().unwrap();
    one.run("UPDATE t SET n = 1 WHERE a = 1").unwrap();
    assert!(matches!(other.run("UPDATE t SET n = 2 WHERE a = 1"), Err(SessionError::Retry(_))));
    // Each waits for the other: one is aborted at once.
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

/// A large transaction is rolled back long after its client has gone. Here the client stays, for
/// longer than an attempt waits.
#[test]
fn a_database_is_made_anew_once_its_locks_are_gone() {
    let (server, _directory) = own();
    let stop = Stop::new();
    let mut client = server.connect("d").unwrap();
    client.run("START TRANSACTION; INSERT INTO t VALUES (1)").unwrap();
    let made = std::thread::scope(|scope| {
        let made = scope.spawn(|| server.create_database_once_free("d", &stop));
        std::thread::sleep(Duration::from_secs(7));
        assert!(!made.is_finished());
        drop(client);
        made.join().unwrap()
    });
    made.unwrap();
    let mut client = server.connect("d").unwrap();
    assert_eq!(client.texts("SHOW TABLES"), Ok(Vec::new()));
    client.run("CREATE TABLE t (a int); START TRANSACTION; INSERT INTO t VALUES (1)").unwrap();
    stop.request();
    let stopped = server.create_database_once_free("d", &stop);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
}

#[test]
fn prepared_transactions_of_clients_are_rolled_back() {
    let (server, _directory) = own();
    let prepare = |name: &str, statement: &str| {
        let mut client = server.connect("d").unwrap();
        client.run(&format!("XA START {name}; {statement}; XA END {name}")).unwrap();
        client.run(&format!("XA PREPARE {name}")).unwrap();
        client
    };
    let insert = "INSERT INTO t VALUES (1)";
    // The first changes nothing: its rollback is an error, though it succeeds.
    drop(prepare("'a'", "SELECT 1"));
    drop(prepare("'b'", insert));
    server.create_database("d").unwrap();
    let mut owner = server.connect("d").unwrap();
    assert_eq!(owner.texts("XA RECOVER"), Ok(Vec::new()));
    owner.run("CREATE TABLE t (a int)").unwrap();
    // While its client is there, it can't be rolled back.
    let client = prepare("'c'", insert);
    let says = server.create_database("d").unwrap_err().to_string();
    assert!(says.ends_with("1 prepared transactions can't be rolled back, as 'c'"), "{says}");
    drop(client);
    server.create_database("d").unwrap();
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

thread_local! {
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// As after Ctrl-C, which asks for the cancellation.
#[test]
fn a_statement_is_cancelled_from_another_thread() {
    workahead_engines::wait_until(|| INTERRUPTED.get());
    let (_server, mut session) = database("mcancels");
    let canceller = session.canceller();
    let (done, ended) = std::sync::mpsc::channel();
    // Again and again: on a busy machine the first may come before the statement.
    let other = std::thread::spawn(move || {
        INTERRUPTED.set(true);
        while ended.recv_timeout(std::time::Duration::from_millis(100)).is_err() {
            canceller.cancel();
        }
    });
    let says = failed(session.run(LONG));
    done.send(()).unwrap();
    assert!(says.contains("(error 1317)"), "{says}");
    other.join().unwrap();
    assert_eq!(session.run("SELECT 1"), Ok(()));
}
