//! The configuration of a cell of a served database: its settings, read and bounded.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use workahead_machine::control::placement::Placement;
use workahead_machine::control::smt::SmtAxis;
use workahead_machine::scheduling::Policy;
use workahead_study::cell::Cell;
use workahead_study::engine::EngineError;
use workahead_study::instrument::CACHES;
use workahead_workloads::loops::PAPER_BYTES;

use super::background::LoopCount;
use super::crash::Crash;
use super::database::Pages;
use super::trial::Clients;
use super::work::Work;
use crate::collector::Part;
use crate::configuration::CellConfiguration;
use crate::server::Explain;

/// Most processes for one query: the limit of PostgreSQL's planner.
const PARALLEL_MAX: usize = 1024;
/// A page at least; at most more than any cache holds.
const LOOP_BYTES: RangeInclusive<usize> = 4 << 10..=4 << 30;
/// Order entry's own limit.
const WAREHOUSES_MAX: usize = 100_000;
/// Longest measured time.
const SECONDS_MAX: f64 = 7.0 * 86_400.0;

/// The configuration of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Configuration {
    /// The workload.
    pub(super) work: Work,
    /// Connections that run it at the same time.
    pub(super) clients: usize,
    /// Whether the search for the number that saturates the server begins there.
    pub(super) ramp: bool,
    /// How much of it is run.
    pub(super) amount: Amount,
    /// Transactions to start in a second, all clients together; as fast as they can when not given.
    pub(super) rate: Option<f64>,
    /// Processes that may work on one query.
    pub(super) parallel: usize,
    /// How siblings are used.
    pub(super) smt: SmtAxis,
    /// In which order CPUs are given to the server.
    pub(super) placement: Placement,
    /// How many; all when not given.
    pub(super) cpus: Option<usize>,
    /// How the system schedules it.
    pub(super) policy: Policy,
    /// The pages of its buffers.
    pub(super) pages: Pages,
    /// Warm-up of the clients, in seconds.
    pub(super) warmup_s: f64,
    /// Loops in the background, on the server's CPUs.
    pub(super) loops: LoopCount,
    /// Bytes that each of them touches.
    pub(super) loop_bytes: usize,
    /// The share of the time after which the server is killed; never when not given.
    pub(super) kill_at: Option<f64>,
    /// The most warehouses, where their number follows the rate.
    pub(super) scale_to_bound: Option<u32>,
    /// How the plan is explained, after the measured time.
    pub(super) explain: Explain,
    /// The study's collection options that apply to this cell.
    pub(super) collection: Part,
    /// Caches of the model, where instructions are counted by one; the method's when not given.
    pub(super) caches: Option<String>,
    /// The server's own settings.
    pub(super) server: BTreeMap<String, String>,
}

/// How much is run in one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Amount {
    /// Transactions or queries, all clients together.
    Count(u64),
    /// A time.
    Seconds(f64),
}

impl Configuration {
    /// Reads a cell.
    pub(super) fn read(cell: &Cell) -> Result<Self, EngineError> {
        let config = CellConfiguration::new(cell);
        let work = Work::read(&config)?;
        let (clients, ramp) = match config.text("clients", Clients::Number(1))? {
            Clients::Number(number) => (number, false),
            Clients::Ramp => (1, true),
        };
        let usual = work.usual_count() as usize;
        let queries = config.number("queries", usual, 1..=usize::MAX)? as u64;
        let queries = match config.number("queries_each", 0, 0..=usize::MAX)? as u64 {
            0 => queries,
            each => each.saturating_mul(clients as u64),
        };
        let amount = match config.real("seconds", 0.0, 0.0..=SECONDS_MAX)? {
            seconds if seconds > 0.0 => Amount::Seconds(seconds),
            _ => Amount::Count(queries),
        };
        let rate = config.has("rate").then(|| config.real("rate", 0.0, 0.001..=1e7)).transpose()?;
        let cpus = config.has("cpus").then(|| config.number("cpus", 0, 1..=4096)).transpose()?;
        let scale_to_bound = match &work {
            Work::OrderEntry(_) if config.has("scale_to_bound") => {
                Some(config.number("scale_to_bound", 1, 1..=WAREHOUSES_MAX)? as u32)
            }
            _ => None,
        };
        let read = Self {
            work,
            clients,
            ramp,
            amount,
            rate,
            parallel: config.number("parallel", 1, 1..=PARALLEL_MAX)?,
            smt: config.choice("smt", SmtAxis::On, &SmtAxis::ALL.map(|smt| (smt.name(), smt)))?,
            placement: config.choice(
                "placement",
                Placement::ALL[0],
                &Placement::ALL.map(|placement| (placement.name(), placement)),
            )?,
            cpus,
            policy: config.choice(
                "scheduler",
                Policy::Other,
                &Policy::ALL.map(|policy| (policy.name(), policy)),
            )?,
            pages: config.choice("pages", Pages::Usual, &Pages::NAMED)?,
            warmup_s: config.real("warmup_s", 0.0, 0.0..=SECONDS_MAX)?,
            loops: config.text("loops", LoopCount::Number(0))?,
            loop_bytes: config.number("loop_bytes", PAPER_BYTES, LOOP_BYTES)?,
            kill_at: kill_at(&config, amount)?,
            scale_to_bound,
            explain: config.choice(
                "explain",
                Explain::Planned,
                &[("planned", Explain::Planned), ("run", Explain::Run)],
            )?,
            collection: config.choice("collector", Part::All, &Part::NAMED)?,
            caches: config.has(CACHES).then(|| config.text(CACHES, String::new())).transpose()?,
            server: config.beginning("server."),
        };
        config.nothing_else()?;
        Ok(read)
    }

    /// Approximate bytes of its tables, at their largest.
    pub(super) fn data_bytes(&self) -> u64 {
        let bytes = self.work.data_bytes();
        match (&self.work, self.scale_to_bound) {
            (Work::OrderEntry(options), Some(most)) => {
                let begin = options.population.warehouses;
                bytes / u64::from(begin) * u64::from(most.max(begin))
            }
            _ => bytes,
        }
    }

    /// Bytes that its loops touch, on this number of CPUs.
    pub(super) fn loop_bytes(&self, cpus: usize) -> u64 {
        let loops = match self.loops {
            LoopCount::Number(loops) => loops,
            LoopCount::PerCpu => cpus,
        };
        (loops as u64).saturating_mul(self.loop_bytes as u64)
    }

    /// How long a repetition will be measured, if known.
    pub(super) fn window_s(&self) -> Option<f64> {
        match self.amount {
            Amount::Seconds(seconds) => Some(seconds),
            Amount::Count(_) => None,
        }
    }

    /// Whether every repetition does the same work, client by client.
    pub(super) fn does_as_much(&self) -> bool {
        matches!(self.amount, Amount::Count(_)) && self.warmup_s == 0.0 && !self.ramp
    }

    /// The crash in the middle of the run, if any.
    pub(super) fn crash(&self) -> Option<Crash> {
        match (self.kill_at, self.amount) {
            (Some(share), Amount::Seconds(seconds)) => Some(Crash { share, seconds }),
            _ => None,
        }
    }
}

/// When the server is killed, as a share of `seconds`.
fn kill_at(config: &CellConfiguration<'_>, amount: Amount) -> Result<Option<f64>, EngineError> {
    if !config.has("kill_at") {
        return Ok(None);
    }
    match amount {
        Amount::Seconds(_) => config.real("kill_at", 0.5, 0.01..=0.99).map(Some),
        Amount::Count(_) => {
            Err(EngineError::failed("setting `kill_at` is a share of a time: give `seconds` too"))
        }
    }
}
