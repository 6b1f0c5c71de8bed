//! The load generator on real servers: everything counted there too, and a server that is killed.

use std::time::Duration;

use workahead_engines::connector::Connector;
use workahead_engines::fill::fill;
use workahead_engines::load::{End, Load, Until};
use workahead_engines::postgres;
use workahead_engines::server::Error;
use workahead_study::engine::Stop;
use workahead_workloads::client::{
    AttemptResult, Client, Condition, Moment, Next, Outcome, RowSink, Table, Workload,
};
use workahead_workloads::session::{
    Dialect, Session, SessionError, StatementId, Value, transaction,
};

use crate::shared::{self, directory, options};

/// Adds one to one of ten rows at random, in a transaction; which conflicts, and must count.
struct Adding {
    wrong: bool,
}

struct Adder {
    number: u32,
    drawn: i64,
    update: Option<StatementId>,
    wrong: bool,
}

impl Client for Adder {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        let text = session.dialect().placeholders("UPDATE t SET n = n + 1 WHERE a = ?");
        self.update = Some(session.prepare(&text)?);
        Ok(())
    }
    fn next(&mut self) -> Next {
        self.drawn += 1 + i64::from(self.number);
        Next::at_once(0)
    }
    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        let Some(update) = self.update else { panic!("not connected") };
        let (drawn, wrong) = (self.drawn, self.wrong);
        let rows = transaction(session, |session| {
            if wrong && drawn > 20 {
                session.run("SELECT colour")?;
            }
            Ok(session.execute(update, &[Value::Int(drawn % 10)])?
                + session.execute(update, &[Value::Int(drawn * 7 % 10)])?)
        })?;
        Ok(AttemptResult { rows, statements: 4, ..AttemptResult::default() })
    }
}

impl Workload for Adding {
    fn name(&self) -> &'static str {
        "adding"
    }
    fn kinds(&self) -> Vec<String> {
        vec!["add".to_owned()]
    }
    fn tables(&self, _: Dialect) -> Result<Vec<Table>, SessionError> {
        Ok(Vec::new())
    }
    fn rows(&self, _: usize, _: RowSink<'_>) -> Result<(), SessionError> {
        Ok(())
    }
    fn client(&self, number: u32) -> Box<dyn Client> {
        Box::new(Adder { number, drawn: 0, update: None, wrong: self.wrong })
    }
    fn check(&self, _: &mut dyn Session, _: Moment) -> Result<Vec<Condition>, SessionError> {
        Ok(Vec::new())
    }
}

const TABLE: &str = "CREATE TABLE t (a int PRIMARY KEY, n bigint NOT NULL);
    INSERT INTO t VALUES (0,0),(1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0),(8,0),(9,0)";

fn load<'a>(workload: &'a Adding, connector: &'a dyn Connector, until: Until) -> Load<'a> {
    Load { workload, connector, clients: 4, rate: None, warmup: Duration::ZERO, until, cpus: None }
}

#[test]
fn every_transaction_is_in_the_database_of_postgres() {
    let server = shared::postgres();
    server.create_database("adding").unwrap();
    let mut session = server.connect("adding").unwrap();
    session.run(TABLE).unwrap();
    let (target, workload) = (server.target("adding"), Adding { wrong: false });
    let load = load(&workload, &target, Until::Count(2000));
    let driven = load.drive(&Stop::new(), &mut |_| {}).unwrap();
    assert_eq!((driven.done(), driven.end.clone()), (2000, End::Done));
    assert!(driven.client_cpu_s > 0.0 && driven.client_cpu_s < driven.wall_s * 4.0);
    assert!(driven.all_at_work_s > 0.3 * driven.wall_s, "{driven:?}");
    assert!(driven.all_at_work_s <= driven.wall_s);
    assert_eq!(session.texts("SELECT sum(n)::text FROM t"), Ok(vec!["4000".to_owned()]));
}

#[test]
fn every_transaction_is_in_the_database_of_mariadb() {
    let server = shared::mariadb();
    server.create_database("madding").unwrap();
    let mut session = server.connect("madding").unwrap();
    session.run(TABLE).unwrap();
    let (target, workload) = (server.target("madding"), Adding { wrong: false });
    let load = load(&workload, &target, Until::Count(400));
    let driven = load.drive(&Stop::new(), &mut |_| {}).unwrap();
    assert_eq!((driven.done(), driven.end.clone()), (400, End::Done));
    assert_eq!(session.texts("SELECT sum(n) FROM t"), Ok(vec!["800".to_owned()]));
}

