//! How much of what a server can do is used, from what it did while others used it.
//!
//! ```text
//! windows of a second ─► at most 30 blocks: load, busy CPUs, sessions that wait
//!                          │  busy CPUs against load ─► the load at which all are busy   cpu.rs
//!                          │  waiting against load   ─► the load at which a queue        queue.rs
//!                          │                            grows without end
//!                          └─ the ceiling is the smallest; its interval is of blocks drawn anew
//! ```
//!
//! `top` divides: at 50 % busy half is left. That is right only if a transaction takes as much CPU
//! at the ceiling as it does now, nothing else runs, and nothing but CPUs can run out. Here each is
//! estimated from how the server behaved at the loads that it had, and where those loads don't
//! carry an answer there is none: see [`Refusal`].
//!
//! Deliberately absent: a table of machines, and any constant that was fitted to measured ceilings.

mod cpu;
mod queue;
mod refusal;
mod sentence;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use workahead_study::statistics::{CONFIDENCE, Interval, bootstrap_interval};

pub use refusal::{Reason, Refusal};

/// Blocks of the longest observation: enough to draw from, and long enough that neither the
/// server's counters, which PostgreSQL's sessions hand in once a second, nor a transaction that
/// straddles two blocks matters.
const BLOCKS_MAX: usize = 30;

/// The same observation has the same interval.
const SEED: u64 = 32;

/// The work of a server and its machine in one window of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// Transactions, or statements, that ended in it.
    pub ended: f64,
    /// CPUs, where they are visible.
    pub cpu: Option<CpuWindow>,
    /// Sessions that waited at a moment, in the mean; of one kind each.
    pub waiting: Vec<Waiting>,
}

/// The CPUs in a window, in CPU seconds per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuWindow {
    /// Those that the server may use, less what the host of a virtual machine took.
    pub cpus: f64,
    /// Those that were busy with anything.
    pub busy: f64,
    /// Those that were busy with the server, where its processes are visible.
    pub server: Option<f64>,
    /// CPUs that the server's control group may use, where those are fewer.
    pub quota: Option<f64>,
    /// The server's threads that could have run and had no CPU, in the mean.
    pub delayed: Option<f64>,
    /// The share of the time in which a task of the machine waited for I/O (PSI).
    pub io_pressure: Option<f64>,
}

/// Sessions that wait for one kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Waiting {
    /// The resource.
    pub resource: Resource,
    /// How many waited at a moment, in the mean.
    pub sessions: f64,
}

/// A resource that can run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The CPUs that the server may use.
    Cpus,
    /// CPUs that the server's control group may use of them.
    Quota,
    /// Locks of rows and tables.
    Locks,
    /// The log of changes.
    Log,
    /// Short locks on the server's own data.
    Latches,
    /// Files other than the log.
    Disk,
}

/// A server, observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerObservation {
    /// The counted unit: `transactions`, `statements`.
    pub counted: String,
    /// In the order of time.
    pub windows: Vec<Window>,
    /// Sources that could not be read, and the remedy.
    pub missing: Vec<Missing>,
    /// Why the observation ended early, in the server's words.
    pub lost: Option<String>,
}

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missing {
    /// In words, with the remedy.
    pub says: String,
    /// Whether a resource may saturate unseen for it.
    pub hides_a_limit: bool,
}

/// How much is used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// The answer in a sentence.
    pub sentence: String,
    /// The counted unit.
    pub counted: String,
    /// The mean load, per second.
    pub load_per_s: f64,
    /// The share of the CPUs that was busy.
    pub busy: f64,
    /// The load over the ceiling.
    pub used: f64,
    /// Its interval.
    pub used_interval: Interval,
    /// The load at which the first resource saturates, per second.
    pub ceiling_per_s: f64,
    /// Its interval.
    pub ceiling_interval: Interval,
    /// That resource.
    pub first: Resource,
    /// Others that may be the first by their intervals.
    pub or: Vec<Resource>,
    /// The ceiling by the share of busy CPUs alone.
    pub naive_ceiling_per_s: f64,
    /// The resources, the first to saturate first.
    pub resources: Vec<ResourceAnswer>,
    /// Length of the observation.
    pub seconds: f64,
    /// Its loads, block by block, per second.
    pub loads_per_s: Interval,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceAnswer {
    /// The resource.
    pub resource: Resource,
    /// How much of it is in use: CPUs busy, or sessions waiting, in the mean.
    pub mean: f64,
    /// How much there is; of what sessions wait for, nothing.
    pub of: Option<f64>,
    /// The load at which it saturates, per second; none where nothing points to one.
    pub ceiling_per_s: Option<f64>,
    /// Its interval; the upper end is open where a ceiling is not shown.
    pub interval: Option<OpenInterval>,
}

