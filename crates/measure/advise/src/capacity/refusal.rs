//! Observations that can't carry an answer, and what would be needed instead.

use serde::Serialize;
use workahead_study::statistics::sd;

use super::{Capacity, Model, Resource, ServerObservation, mean};
use crate::words::{duration, significant};

/// Fewer blocks have too few to draw from.
const WINDOWS_MIN: usize = 12;

/// A server that is less busy than this share of its CPUs shows mostly what else it does.
const BUSY_MIN: f64 = 0.03;

/// Sessions waiting, in the mean, below which nothing but CPUs is in use.
const WAITING_MIN: f64 = 0.05;

/// A window with this share of the CPUs busy is saturated; and so is an observation of which this
/// share of windows is.
const SATURATED: f64 = 0.95;
const SATURATED_WINDOWS: f64 = 0.8;

/// The largest load over the smallest, block by block, from which a slope is more than noise.
const LOADS_MIN: f64 = 1.2;

/// The upper end of the ceiling over the lower one at most: beyond, the answer would be of no use.
const ENDS_MAX: f64 = 1.75;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// In a line, with what would be needed.
    pub says: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.says)
    }
}

impl std::error::Error for Refusal {}

/// Reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The server went away, or its counters were set back.
    Restarted,
    /// There are too few windows.
    TooShort,
    /// The CPUs are not visible from here.
    Unseen,
    /// The server does next to nothing.
    Idle,
    /// The CPUs are busy throughout.
    Saturated,
    /// The load is the same throughout.
    Steady,
    /// The ceiling may be anywhere in a wide interval.
    Unclear,
}

fn refuse(reason: Reason, says: String) -> Result<(), Refusal> {
    Err(Refusal { reason, says })
}

pub(super) fn of_windows(observed: &ServerObservation) -> Result<(), Refusal> {
    if let Some(lost) = &observed.lost {
        let after = duration(observed.seconds());
        return refuse(
            Reason::Restarted,
            format!(
                "after {after} {lost}: run it again, since counters from before and after a \
                 restart don't belong together"
            ),
        );
    }
    let windows = observed.windows.len();
    if windows < WINDOWS_MIN {
        return refuse(
            Reason::TooShort,
            format!(
                "{windows} windows were seen and {WINDOWS_MIN} are needed at least: a longer \
                 --for, or a shorter --every"
            ),
        );
    }
    if observed.windows.iter().any(|window| window.cpu.is_none()) {
        return refuse(
            Reason::Unseen,
            "the CPUs of the server's machine are not visible from here: run it on that machine, \
             through the server's socket"
                .to_owned(),
        );
    }
    Ok(())
}

pub(super) fn of_blocks(observed: &ServerObservation, model: &Model) -> Result<(), Refusal> {
    let blocks = &model.blocks;
    let cpus = mean(blocks, &|block| block.cpus);
    let is_seen = observed.windows.iter().all(|w| w.cpu.is_some_and(|cpu| cpu.server.is_some()));
    let server = match is_seen {
        true => mean(blocks, &|block| block.server),
        false => mean(blocks, &|block| block.busy),
    };
    let load = mean(blocks, &|block| block.load);
    let waiting = mean(blocks, &|block| block.waiting.iter().sum());
    let counted = &observed.counted;
    if load < 1.0 || (server < BUSY_MIN * cpus && waiting < WAITING_MIN) {
        return refuse(
            Reason::Idle,
            format!(
                "the server is idle: {} {counted}/s with {:.1} % of the CPUs; observe it while it \
                 uses more than {:.0} %",
                significant(load),
                100.0 * server / cpus,
                100.0 * BUSY_MIN
            ),
        );
    }
    let is_full =
        |window: &&super::Window| window.cpu.is_some_and(|cpu| cpu.busy >= SATURATED * cpu.cpus);
    let full = observed.windows.iter().filter(is_full).count() as f64;
    if full >= SATURATED_WINDOWS * observed.windows.len() as f64 {
        let others = (mean(blocks, &|block| block.busy) - server).max(0.0);
        let says = match others > server {
            true => format!(
                "other programs kept all CPUs busy, with {:.0} % of them: observe the server \
                 without those",
                100.0 * others / cpus
            ),
            false => format!(
                "all CPUs were busy throughout: {} {counted}/s is what it does then; observe it \
                 while it has less to do, to see how it got there",
                significant(load)
            ),
        };
        return refuse(Reason::Saturated, says);
    }
    let loads = model.loads();
    if loads.high < LOADS_MIN * loads.low {
        return refuse(
            Reason::Steady,
            format!(
                "the load was too steady to see what more of it costs, {} to {} {counted}/s: \
                 observe it while it rises or falls by a third at least, e.g. --for 1h",
                significant(loads.low),
                significant(loads.high)
            ),
        );
    }
    Ok(())
}

pub(super) fn of_capacity(
    observed: &ServerObservation,
    model: &Model,
    capacity: &Capacity,
) -> Result<(), Refusal> {
    // Of what was seen; unseen parts widen the answer later and are named in it.
    let seen = capacity.ceiling_interval;
    let ends = seen.high / seen.low.max(f64::MIN_POSITIVE);
    if capacity.ceiling_per_s.is_finite() && ends <= ENDS_MAX {
        return Ok(());
    }
    let counted = &observed.counted;
    let found = match seen.high.is_finite() {
        true => {
            let ends = [seen.low, seen.high].map(significant);
            format!("the ceiling is between {} and {} {counted}/s", ends[0], ends[1])
        }
        false => format!("the ceiling is above {} {counted}/s", significant(seen.low)),
    };
    // An interval becomes narrower as the root of the time.
    let longer = (ends.ln() / ENDS_MAX.ln()).powi(2) * capacity.seconds;
    let remedy = match longer.is_finite() && longer < 48.0 * 3600.0 {
        true => format!("about {} of such load would narrow it enough", duration(longer)),
        false => "more time of such load would not narrow it enough".to_owned(),
    };
    refuse(
        Reason::Unclear,
        format!(
            "{found}, which is too wide to be of use: {remedy}, less if the load varies more than \
             {} to {}/s{}",
            significant(capacity.loads_per_s.low),
            significant(capacity.loads_per_s.high),
            disturbance(observed, model)
        ),
    )
}

/// Other programs, where their use of the CPUs changes more than the server's.
fn disturbance(observed: &ServerObservation, model: &Model) -> String {
    let has_server = observed.windows.iter().any(|w| w.cpu.is_some_and(|cpu| cpu.server.is_some()));
    let of = |of: &dyn Fn(&super::Block) -> f64| model.blocks.iter().map(of).collect::<Vec<_>>();
    let others = of(&|block| (block.busy - block.server).max(0.0));
    let server = of(&|block| block.server);
    match (has_server, sd(&others), sd(&server)) {
        (true, Some(other), Some(own)) if other > own => format!(
            "; other programs used {:.1} to {:.1} CPUs, which disturbs it most",
            others.iter().copied().fold(f64::INFINITY, f64::min),
            others.iter().copied().fold(0.0, f64::max)
        ),
        _ => String::new(),
    }
}

impl Resource {
    /// In words, as the subject of a sentence.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpus => "its CPUs",
            Resource::Quota => "the CPU quota of its control group",
            Resource::Locks => "locks of rows and tables",
            Resource::Log => "the log of changes",
            Resource::Latches => "latches on its shared memory",
            Resource::Disk => "its data files",
        }
    }
}
