//! One repetition: clients at work, what the server used for them, and what must hold afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use workahead_machine::process::machine_wide::Whole;
use workahead_machine::process::{Snapshot, Tree, Used};
use workahead_machine::{CpuSet, Root};
use workahead_study::engine::{Answer, EngineError, Sample, Stop};
use workahead_study::plans::{PlanText, Planner};
use workahead_workloads::client::{Moment, Workload};
use workahead_workloads::session::Dialect;

use super::asked::{Amount, Asked};
use super::database::{Database, holds};
use crate::attach::Target;
use crate::load::{Driven, Edge, End, Load, Until};
use crate::server::Explain;

/// Latencies that are told.
const QUANTILES: [(&str, f64); 4] = [
    ("latency_p50_ms", 0.5),
    ("latency_p95_ms", 0.95),
    ("latency_p99_ms", 0.99),
    ("latency_max_ms", 1.0),
];

/// Lets the clients of a cell work.
pub(super) fn of(
    database: &mut dyn Database,
    asked: &Asked,
    workload: &dyn Workload,
    (cpus, stop): (Option<CpuSet>, &Stop),
) -> Result<Sample, EngineError> {
    let target = database.target()?;
    let mut meter = Meter::of(database)?;
    let load = Load {
        workload,
        door: &target,
        clients: asked.clients as u32,
        rate: asked.rate,
        warmup: Duration::ZERO,
        until: match asked.amount {
            Amount::Count(count) => Until::Count(count),
            Amount::Seconds(seconds) => Until::Time(Duration::from_secs_f64(seconds)),
        },
        cpus,
    };
    let driven = load.drive(stop, &mut |edge| meter.read(edge))?;
    match &driven.end {
        End::Done => {}
        End::Stopped => return Err(EngineError::Stopped),
        End::Gone { client, says } => {
            let words = database.last_words().map(|words| format!("; {words}")).unwrap_or_default();
            return Err(EngineError::Failed(format!(
                "the server went away under client {client}: {says}{words}"
            )));
        }
    }
    holds(&target, workload, Moment::Drained)?;
    let plan = plan(&target, workload)?;
    Ok(Sample { plan, ..meter.sample(&driven)? })
}

/// The plan of what the clients ran, where it has one.
fn plan(target: &Target, workload: &dyn Workload) -> Result<Option<PlanText>, EngineError> {
    let failed = |error| EngineError::Failed(format!("explain the query: {error}"));
    let (planner, dialect) = match target {
        Target::Postgres(_) => (Planner::Postgres, Dialect::Postgres),
        Target::MariaDb(_) => (Planner::Mariadb, Dialect::MariaDb),
    };
    // One statement is what a cell is about; a mix of transactions has none of its own.
    let explained = workload.explained(dialect).map_err(failed)?;
    let [statement] = explained.as_slice() else { return Ok(None) };
    let mut connection = target.connect().map_err(failed)?;
    for text in &statement.settings {
        connection.session().run(text).map_err(failed)?;
    }
    let text = connection.explain(&statement.text, Explain::Planned).map_err(failed)?;
    Ok(Some(PlanText { planner, text }))
}

/// What is read at the edges of the measured part.
struct Meter {
    root: Root,
    tree: Tree,
    begin: Option<(Snapshot, Whole)>,
    used: Option<(Used, Whole)>,
}

impl Meter {
    fn of(database: &dyn Database) -> Result<Self, EngineError> {
        let gone = || EngineError::Failed("the server does not run".to_owned());
        let tree = Tree::of(database.pid().ok_or_else(gone)?);
        Ok(Self { root: Root::live(), tree, begin: None, used: None })
    }

    fn read(&mut self, edge: Edge) {
        let (server, whole) = (self.tree.look(&self.root), Whole::look(&self.root));
        match (edge, &self.begin) {
            (Edge::Begin, _) => self.begin = Some((server, whole)),
            (Edge::End, Some((server_then, whole_then))) => {
                self.used = Some((server.since(server_then), whole.since(whole_then)));
            }
            (Edge::End, None) => {}
        }
    }

    fn sample(self, driven: &Driven) -> Result<Sample, EngineError> {
        let Some((used, whole)) = self.used.filter(|_| driven.wall_s > 0.0) else {
            return Err(EngineError::Failed("no transaction was done in the time".to_owned()));
        };
        let mut measures = BTreeMap::new();
        let mut say = |name: &str, value: Option<f64>| {
            value.map(|value| measures.insert(name.to_owned(), value));
        };
        let latency_ns = driven.latency_ns();
        say("latency_mean_ms", Some(latency_ns.mean() / 1e6));
        for (name, quantile) in QUANTILES {
            say(name, Some(latency_ns.value_at_quantile(quantile) as f64 / 1e6));
        }
        say("per_s", driven.per_s());
        say("retries", Some(driven.retries() as f64));
        say("unserved", (driven.unserved > 0).then_some(driven.unserved as f64));
        for kind in driven.kinds.iter().filter(|_| driven.kinds.len() > 1) {
            say(&format!("{}_per_s", kind.name), Some(kind.done as f64 / driven.wall_s));
            let p95_ms = kind.latency_ns.value_at_quantile(0.95) as f64 / 1e6;
            say(&format!("{}_p95_ms", kind.name), Some(p95_ms));
        }
        say("client_cpu_s", Some(driven.client_cpu_s));
        say("client_cpu_share", Some(driven.client_cpu_s / (driven.client_cpu_s + used.cpu_s)));
        say("user_s", Some(used.user_s));
        say("system_s", Some(used.system_s));
        say("cpu_is_at_least", used.cpu_is_at_least.then_some(1.0));
        say("switches_voluntary", Some(used.switches_voluntary as f64));
        say("switches_involuntary", Some(used.switches_involuntary as f64));
        say("run_delay_s", used.run_delay_s);
        say("faults_minor", Some(used.faults_minor as f64));
        say("faults_major", Some(used.faults_major as f64));
        say("steal_s", whole.steal_s);
        say("cpu_pressure_s", whole.cpu_some_s);
        say("io_pressure_s", whole.io_some_s);
        Ok(Sample {
            wall_s: driven.wall_s,
            cpu_s: used.cpu_s,
            tuples: driven.done(),
            // How often each input comes up is chance; each answer was checked by its client.
            answer: Answer::default(),
            measures,
            plan: None,
        })
    }
}
