//! A server that is killed in the middle of its work, recovers, and continues.
//!
//! ```text
//! clients at work ──► SIGKILL to all its processes ──► started again ──► clients at work
//!                      │◄────── recovery_s ──────────────────────►│        until the end
//!                      └ transactions acknowledged so far …              └ … must exist, and all
//!                                                                          conditions hold
//! ```
//!
//! This tests recovery from a crash of the server, not from lost power: the system keeps running,
//! with writes that are not yet on the disk. The sample's time is that of the clients: before,
//! while there was no server, and after; checking the conditions is not in it.

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use workahead_machine::process::ResourceUse;
use workahead_machine::process::machine_wide::Whole;
use workahead_study::engine::{EngineError, Sample, Stop};
use workahead_workloads::client::{Client, Condition, Moment, RowSink, Table, Workload};
use workahead_workloads::session::{Dialect, Session, SessionError};

use super::configuration::Configuration;
use super::database::{Database, ServerConfiguration, holds};
use super::sample::{self, Meter, RunContext};
use crate::load::{Edge, End, Load, LoadError, LoadResult, Until};

/// How often an early end of the clients is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// When the server is killed, in which time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Crash {
    pub(super) share: f64,
    pub(super) seconds: f64,
}

/// How the server is started again.
pub(super) struct Restart<'a> {
    /// Where its data is.
    pub(super) home: &'a Path,
    /// Its configuration.
    pub(super) running: &'a ServerConfiguration,
}

impl Crash {
    /// Runs a cell through it.
    pub(super) fn of(
        self,
        database: &mut dyn Database,
        config: &Configuration,
        workload: &dyn Workload,
        restart: Restart<'_>,
        context: RunContext<'_>,
    ) -> Result<Sample, EngineError> {
        let RunContext { clients, mut loops, stop, .. } = context;
        let after_s = self.seconds * self.share;
        loops.begin();
        let connector = database.connector()?;
        let before = sample::load(config, workload, connector.as_ref(), clients.clone());
        let (before, used_before) = killed(database, &before, after_s, stop)?;
        let killed = Instant::now();
        database.serve(restart.home, restart.running, stop)?;
        let recovery_s = killed.elapsed().as_secs_f64();
        let connector = database.connector()?;
        holds(connector.as_ref(), workload, Moment::Drained, stop)?;

        let again = OtherClients(workload);
        let mut meter = Meter::of(database);
        let left = Duration::from_secs_f64(self.seconds - after_s);
        let load = sample::load(config, &again, connector.as_ref(), clients);
        let load = Load { until: Until::Time(left), warmup: Duration::ZERO, ..load };
        let after = load.drive(stop, &mut |edge| meter.read(edge))?;
        match &after.end {
            End::Done => {}
            End::Stopped => return Err(EngineError::Stopped),
            End::Gone { says, .. } => {
                let says = format!("the server went away again after it had recovered: {says}");
                return Err(EngineError::failed(says));
            }
        }
        holds(connector.as_ref(), workload, Moment::Drained, stop)?;
        loops.end();

        let Some((used, whole)) = meter.used() else {
            return Err(EngineError::failed("nothing was done after the kill"));
        };
        let used = used_before.0.zip(used).map(|(before, after)| plus(&before, after));
        let whole = plus_whole(&used_before.1, whole);
        let (per_s_before, per_s_after) = (before.per_s(), after.per_s());
        let mut driven = before.then(&after);
        driven.wall_s += recovery_s;
        let mut sample = sample::sample(&driven, used, whole, database.scope());
        let mut say = |name: &str, value: f64| sample.measures.insert(name.to_owned(), value);
        say("killed_after_s", after_s);
        say("recovery_s", recovery_s);
        say("per_s_before", per_s_before.unwrap_or_default());
        say("per_s_after", per_s_after.unwrap_or_default());
        for (name, value) in config.work.measures(&driven).into_iter().chain(loops.measures()?) {
            say(name, value);
        }
        Ok(sample)
    }
}

