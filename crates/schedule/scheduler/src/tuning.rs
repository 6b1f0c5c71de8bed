//! The policy's search for bonus and limit, on the scheduler that runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use workahead_policy::{Outcome, Tuner};

use crate::error::Error;
use crate::live::Remote;
use crate::settings::{Bonus, Settings};

/// Of the wake-ups in a window, all but one in a hundred are to run within the delay allowed.
const DELAY_QUANTILE: f64 = 0.99;

/// The objective.
pub enum Objective<'a, E> {
    /// The share of switches within aggregation groups, which the scheduler counts itself.
    GroupSwitches,
    /// How fast a number grows that somebody else counts: transactions, instructions.
    Growth(&'a mut dyn FnMut() -> Result<f64, E>),
}

impl<E> Objective<'_, E> {
    fn reading(&mut self) -> Result<f64, E> {
        match self {
            Self::GroupSwitches => Ok(0.0),
            Self::Growth(count) => count(),
        }
    }
}

/// Tries settings until the search is over, `window` each after as much time to settle, and leaves
/// the best one set. Returns what is set, and what came of it; growth is per second.
///
/// # Errors
///
/// Those of the scheduler and of the objective, and [`Error::Interrupted`] when `stop` is set; the
/// earlier settings are restored then.
pub fn tune<E: From<Error>>(
    remote: &Remote,
    tuner: &mut Tuner,
    window: Duration,
    mut objective: Objective<'_, E>,
    stop: &AtomicBool,
) -> Result<Option<(Settings, Outcome)>, E> {
    let wait = || wait(window, stop);
    let before = remote.settings()?;
    let with = |bonus_ns, limit| Settings { bonus: Bonus::Ns(bonus_ns), limit, ..before };
    while let Some(proposal) = tuner.proposal() {
        let trial = with(proposal.bonus_ns, proposal.limit);
        match outcome(remote, &trial, &wait, &mut objective) {
            Ok(outcome) => tuner.learn(outcome),
            Err(error) => {
                remote.set(&before)?;
                return Err(error);
            }
        }
    }
    let found = tuner.best().map(|(best, outcome)| (with(best.bonus_ns, best.limit), outcome));
    remote.set(found.as_ref().map_or(&before, |(best, _)| best))?;
    Ok(found)
}

fn outcome<E: From<Error>>(
    remote: &Remote,
    trial: &Settings,
    wait: &dyn Fn() -> Result<(), Error>,
    objective: &mut Objective<'_, E>,
) -> Result<Outcome, E> {
    remote.set(trial)?;
    wait()?;
    let (clock, counted, reading) = (Instant::now(), remote.stats()?, objective.reading()?);
    wait()?;
    let (counted, grown) = (remote.stats()?.since(&counted), objective.reading()? - reading);
    let objective = match objective {
        Objective::GroupSwitches => counted.same_share().unwrap_or(0.0),
        Objective::Growth(_) => grown / clock.elapsed().as_secs_f64(),
    };
    Ok(Outcome { objective, delay_ns: counted.latency_ns_at(DELAY_QUANTILE).unwrap_or(0) })
}

fn wait(window: Duration, stop: &AtomicBool) -> Result<(), Error> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let end = Instant::now() + window;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return Ok(()),
            left => std::thread::sleep(left.min(LOOK_EVERY)),
        }
    }
}
