//! The machine, as far as a run's record and its verdicts need it.

use workahead_counters::evidence::Evidence;
use workahead_machine::limits::Limits;
use workahead_machine::limits::siblings::SiblingPair;
use workahead_machine::topology::Core;
use workahead_machine::{EvidenceTier, Machine};

use crate::collection::CollectionOptions;
use crate::record::Host;

/// This machine, for a run with these options; `tier` is the engine's own, where it has one.
#[must_use]
pub fn of(
    machine: &Machine,
    collection: &CollectionOptions,
    tier: Option<(EvidenceTier, String)>,
) -> Host {
    let (counters, tier, tier_reason) = match tier {
        // The counting model is not a part of the machine.
        Some((tier, reason)) => (false, tier, reason),
        None => of_machine(machine, collection),
    };
    let processor = machine.processor.as_deref().unwrap_or("unknown processor");
    let cpus = machine.allowed_cpus().len();
    let computed = if tier == EvidenceTier::E { "computed on " } else { "" };
    Host {
        name: format!("{computed}{processor}, {cpus} CPU{}", if cpus == 1 { "" } else { "s" }),
        fingerprint: machine.fingerprint(),
        tier: format!("{tier:?}"),
        tier_reason,
        siblings: has_siblings(machine, None),
        counters,
        cores: cores(machine),
        description: serde_json::to_value(machine).expect("a machine has only text keys"),
    }
}

/// Whether a run reads counters, its evidence tier, and the reason for it.
fn of_machine(machine: &Machine, collection: &CollectionOptions) -> (bool, EvidenceTier, String) {
    match (collection.counters.is_empty(), Evidence::by_trial(machine)) {
        // Time is tier C at best, however much more the machine could tell.
        (true, _) if machine.counters.tier < EvidenceTier::C => {
            let reason = "this study takes times only and reads no counters".to_owned();
            (false, EvidenceTier::C, reason)
        }
        (true, _) => (false, machine.counters.tier, machine.counters.reason.clone()),
        (false, Evidence { tier, reason }) => (tier < EvidenceTier::C, tier, reason),
    }
}

/// Cores of the CPUs that it may use; each CPU counts where the system tells of no cores.
pub(crate) fn cores(machine: &Machine) -> usize {
    let cpus = machine.allowed_cpus();
    let is_usable = |core: &&Core| !core.cpus.intersection(cpus).is_empty();
    match machine.cores.is_empty() {
        true => cpus.len(),
        false => machine.cores.iter().filter(is_usable).count(),
    }
}

/// Whether two of its CPUs share a core: as the probe of its limits saw them, where there are some.
#[must_use]
pub fn has_siblings(machine: &Machine, limits: Option<&Limits>) -> bool {
    SiblingPair::of(machine, limits.map(|limits| &limits.siblings)).cpus.is_some()
}

/// Memory that may be used now; no known limit on a machine that hides it.
#[must_use]
pub fn available_bytes(machine: &Machine) -> u64 {
    machine.memory.allowed_bytes.unwrap_or(u64::MAX)
}