/// CPU time of the server's processes, and the machine's.
type Usage = (Option<ResourceUse>, Whole);

/// Runs clients and kills the server after a time. Returns the result until then.
fn killed(
    database: &mut dyn Database,
    load: &Load<'_>,
    after_s: f64,
    stop: &Stop,
) -> Result<(LoadResult, Usage), EngineError> {
    let meter = Mutex::new(Meter::of(database));
    let read = |edge| meter.lock().unwrap_or_else(PoisonError::into_inner).read(edge);
    let (tell, begun) = mpsc::channel();
    let driven = std::thread::scope(|scope| {
        let driving = scope.spawn(move || -> Result<LoadResult, LoadError> {
            load.drive(stop, &mut |edge| {
                if edge == Edge::Begin {
                    read(edge);
                    // The receiver is gone when the scope ends.
                    let _ = tell.send(Instant::now());
                }
            })
        });
        // If they never began, the clients report why.
        if let Ok(begun) = begun.recv() {
            while begun.elapsed().as_secs_f64() < after_s && !driving.is_finished() {
                std::thread::sleep(LOOK_EVERY);
            }
            read(Edge::End);
            if !driving.is_finished() {
                database.kill();
            }
        }
        driving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let driven = driven?;
    let used = meter.into_inner().unwrap_or_else(PoisonError::into_inner).used();
    match (&driven.end, used) {
        (End::Gone { .. }, Some(used)) if driven.wall_s > 0.0 => Ok((driven, used)),
        (End::Stopped, _) => Err(EngineError::Stopped),
        (end, _) => {
            let says = format!("the clients did not notice that the server was killed: {end:?}");
            Err(EngineError::failed(says))
        }
    }
}

/// The sum of both.
fn plus(one: &ResourceUse, other: ResourceUse) -> ResourceUse {
    ResourceUse {
        cpu_s: one.cpu_s + other.cpu_s,
        user_s: one.user_s + other.user_s,
        system_s: one.system_s + other.system_s,
        // The last CPU time of killed processes was not counted.
        cpu_is_at_least: true,
        switches_voluntary: one.switches_voluntary + other.switches_voluntary,
        switches_involuntary: one.switches_involuntary + other.switches_involuntary,
        run_delay_s: one.run_delay_s.zip(other.run_delay_s).map(|(one, other)| one + other),
        threads_are_at_least: true,
        faults_minor: one.faults_minor + other.faults_minor,
        faults_major: one.faults_major + other.faults_major,
        ..other
    }
}

fn plus_whole(one: &Whole, other: Whole) -> Whole {
    let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
    Whole {
        total_s: sum(one.total_s, other.total_s),
        idle_s: sum(one.idle_s, other.idle_s),
        steal_s: sum(one.steal_s, other.steal_s),
        cpu_some_s: sum(one.cpu_some_s, other.cpu_some_s),
        memory_some_s: sum(one.memory_some_s, other.memory_some_s),
        memory_full_s: sum(one.memory_full_s, other.memory_full_s),
        io_some_s: sum(one.io_some_s, other.io_some_s),
        io_full_s: sum(one.io_full_s, other.io_full_s),
        ghz: other.ghz,
    }
}

/// The first number of the clients after a crash, beyond all others.
const OTHER_CLIENTS_FROM: u32 = 1 << 20;

/// The same workload by other clients, with other inputs.
struct OtherClients<'a>(&'a dyn Workload);

impl Workload for OtherClients<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn kinds(&self) -> Vec<String> {
        self.0.kinds()
    }

    fn tables(&self, dialect: Dialect) -> Result<Vec<Table>, SessionError> {
        self.0.tables(dialect)
    }

    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        self.0.rows(table, sink)
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        self.0.client(OTHER_CLIENTS_FROM + number)
    }

    fn check(
        &self,
        session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        self.0.check(session, when)
    }
}
