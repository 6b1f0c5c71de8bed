//! The machine, as far as a study's record and verdicts need it; the flag that Ctrl-C raises.

use anyhow::Context;
use workahead_machine::limits::Limits;
use workahead_machine::limits::siblings::Seen;
use workahead_machine::{EvidenceTier, Machine};
use workahead_study::engine::Stop;
use workahead_study::record::Host;
use workahead_study::watch::Watch;

use crate::counting::{self, Tried};
use crate::interrupt;

/// What this machine is to a run that watches so much of it; `tier` is the engine's own, where it
/// has one.
pub(crate) fn host(
    machine: &Machine,
    watch: &Watch,
    tier: Option<(EvidenceTier, String)>,
) -> anyhow::Result<Host> {
    let (counters, tier, tier_reason) = match tier {
        // What counts is no part of the machine.
        Some((tier, reason)) => (false, tier, reason),
        None => of_machine(machine, watch),
    };
    let processor = machine.processor.as_deref().unwrap_or("unknown processor");
    let cpus = machine.allowed_cpus().len();
    let computed = if tier == EvidenceTier::E { "computed on " } else { "" };
    Ok(Host {
        name: format!("{computed}{processor}, {cpus} CPU{}", if cpus == 1 { "" } else { "s" }),
        fingerprint: machine.fingerprint(),
        tier: format!("{tier:?}"),
        tier_reason,
        siblings: has_siblings(machine, None),
        counters,
        description: serde_json::to_value(machine).context("can't describe the machine as JSON")?,
    })
}

/// Whether a run reads counters, how much it can prove then, and why no more.
fn of_machine(machine: &Machine, watch: &Watch) -> (bool, EvidenceTier, String) {
    match (watch.counters.is_empty(), counting::tried(machine)) {
        // Time is tier C at best, however much more the machine could tell.
        (true, _) if machine.counters.tier < EvidenceTier::C => {
            let reason = "this study takes times only and reads no counters".to_owned();
            (false, EvidenceTier::C, reason)
        }
        (true, _) => (false, machine.counters.tier, machine.counters.reason.clone()),
        (false, Tried { tier, reason }) => (tier < EvidenceTier::C, tier, reason),
    }
}

/// Whether two of its CPUs share a core: as the probe of its limits saw them, where there are some.
pub(crate) fn has_siblings(machine: &Machine, limits: Option<&Limits>) -> bool {
    Seen::of(machine, limits.map(|limits| &limits.siblings)).cpus.is_some()
}

/// Memory that may be used now; no limit that we know of on a machine that hides it.
pub(crate) fn available_bytes(machine: &Machine) -> u64 {
    machine.memory.allowed_bytes.unwrap_or(u64::MAX)
}

/// The flag that Ctrl-C raises.
pub(crate) fn stop() -> anyhow::Result<Stop> {
    interrupt::listen().map(Stop::from)
}
