//! The kernel's part: the scheduler attached for a run, or its counts alone.

use workahead_machine::Machine;
use workahead_scheduler::{
    Error, External, Observer, Roles, Scheduler, Stats, attachable, program,
};
use workahead_study::engine::{EngineError, Stop};

use super::{SchedulerChoice, Which};

/// The scheduler of a run, while it lasts.
pub(super) enum Attachment {
    Attached(Scheduler),
    External(Observer, External),
    Counted(Observer),
    /// The kernel's own scheduler, which can't be observed.
    Unseen,
}

fn failed(error: Error) -> EngineError {
    match error {
        Error::Stopped { .. } => EngineError::Stopped,
        error => EngineError::failed(error),
    }
}

/// Why it can't be attached.
pub(super) fn lacks(which: &Which) -> Option<String> {
    let found = match which {
        Which::Default => return None,
        Which::Itas => Ok(()),
        Which::External(words) => program(&words[0]).map(drop),
    };
    found.and_then(|()| attachable()).err().map(|error| error.to_string())
}

pub(super) fn begin(choice: &SchedulerChoice, stop: &Stop) -> Result<Attachment, EngineError> {
    let observe = || Observer::attach(choice.settings.key, &Roles::alone()).map_err(failed);
    match &choice.which {
        Which::Default if attachable().is_err() => return Ok(Attachment::Unseen),
        Which::Default => return observe().map(Attachment::Counted),
        Which::External(words) => {
            let observer = observe()?;
            let options: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let is_stopped = || stop.is_requested();
            let external =
                program(&words[0]).and_then(|path| External::start(&path, &options, &is_stopped));
            return Ok(Attachment::External(observer, external.map_err(failed)?));
        }
        Which::Itas => {}
    }
    let roles = match &choice.roles {
        Some(roles) => roles.clone(),
        None => Roles::whole_machine(&Machine::here()).map_err(failed)?,
    };
    Scheduler::attach(&choice.settings, &roles).map(Attachment::Attached).map_err(failed)
}

impl Attachment {
    /// The counts since it began.
    ///
    /// # Errors
    /// When the kernel took the tasks back in the middle of the run.
    pub(super) fn end(self) -> Result<Vec<(String, f64)>, EngineError> {
        match self {
            Self::Unseen => Ok(Vec::new()),
            Self::Counted(observer) => Ok(measures(&observer.stats().map_err(failed)?)),
            Self::External(observer, external) => {
                external.check().map_err(failed)?;
                let counted = observer.stats().map_err(failed)?;
                external.stop().map_err(failed)?;
                Ok(measures(&counted))
            }
            Self::Attached(scheduler) => {
                if let Some(ended) = scheduler.remote().ended().map_err(failed)? {
                    let (reason, message) = (ended.reason, ended.message);
                    return Err(failed(Error::TakenOver { reason, message }));
                }
                Ok(measures(&scheduler.remote().stats().map_err(failed)?))
            }
        }
    }
}

/// Measures of a run by name, those that were counted.
fn measures(stats: &Stats) -> Vec<(String, f64)> {
    let decided = |count: u64| (stats.decisions > 0).then_some(count);
    let count = |count| decided(count).map(|count| count as f64);
    let ms = |ns: u64| ns as f64 / 1e6;
    let said = [
        ("aggregations", count(stats.taken)),
        ("aggregation_chances", count(stats.chances)),
        ("aggregation_share", stats.taken_share()),
        ("group_switch_share", stats.same_share()),
        ("co_run_pair_share", stats.corun_share()),
        ("wakeup_p50_ms", stats.latency_ns_at(0.5).map(ms)),
        ("wakeup_p99_ms", stats.latency_ns_at(0.99).map(ms)),
        ("wakeup_p999_ms", stats.latency_ns_at(0.999).map(ms)),
        ("migrations", (stats.switches > 0).then_some(stats.migrations as f64)),
        ("run_delay_max_ms", (stats.switches > 0).then_some(stats.wait_max_ns).map(ms)),
    ];
    said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
