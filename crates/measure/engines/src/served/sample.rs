//! One repetition: clients at work, CPU time of the server, and conditions that must hold
//! afterwards.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use workahead_machine::process::machine_wide::Whole;
use workahead_machine::process::{ResourceUse, Snapshot, Tree};
use workahead_machine::{CpuSet, Sysroot};
use workahead_study::engine::{Answer, EngineError, Sample, Stop};
use workahead_study::plans::PlanText;
use workahead_workloads::client::{Moment, Workload};
use workahead_workloads::session::Dialect;

use super::background::Background;
use super::configuration::{Amount, Configuration};
use super::database::{Database, ProcessScope, holds};
use super::statistics::Statistics;
use crate::cancellation::until_stopped;
use crate::collector::{CollectionScope, CollectionTarget, Collector, Part, RunningCollection};
use crate::connector::{Connection, Connector};
use crate::load::{Edge, End, Kind, Load, LoadResult, Until};
use crate::server::Explain;

/// Reported latencies.
const QUANTILES: [(&str, f64); 4] = [
    ("latency_p50_ms", 0.5),
    ("latency_p95_ms", 0.95),
    ("latency_p99_ms", 0.99),
    ("latency_max_ms", 1.0),
];

/// Clients, loops and collectors beside the server, and the request to stop.
pub(super) struct RunContext<'a> {
    /// Those of the clients; all of this process when not given.
    pub(super) clients: Option<CpuSet>,
    /// Loops in the background.
    pub(super) loops: Background,
    /// A request to stop.
    pub(super) stop: &'a Stop,
    /// The collector of the cell.
    pub(super) collector: Option<CellCollector<'a>>,
}

/// A collector and what it collects of a server while the clients of a cell run.
pub(super) struct CellCollector<'a> {
    pub(super) collector: &'a mut Collector,
    /// Names the cell: its rotation goes on from sample to sample.
    pub(super) cell: String,
    /// The part that applies.
    pub(super) part: Part,
    /// The server's CPUs.
    pub(super) cpus: CpuSet,
}

/// Runs the clients of a cell.
pub(super) fn of(
    database: &mut dyn Database,
    config: &Configuration,
    workload: &dyn Workload,
    context: RunContext<'_>,
) -> Result<Sample, EngineError> {
    let RunContext { clients, mut loops, stop, mut collector } = context;
    let connector = database.connector()?;
    let mut meter = Meter::of(database);
    let load = load(config, workload, connector.as_ref(), clients);
    let statistics = Statistics::begin(connector.as_ref());
    let target = target(database);
    let (mut running, mut collection) = (None, None);
    let driven = load.drive(stop, &mut |edge| match edge {
        Edge::Begin => {
            loops.begin();
            if let Some(CellCollector { collector, cell, part, cpus }) = &mut collector {
                let window_s = config.window_s();
                let scope = CollectionScope { cell, window_s, target, cpus, part: *part };
                running = Some(collector.begin(&scope));
            }
            meter.read(edge);
        }
        Edge::End => {
            meter.read(edge);
            collection = running.take().map(RunningCollection::end);
            loops.end();
        }
    })?;
    match &driven.end {
        End::Done => {}
        End::Stopped => return Err(EngineError::Stopped),
        End::Gone { client, says } => {
            let words = database.last_words().map(|words| format!("; {words}")).unwrap_or_default();
            return Err(EngineError::failed(format!(
                "the server went away under client {client}: {says}{words}"
            )));
        }
    }
    let statistics = statistics.end(connector.as_ref());
    holds(connector.as_ref(), workload, Moment::Drained, stop)?;
    let mut sample = meter.sample(&driven)?;
    let mut say = |name: &str, value: f64| sample.measures.insert(name.to_owned(), value);
    let of_work = config.work.measures(&driven);
    for (name, value) in statistics.into_iter().chain(of_work).chain(loops.measures()?) {
        say(name, value);
    }
    let planned = plan(connector.as_ref(), workload, database.dialect(), config.explain, stop)?;
    if let Some((plan, planning_ms)) = planned {
        say("planning_ms", planning_ms);
        sample.plan = Some(plan);
    }
    if let Some((CellCollector { collector, cell, .. }, collection)) = collector.zip(collection) {
        collector.keep(&cell, collection, &mut sample);
    }
    if let Some(answered) = workload.answer() {
        sample.answer = Answer { rows: answered.rows, checksum: answered.checksum };
    } else if workload.is_read_only() && config.does_as_much() {
        let sum = |sum: u64, kind: &Kind| sum.wrapping_add(kind.checksum);
        sample.answer = Answer {
            rows: driven.kinds.iter().map(|kind| kind.rows).sum(),
            checksum: driven.kinds.iter().fold(0, sum),
        };
    }
    Ok(sample)
}

/// The server's processes.
fn target(database: &dyn Database) -> CollectionTarget {
    match (database.scope(), database.is_ours()) {
        (ProcessScope::Process(pid), true) => CollectionTarget::Ours(pid),
        (ProcessScope::Process(pid), false) => CollectionTarget::Theirs(pid),
        (ProcessScope::Within, _) => CollectionTarget::Theirs(std::process::id()),
        (ProcessScope::Unseen, _) => CollectionTarget::Unseen,
    }
}

/// The load of a cell's clients.
pub(super) fn load<'a>(
    config: &Configuration,
    workload: &'a dyn Workload,
    connector: &'a dyn Connector,
    cpus: Option<CpuSet>,
) -> Load<'a> {
    Load {
        workload,
        connector,
        clients: config.clients as u32,
        rate: config.rate,
        warmup: Duration::from_secs_f64(config.warmup_s),
        until: match config.amount {
            Amount::Count(count) => Until::Count(count),
            Amount::Seconds(seconds) => Until::Time(Duration::from_secs_f64(seconds)),
        },
        cpus,
    }
}