/// An interval whose upper end may be open.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OpenInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end, if there is one.
    pub high: Option<f64>,
}

/// Some windows together.
#[derive(Debug, Clone, Copy)]
struct Block {
    seconds: f64,
    load: f64,
    busy: f64,
    cpus: f64,
    server: f64,
    waiting: [f64; Resource::WAITS.len()],
}

impl Resource {
    const WAITS: [Resource; 4] =
        [Resource::Locks, Resource::Log, Resource::Latches, Resource::Disk];

    fn of_wait(self) -> Option<usize> {
        Self::WAITS.iter().position(|wait| *wait == self)
    }
}

impl ServerObservation {
    /// The length of the observation, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        // An empty sum is -0.
        self.windows.iter().map(|window| window.seconds).sum::<f64>() + 0.0
    }

    /// The answer.
    ///
    /// # Errors
    /// Where the observation can't carry one, with what would be needed.
    pub fn capacity(&self) -> Result<Capacity, Refusal> {
        refusal::of_windows(self)?;
        let model = Model::new(self);
        refusal::of_blocks(self, &model)?;
        let seen = model.capacity(self);
        refusal::of_capacity(self, &model, &seen)?;
        Ok(seen.worded(self))
    }
}

/// Blocks, and the resources that are visible in them.
struct Model {
    blocks: Vec<Block>,
    quota: Option<f64>,
    resources: Vec<Resource>,
}

impl Model {
    fn new(observed: &ServerObservation) -> Self {
        let size = (observed.windows.len() / BLOCKS_MAX).max(1);
        // The rest at the end is a part of the last block.
        let count = (observed.windows.len() / size).max(1);
        let end = |block: usize| match block + 1 == count {
            true => observed.windows.len(),
            false => (block + 1) * size,
        };
        let blocks = (0..count).map(|block| Block::of(&observed.windows[block * size..end(block)]));
        let blocks: Vec<Block> = blocks.collect();
        let quotas = observed.windows.iter().filter_map(|window| window.cpu?.quota);
        let quota = quotas.reduce(f64::min);
        let mut resources = vec![Resource::Cpus];
        resources.extend(quota.map(|_| Resource::Quota));
        let is_seen = |wait: &Resource| {
            let of = |window: &Window| window.waiting.iter().any(|one| one.resource == *wait);
            observed.windows.iter().any(of)
        };
        resources.extend(Resource::WAITS.into_iter().filter(is_seen));
        Self { blocks, quota, resources }
    }

    /// The load at which a resource saturates, by some blocks; infinite where none does.
    fn ceiling(&self, resource: Resource, blocks: &[Block], law: Law) -> f64 {
        let mean = |of: &dyn Fn(&Block) -> f64| mean(blocks, of);
        match (resource, self.quota, resource.of_wait()) {
            (Resource::Quota, Some(quota), _) => {
                cpu::ceiling(&points(blocks, |block| block.server), quota, law)
            }
            (_, _, Some(wait)) => {
                let points = points(blocks, |block| block.waiting[wait]);
                queue::ceiling(&points, queue::Kind::of(resource), law)
            }
            _ => cpu::ceiling(&points(blocks, |block| block.busy), mean(&|block| block.cpus), law),
        }
    }

    /// The smallest of all, and of which resource.
    fn first(&self, blocks: &[Block], law: Law) -> (f64, Resource) {
        let all = self.resources.iter().map(|one| (self.ceiling(*one, blocks, law), *one));
        all.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((FAR, Resource::Cpus))
    }

