//! The policy's search for bonus and limit, on the scheduler that runs.

use std::time::Duration;

use workahead_policy::{Outcome, Tuner};

use crate::error::Error;
use crate::live::Remote;
use crate::settings::{Bonus, Settings};
use crate::stats::Stats;

/// Of the wake-ups in a window, all but one in a hundred are to run within the delay allowed.
const DELAY_QUANTILE: f64 = 0.99;

/// Tries settings until the search is over, `window` each after as much time to settle, and leaves
/// the best one set. The objective is told what was counted in the window, and asks elsewhere for
/// what the scheduler doesn't know: transactions, instructions. Returns what is set, and what came
/// of it.
///
/// # Errors
///
/// Those of the scheduler and of the objective; what was set before is set again then.
pub fn tune<E: From<Error>>(
    remote: &Remote,
    tuner: &mut Tuner,
    window: Duration,
    objective: impl FnMut(&Stats) -> Result<f64, E>,
) -> Result<Option<(Settings, Outcome)>, E> {
    let before = remote.settings()?;
    let found = search(remote, tuner, window, &before, objective);
    match found {
        Ok(Some((settings, _))) => remote.set(&settings)?,
        Ok(None) | Err(_) => remote.set(&before)?,
    }
    found
}

fn search<E: From<Error>>(
    remote: &Remote,
    tuner: &mut Tuner,
    window: Duration,
    base: &Settings,
    mut objective: impl FnMut(&Stats) -> Result<f64, E>,
) -> Result<Option<(Settings, Outcome)>, E> {
    let with = |bonus_ns, limit| Settings { bonus: Bonus::Ns(bonus_ns), limit, ..*base };
    while let Some(proposal) = tuner.proposal() {
        remote.set(&with(proposal.bonus_ns, proposal.limit))?;
        std::thread::sleep(window);
        let start = remote.stats()?;
        std::thread::sleep(window);
        let counted = remote.stats()?.since(&start);
        let delay_ns = counted.latency_ns_at(DELAY_QUANTILE).unwrap_or(0);
        tuner.learn(Outcome { objective: objective(&counted)?, delay_ns });
    }
    Ok(tuner.best().map(|(best, outcome)| (with(best.bonus_ns, best.limit), outcome)))
}