#[test]
fn a_statement_that_fails_is_named_with_its_client() {
    let server = shared::postgres();
    server.create_database("wrong").unwrap();
    server.connect("wrong").unwrap().run(TABLE).unwrap();
    let (target, workload) = (server.target("wrong"), Adding { wrong: true });
    let load = load(&workload, &target, Until::Time(Duration::from_secs(60)));
    let error = load.drive(&Stop::new(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("client ") && error.contains(", add: column \"colour\""), "{error}");
    assert!(error.ends_with("in: SELECT colour") && !error.contains('\n'), "{error}");
}

#[test]
fn a_server_that_is_killed_leaves_what_was_acknowledged() {
    let directory = directory();
    let server_options = options(directory.path());
    let mut server =
        postgres::Server::start(&server_options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
    server.create_database("killed").unwrap();
    let mut collecting = server.connect("killed").unwrap();
    collecting.run(TABLE).unwrap();
    let (target, workload) = (server.target("killed"), Adding { wrong: false });
    let load = load(&workload, &target, Until::Time(Duration::from_secs(60)));
    let driven = std::thread::scope(|scope| {
        let driven = scope.spawn(|| load.drive(&Stop::new(), &mut |_| {}));
        // In the middle of work: once there is something to lose.
        while collecting.texts("SELECT 1 WHERE (SELECT sum(n) FROM t) > 100").unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill();
        driven.join().unwrap().unwrap()
    });
    assert!(matches!(driven.end, End::Gone { .. }), "{:?}", driven.end);
    assert!(driven.done() > 0 && driven.wall_s < 30.0, "{} {}", driven.done(), driven.wall_s);
    server.restart(&server_options, &Stop::new()).unwrap();
    let sum = server.connect("killed").unwrap().texts("SELECT sum(n)::text FROM t").unwrap();
    let added: u64 = sum.concat().parse().unwrap();
    // Each of four clients may have been killed between the commit and the answer.
    let acknowledged = 2 * driven.done();
    assert!((acknowledged..=acknowledged + 8).contains(&added), "{acknowledged} {added}");
}

/// DBmbench's tables, small.
fn tables() -> workahead_workloads::dbmbench::Dbmbench {
    use workahead_workloads::dbmbench::{Dbmbench, Options, Query};
    let small =
        Options { t1_rows: 5_000, t2_rows: 500, a2_values: 1_000, ..Options::of_paper(Query::Uss) };
    Dbmbench::new(small).unwrap()
}

#[test]
fn a_workloads_tables_are_filled_and_its_clients_run() {
    let (of_postgres, of_mariadb) = (shared::postgres(), shared::mariadb());
    of_postgres.create_database("workload").unwrap();
    of_mariadb.create_database("workload").unwrap();
    for target in [of_postgres.target("workload"), of_mariadb.target("workload")] {
        let workload = tables();
        let filled = fill(&target, &workload, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
        assert!(filled.rows >= 5_500 && filled.rows_s > 0.0 && filled.statistics_s > 0.0);
        let mut connection = target.connect().unwrap();
        let holds = |conditions: Vec<Condition>| {
            for condition in conditions {
                let broken = matches!(condition.outcome, Outcome::Broken(_));
                assert!(!broken, "{target:?}: {condition:?}");
            }
        };
        holds(workload.check(connection.session(), Moment::Loaded).unwrap());
        let (clients, until) = (2, Until::Count(10));
        let (rate, warmup, cpus) = (None, Duration::ZERO, None);
        let load =
            Load { workload: &workload, connector: &target, clients, rate, warmup, until, cpus };
        let driven = load.drive(&Stop::new(), &mut |_| {}).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((driven.done(), driven.end.clone()), (10, End::Done));
        holds(workload.check(connection.session(), Moment::Drained).unwrap());
    }
    let stop = Stop::new();
    stop.request();
    of_postgres.create_database("stopped").unwrap();
    let stopped = fill(&of_postgres.target("stopped"), &tables(), &stop);
    assert!(matches!(stopped, Err(Error::Stopped)));
}
