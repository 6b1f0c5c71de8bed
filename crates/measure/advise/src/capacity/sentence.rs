//! The answer in words.

use super::{Capacity, CpuWindow, Resource, ServerObservation};
use crate::words::{duration, significant};

pub(super) fn of(capacity: &Capacity) -> String {
    let Capacity { busy, used, used_interval, counted, .. } = capacity;
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    let ceiling =
        [capacity.ceiling_per_s, capacity.ceiling_interval.low, capacity.ceiling_interval.high]
            .map(significant);
    let or: String = capacity.or.iter().map(|one| format!(" or {}", one.name())).collect();
    format!(
        "At {} % busy you use {} % ({} to {}) of what this server can do; the first thing to \
         saturate is {}{or}, at {} {counted}/s ({} to {}).",
        percent(*busy),
        percent(*used),
        percent(used_interval.low),
        percent(used_interval.high),
        capacity.first.name(),
        ceiling[0],
        ceiling[1],
        ceiling[2]
    )
}

pub(super) fn notes(capacity: &Capacity, observed: &ServerObservation) -> Vec<String> {
    let mut notes = vec![format!(
        "By the share of busy CPUs alone, as `top` shows it, {:.0} % would be used, and the \
         ceiling {} {}/s.",
        100.0 * capacity.busy,
        significant(capacity.naive_ceiling_per_s),
        capacity.counted
    )];
    for missing in &observed.missing {
        let so = if missing.hides_a_limit { "; a limit may be hidden there" } else { "" };
        notes.push(format!("Not seen: {}{so}.", missing.says));
    }
    if let Some(delayed) = mean(observed, &|cpu| cpu.delayed).filter(|delayed| *delayed >= 0.05) {
        notes.push(format!(
            "Of its threads {} waited for a CPU at a moment, in the mean.",
            significant(delayed)
        ));
    }
    if let Some(share) = mean(observed, &|cpu| cpu.io_pressure).filter(|share| *share >= 0.05) {
        notes.push(format!(
            "A task of this machine waited for I/O {:.0} % of the time.",
            100.0 * share
        ));
    }
    if capacity.first == Resource::Cpus || capacity.or.contains(&Resource::Cpus) {
        notes.push(
            "Queries wait for a CPU long before all are busy: latency sets a lower limit."
                .to_owned(),
        );
    }
    notes.push(format!(
        "Seen for {}, {} to {} {}/s; the intervals are those of 95 % for a load of the same kind.",
        duration(capacity.seconds),
        significant(capacity.loads_per_s.low),
        significant(capacity.loads_per_s.high),
        capacity.counted
    ));
    notes
}

/// The mean over time of what every window has.
fn mean(observed: &ServerObservation, of: &dyn Fn(CpuWindow) -> Option<f64>) -> Option<f64> {
    let each = observed.windows.iter().map(|window| Some(of(window.cpu?)? * window.seconds));
    let sum: f64 = each.sum::<Option<f64>>()?;
    Some(sum / observed.seconds())
}
