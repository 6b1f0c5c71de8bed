//! Loads on a fake server: the order of clients, the counts, the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use workahead_workloads::client::{AttemptResult, Client, Condition, Moment, Next, RowSink, Table};
use workahead_workloads::session::{Dialect, Session};

use super::*;
use crate::connector::Connection;
use crate::connector::fake::Fake;

/// A connector that counts connections, and passes cancels on to the clients.
#[derive(Default)]
struct TestConnector {
    opened: AtomicU32,
    shut: bool,
    fake: Fake,
}

impl Connector for TestConnector {
    fn open(&self) -> Result<Box<dyn Connection>, SessionError> {
        if self.shut {
            return Err(SessionError::Failed("too many clients already".to_owned()));
        }
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(self.fake.clone()))
    }
}

/// The `n`th attempt of a fake client.
type Act = dyn Fn(u32, u64) -> Result<AttemptResult, SessionError> + Send + Sync;

struct Pretence {
    act: Arc<Act>,
    thinking_s: f64,
}

impl Pretence {
    fn of(
        act: impl Fn(u32, u64) -> Result<AttemptResult, SessionError> + Send + Sync + 'static,
    ) -> Self {
        Pretence { act: Arc::new(act), thinking_s: 0.0 }
    }

    fn taking(time: Duration) -> Self {
        Self::of(move |_, _| {
            std::thread::sleep(time);
            Ok(AttemptResult { rows: 2, statements: 3, checksum: 1, rolled_back: false })
        })
    }
}

struct Actor {
    act: Arc<Act>,
    number: u32,
    drawn: u64,
    attempts: u64,
    thinking_s: f64,
}

impl Client for Actor {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        session.prepare("").map(drop)
    }
    fn next(&mut self) -> Next {
        self.drawn += 1;
        Next { kind: (self.drawn % 2) as usize, keying_s: 0.0, thinking_s: self.thinking_s }
    }
    fn attempt(&mut self, _: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        self.attempts += 1;
        (self.act)(self.number, self.attempts)
    }
}

impl Workload for Pretence {
    fn name(&self) -> &'static str {
        "pretence"
    }
    fn kinds(&self) -> Vec<String> {
        ["even", "odd"].map(str::to_owned).to_vec()
    }
    fn tables(&self, _: Dialect) -> Result<Vec<Table>, SessionError> {
        Ok(Vec::new())
    }
    fn rows(&self, _: usize, _: RowSink<'_>) -> Result<(), SessionError> {
        Ok(())
    }
    fn client(&self, number: u32) -> Box<dyn Client> {
        let (act, thinking_s) = (Arc::clone(&self.act), self.thinking_s);
        Box::new(Actor { act, number, drawn: 0, attempts: 0, thinking_s })
    }
    fn check(&self, _: &mut dyn Session, _: Moment) -> Result<Vec<Condition>, SessionError> {
        Ok(Vec::new())
    }
}

fn load<'a>(
    workload: &'a Pretence,
    connector: &'a TestConnector,
    clients: u32,
    until: Until,
) -> Load<'a> {
    Load { workload, connector, clients, rate: None, warmup: Duration::ZERO, until, cpus: None }
}

fn drive(load: &Load<'_>) -> Result<LoadResult, String> {
    load.drive(&Stop::new(), &mut |_| {}).map_err(|error| error.to_string())
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_count_is_shared_and_everything_is_counted() {
    let (workload, connector) = (Pretence::taking(MS / 10), TestConnector::default());
    let driven = drive(&load(&workload, &connector, 4, Until::Count(103))).unwrap();
    assert_eq!((driven.done(), driven.end.clone()), (103, End::Done));
    assert_eq!(connector.opened.load(Ordering::Relaxed), 4);
    let [even, odd] = &driven.kinds[..] else { panic!("two kinds") };
    // 26, 26, 26 and 25 transactions, the first of each of the odd kind.
    assert_eq!((even.done, odd.done), (51, 52));
    assert_eq!((odd.rows, odd.statements, odd.checksum), (104, 156, 52));
    assert_eq!(driven.latency_ns().len(), 103);
    let fastest_ns = driven.latency_ns().min();
    assert!(fastest_ns >= 99_000, "{fastest_ns}");
    assert!(driven.wall_s >= 0.0025, "{}", driven.wall_s);
}

#[test]
fn a_time_ends_it_and_the_warm_up_is_not_counted() {
    let (workload, connector) = (Pretence::taking(MS), TestConnector::default());
    let mut load = load(&workload, &connector, 2, Until::Time(40 * MS));
    load.warmup = 60 * MS;
    let begun = Instant::now();
    let (mut edges, mut at) = (Vec::new(), Duration::ZERO);
    let driven = load
        .drive(&Stop::new(), &mut |edge| {
            edges.push(edge);
            at = begun.elapsed();
        })
        .unwrap();
    assert_eq!(edges, [Edge::Begin, Edge::End]);
    assert!(at >= 100 * MS, "{at:?}");
    assert!(driven.wall_s >= 0.04 && driven.wall_s < at.as_secs_f64() - 0.05, "{driven:?}");
    // Of a hundred milliseconds in all, forty are counted: at most 40 each, and the last.
    assert!((2..=82).contains(&driven.done()), "{}", driven.done());
}

#[test]
fn a_rate_is_kept_by_clients_that_are_fast_enough() {
    let (workload, connector) = (Pretence::taking(MS / 10), TestConnector::default());
    let mut load = load(&workload, &connector, 3, Until::Time(100 * MS));
    load.rate = Some(300.0);
    let driven = drive(&load).unwrap();
    // 0, 3.3, 6.7 … milliseconds: thirty starts, less those that a busy machine missed.
    assert_eq!(driven.done() + driven.unserved, 30);
    assert!(driven.wall_s > 0.09, "{}", driven.wall_s);
}

#[test]
fn latency_counts_from_the_intended_start() {
    let stalled = Arc::new(AtomicU64::new(0));
    let once = Arc::clone(&stalled);
    let workload = Pretence::of(move |_, _| {
        if once.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::sleep(100 * MS);
        }
        Ok(AttemptResult::default())
    });
    let connector = TestConnector::default();
    let mut load = load(&workload, &connector, 1, Until::Count(20));
    load.rate = Some(200.0);
    let latency = drive(&load).unwrap().latency_ns();
    // One transaction took 100 ms, and those meant to begin every 5 ms meanwhile waited for it:
    // half of them for more than 40, where a closed load would have seen one slow transaction.
    assert!(latency.value_at_quantile(0.5) > 40_000_000, "{}", latency.value_at_quantile(0.5));
    assert!(latency.max() >= 100_000_000);
}