/// The plan of the clients' statement, if it has one, and the time of the request: parsing,
/// planning, and a round trip, but no execution. The statement is run once more for the times of
/// its operators, if configured.
pub(super) fn plan(
    connector: &dyn Connector,
    workload: &dyn Workload,
    dialect: Dialect,
    how: Explain,
    stop: &Stop,
) -> Result<Option<(PlanText, f64)>, EngineError> {
    let failed = |error| EngineError::failed(format!("explain the query: {error}"));
    // Only a cell with one statement has a plan; a mix of transactions has none.
    let explained = workload.explained(dialect).map_err(failed)?;
    let [statement] = explained.as_slice() else { return Ok(None) };
    let mut connection = connector.open().map_err(failed)?;
    // It waits for locks, as what it explains does.
    let planned = |one: &mut dyn Connection| {
        statement.settings.iter().try_for_each(|text| one.session().run(text))?;
        let begun = Instant::now();
        let plan = one.plan(&statement.text, Explain::Planned)?;
        Ok((plan, begun.elapsed().as_secs_f64() * 1e3))
    };
    let planned = until_stopped(connection.as_mut(), stop, planned)?;
    let (mut plan, planning_ms) = planned.map_err(failed)?;
    if how == Explain::Run {
        let run = |one: &mut dyn Connection| one.plan(&statement.text, Explain::Run);
        let run = until_stopped(connection.as_mut(), stop, run)?.map_err(failed)?;
        plan.run = Some(run.text);
    }
    Ok(Some((plan, planning_ms)))
}

/// Readings at the edges of the measured part.
pub(super) struct Meter {
    root: Sysroot,
    scope: ProcessScope,
    tree: Option<Tree>,
    begin: Option<(Option<Snapshot>, Whole)>,
    used: Option<(Option<ResourceUse>, Whole)>,
}

impl Meter {
    pub(super) fn of(database: &dyn Database) -> Self {
        let scope = database.scope();
        let tree = match scope {
            ProcessScope::Process(pid) => Some(Tree::of(pid)),
            ProcessScope::Within => Some(Tree::of(std::process::id())),
            ProcessScope::Unseen => None,
        };
        Self { root: Sysroot::live(), scope, tree, begin: None, used: None }
    }

    pub(super) fn read(&mut self, edge: Edge) {
        let server = self.tree.as_mut().map(|tree| tree.look(&self.root));
        let whole = Whole::look(&self.root);
        match (edge, &self.begin) {
            (Edge::Begin, _) => self.begin = Some((server, whole)),
            (Edge::End, Some((server_then, whole_then))) => {
                let used = server.zip(server_then.as_ref()).map(|(now, then)| now.since(then));
                self.used = Some((used, whole.since(whole_then)));
            }
            (Edge::End, None) => {}
        }
    }

    /// The usage between the edges; `None` when nothing was measured.
    pub(super) fn used(&self) -> Option<(Option<ResourceUse>, Whole)> {
        self.used.clone()
    }

    fn sample(&self, driven: &LoadResult) -> Result<Sample, EngineError> {
        let used = self.used().filter(|_| driven.wall_s > 0.0);
        let nothing = || EngineError::failed("no transaction was done in the time");
        let (used, whole) = used.ok_or_else(nothing)?;
        Ok(sample(driven, used, whole, self.scope))
    }
}

/// Load and usage as a sample.
pub(super) fn sample(
    driven: &LoadResult,
    used: Option<ResourceUse>,
    whole: Whole,
    scope: ProcessScope,
) -> Sample {
    let mut measures = clients(driven);
    let mut say = |name: &str, value: f64| {
        measures.insert(name.to_owned(), value);
    };
    if let Some(used) = &used {
        used.measures().into_iter().for_each(|(name, value)| say(name, value));
        if scope != ProcessScope::Within {
            let both = driven.client_cpu_s + used.cpu_s;
            say("client_cpu_share", driven.client_cpu_s / both);
        }
    }
    whole.measures().into_iter().for_each(|(name, value)| say(name, value));
    Sample {
        wall_s: driven.wall_s,
        cpu_s: used.map(|used| used.cpu_s),
        tuples: driven.done(),
        // The frequency of each input is random; clients checked each answer.
        answer: Answer::default(),
        measures,
        ..Sample::default()
    }
}

/// The clients' measures by name.
fn clients(driven: &LoadResult) -> BTreeMap<String, f64> {
    let mut measures = BTreeMap::new();
    let mut say = |name: &str, value: f64| measures.insert(name.to_owned(), value);
    let latency_ns = driven.latency_ns();
    say("latency_mean_ms", latency_ns.mean() / 1e6);
    for (name, quantile) in QUANTILES {
        say(name, latency_ns.value_at_quantile(quantile) as f64 / 1e6);
    }
    driven.per_s().map(|per_s| say("per_s", per_s));
    say("retries", driven.retries() as f64);
    say("all_at_work_share", driven.all_at_work_s / driven.wall_s);
    if driven.unserved > 0 {
        say("unserved", driven.unserved as f64);
    }
    for kind in driven.kinds.iter().filter(|_| driven.kinds.len() > 1) {
        say(&format!("{}_per_s", kind.name), kind.done as f64 / driven.wall_s);
        let p95_ms = kind.latency_ns.value_at_quantile(0.95) as f64 / 1e6;
        say(&format!("{}_p95_ms", kind.name), p95_ms);
    }
    say("client_cpu_s", driven.client_cpu_s);
    measures
}