    /// That of one interval, so that those of all resources in use hold together (Bonferroni's
    /// inequality): the first of them is chosen by what was seen.
    fn confidence(&self) -> f64 {
        let is_used = |one: &&Resource| match one.of_wait() {
            Some(wait) => self.blocks.iter().any(|block| block.waiting[wait] > 0.0),
            None => true,
        };
        let used = self.resources.iter().filter(is_used).count().max(1);
        1.0 - (1.0 - CONFIDENCE) / used as f64
    }

    /// The interval of a ceiling: of blocks drawn anew by the usual law, and as far as the other
    /// laws lead. Logarithms, in which "twice" and "half" lie equally far; ceilings that are too
    /// far away to matter are alike.
    fn interval(&self, ceiling: &dyn Fn(&[Block], Law) -> f64) -> Interval {
        let load = mean(&self.blocks, &|block| block.load).max(f64::MIN_POSITIVE);
        let log =
            |law| move |blocks: &[Block]| Some((ceiling(blocks, law) / load).clamp(1e-3, FAR).ln());
        let drawn = bootstrap_interval(&self.blocks, &log(Law::Usual), self.confidence(), SEED);
        let drawn = drawn.unwrap_or(Interval { low: 0.0, high: FAR.ln() });
        let of_all = |law| log(law)(&self.blocks).unwrap_or(0.0);
        let found = of_all(Law::Usual);
        let wider = narrowness(self.blocks.len(), self.confidence());
        let low = found - (found - drawn.low) * wider;
        let high = found + (drawn.high - found) * wider;
        let end = |log: f64| if log >= FAR.ln() - 1e-6 { f64::INFINITY } else { log.exp() * load };
        Interval { low: end(low.min(of_all(Law::Sooner))), high: end(high.max(of_all(Law::Later))) }
    }

    fn answer(&self, resource: Resource) -> ResourceAnswer {
        let ceiling = self.ceiling(resource, &self.blocks, Law::Usual);
        let Interval { low, high } =
            self.interval(&|blocks, law| self.ceiling(resource, blocks, law));
        let (mean, of) = match (resource, resource.of_wait()) {
            (_, Some(wait)) => (mean(&self.blocks, &|block| block.waiting[wait]), None),
            (Resource::Quota, _) => (mean(&self.blocks, &|block| block.server), self.quota),
            _ => {
                let cpus = mean(&self.blocks, &|block| block.cpus);
                (mean(&self.blocks, &|block| block.busy), Some(cpus))
            }
        };
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        ResourceAnswer {
            resource,
            mean,
            of,
            ceiling_per_s: finite(ceiling),
            interval: finite(low).map(|low| OpenInterval { low, high: finite(high) }),
        }
    }

    fn capacity(&self, observed: &ServerObservation) -> Capacity {
        let load = mean(&self.blocks, &|block| block.load);
        let loads = self.loads();
        let (ceiling, first) = self.first(&self.blocks, Law::Usual);
        let mut interval = self.interval(&|blocks, law| self.first(blocks, law).0);
        // It was served, so it can be.
        interval.low = interval.low.max(loads.high.min(ceiling));
        interval.high = interval.high.max(ceiling);
        let mut resources: Vec<ResourceAnswer> =
            self.resources.iter().map(|one| self.answer(*one)).collect();
        let place = |one: &ResourceAnswer| one.ceiling_per_s.unwrap_or(f64::INFINITY);
        resources.sort_by(|one, other| place(one).total_cmp(&place(other)));
        let may_be_first = |one: &&ResourceAnswer| {
            one.resource != first
                && one.ceiling_per_s.is_some()
                && one.interval.is_some_and(|own| own.low < ceiling)
        };
        let or = resources.iter().filter(may_be_first).map(|one| one.resource).collect();
        let cpus = mean(&self.blocks, &|block| block.cpus);
        let busy = mean(&self.blocks, &|block| block.busy) / cpus;
        Capacity {
            sentence: String::new(),
            counted: observed.counted.clone(),
            load_per_s: load,
            busy,
            used: load / ceiling,
            used_interval: Interval { low: load / interval.high, high: load / interval.low },
            ceiling_per_s: ceiling,
            ceiling_interval: interval,
            first,
            or,
            naive_ceiling_per_s: load / busy,
            resources,
            seconds: observed.seconds(),
            loads_per_s: loads,
            notes: Vec::new(),
        }
    }