#[test]
fn unserved_starts_are_counted() {
    let (workload, connector) = (Pretence::taking(20 * MS), TestConnector::default());
    let mut load = load(&workload, &connector, 1, Until::Time(50 * MS));
    load.rate = Some(1000.0);
    let driven = drive(&load).unwrap();
    assert!(driven.done() <= 3);
    assert_eq!(driven.done() + driven.unserved, 50);
}

#[test]
fn attempts_given_up_are_tried_again_and_counted_apart() {
    let workload = Pretence::of(|_, attempt| match attempt % 3 {
        0 => Ok(AttemptResult { rolled_back: true, ..AttemptResult::default() }),
        _ => Err(SessionError::Retry("deadlock".to_owned())),
    });
    let connector = TestConnector::default();
    let driven = drive(&load(&workload, &connector, 2, Until::Count(10))).unwrap();
    assert_eq!((driven.done(), driven.retries()), (10, 20));
    assert_eq!(driven.kinds.iter().map(|kind| kind.rolled_back).sum::<u64>(), 10);
}

#[test]
fn a_failure_ends_it_for_all_and_names_the_client() {
    let workload = Pretence::of(|client, attempt| match (client, attempt) {
        (1, 3) => Err(SessionError::Failed("division by zero, in: select 1/0".to_owned())),
        _ => {
            std::thread::sleep(MS / 10);
            Ok(AttemptResult::default())
        }
    });
    let connector = TestConnector::default();
    let error =
        drive(&load(&workload, &connector, 3, Until::Time(Duration::from_secs(60)))).unwrap_err();
    assert_eq!(error, "client 1, odd: division by zero, in: select 1/0");
}

#[test]
fn a_server_that_dies_leaves_what_was_done() {
    let workload = Pretence::of(|_, attempt| match attempt {
        0..=5 => Ok(AttemptResult::default()),
        _ => Err(SessionError::Gone("connection reset".to_owned())),
    });
    let connector = TestConnector::default();
    let driven =
        drive(&load(&workload, &connector, 1, Until::Time(Duration::from_secs(60)))).unwrap();
    assert_eq!(driven.done(), 5);
    assert_eq!(driven.end, End::Gone { client: 0, says: "connection reset".to_owned() });
}

#[test]
fn a_request_to_stop_is_heard_in_a_pause_and_in_a_long_statement() {
    // Two think for a minute; one is in a statement that only ends when it is cancelled.
    let connector = TestConnector::default();
    let cancelled = Arc::clone(&connector.fake.cancelled);
    let mut workload = Pretence::of(move |client, _| {
        while client == 2 && cancelled.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(MS);
        }
        match client {
            2 => Err(SessionError::Failed("cancelled".to_owned())),
            _ => Ok(AttemptResult::default()),
        }
    });
    workload.thinking_s = 60.0;
    let load = load(&workload, &connector, 3, Until::Time(Duration::from_secs(60)));
    let stop = Stop::new();
    let stopping = stop.clone();
    let asker = std::thread::spawn(move || {
        std::thread::sleep(30 * MS);
        stopping.request();
    });
    let begun = Instant::now();
    let driven = load.drive(&stop, &mut |_| {}).unwrap();
    asker.join().unwrap();
    assert_eq!((driven.done(), driven.end), (2, End::Stopped));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_client_that_can_not_connect_is_named() {
    let workload = Pretence::taking(MS);
    let connector = TestConnector { shut: true, ..TestConnector::default() };
    let error = drive(&load(&workload, &connector, 1, Until::Count(1))).unwrap_err();
    assert_eq!(error, "client 0 could not begin: too many clients already");
}

#[test]
fn contradictory_loads_are_refused() {
    let (workload, connector) = (Pretence::taking(MS), TestConnector::default());
    let mut load = load(&workload, &connector, 0, Until::Count(1));
    assert!(drive(&load).unwrap_err().contains("needs a client"));
    load.clients = 1;
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        load.rate = Some(rate);
        assert!(drive(&load).unwrap_err().contains("give one above 0"), "{rate}");
    }
}

#[test]
fn clients_stay_on_their_cpus() {
    let allowed = workahead_machine::pin::affinity().unwrap();
    let last = CpuSet::from_iter(allowed.iter().last());
    let expected = last.clone();
    let workload = Pretence::of(move |_, _| {
        assert_eq!(workahead_machine::pin::affinity().unwrap(), expected);
        Ok(AttemptResult::default())
    });
    let connector = TestConnector::default();
    let mut load = load(&workload, &connector, 2, Until::Count(2));
    load.cpus = Some(last);
    assert_eq!(drive(&load).unwrap().done(), 2);
    load.cpus = Some(CpuSet::default());
    assert!(drive(&load).unwrap_err().contains("can't run"));
}