    /// The smallest and the largest load of a block.
    fn loads(&self) -> Interval {
        let loads = self.blocks.iter().map(|block| block.load);
        let low = loads.clone().fold(f64::INFINITY, f64::min);
        Interval { low, high: loads.fold(0.0, f64::max) }
    }
}

impl Capacity {
    /// In words; and wider where a limit may be hidden, since what can't be seen may saturate at
    /// any load above those that were served.
    fn worded(mut self, observed: &ServerObservation) -> Self {
        if observed.missing.iter().any(|missing| missing.hides_a_limit) {
            self.ceiling_interval.low = self.ceiling_interval.low.min(self.loads_per_s.high);
            self.used_interval.high = self.load_per_s / self.ceiling_interval.low;
        }
        self.notes = sentence::notes(&self, observed);
        self.sentence = sentence::of(&self);
        self
    }
}

/// How a resource behaves beyond the loads that were seen. The usual law is the answer; the others
/// are as good by what was seen, and the interval reaches to theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Law {
    /// A transaction's CPU time rises with the number of busy CPUs; those that wait for a lock wait
    /// for the same.
    Usual,
    /// CPU time rises with the square of that number.
    Sooner,
    /// Those that wait may wait for several locks.
    Later,
}

/// How much wider than drawn: intervals from few blocks are too narrow, since draws have the spread
/// around their own fit, of three terms, and normal tails (Hesterberg 2015, section 3.2).
fn narrowness(blocks: usize, confidence: f64) -> f64 {
    const TERMS: usize = 3;
    let Some(free) = blocks.checked_sub(TERMS).filter(|free| *free > 0) else { return 1.0 };
    let tail = (1.0 + confidence) / 2.0;
    let t = StudentsT::new(0.0, 1.0, free as f64).map_or(1.0, |t| t.inverse_cdf(tail));
    (blocks as f64 / free as f64).sqrt() * t / Normal::standard().inverse_cdf(tail)
}

/// Ceilings above this multiple of the load are treated as equal.
const FAR: f64 = 50.0;

impl Block {
    fn of(windows: &[Window]) -> Self {
        let seconds: f64 = windows.iter().map(|window| window.seconds).sum();
        let sum = |of: &dyn Fn(&Window) -> f64| {
            let each = windows.iter().map(|window| of(window) * window.seconds);
            each.sum::<f64>() / seconds
        };
        let cpu = |of: &dyn Fn(CpuWindow) -> f64| sum(&|window| window.cpu.map_or(0.0, of));
        let waits = |wait: Resource| {
            sum(&|window| {
                let of = window.waiting.iter().filter(|one| one.resource == wait);
                of.map(|one| one.sessions).sum()
            })
        };
        Self {
            seconds,
            load: windows.iter().map(|window| window.ended).sum::<f64>() / seconds,
            busy: cpu(&|cpu| cpu.busy),
            cpus: cpu(&|cpu| cpu.cpus),
            server: cpu(&|cpu| cpu.server.unwrap_or(0.0)),
            waiting: Resource::WAITS.map(waits),
        }
    }
}

/// The mean over time.
fn mean(blocks: &[Block], of: &dyn Fn(&Block) -> f64) -> f64 {
    let seconds: f64 = blocks.iter().map(|block| block.seconds).sum();
    blocks.iter().map(|block| of(block) * block.seconds).sum::<f64>() / seconds
}

/// Loads, and how much of a resource they took.
fn points(blocks: &[Block], of: impl Fn(&Block) -> f64) -> Vec<(f64, f64)> {
    blocks.iter().map(|block| (block.load, of(block))).collect()
}
