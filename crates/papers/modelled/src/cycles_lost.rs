//! Measures shared by walks and whole workloads.
//!
//! Lost cycles are reported in two ways: `…_stall_cpi`, cycles that the machine waited, and
//! `…_penalty_cpi`, cycles that it would wait without overlap (Hassanein et al. 2008, figure 7;
//! Keeton et al. 1998, figure 8).

use workahead_simulator::counts::{Cause, Counts};
use workahead_simulator::hierarchy::{AccessCounts, AccessKind};
use workahead_simulator::preset::{Contents, Preset};
use workahead_simulator::ticks::cycles;

/// Parts of the lost cycles: their causes, and the names of both reports.
pub(super) const PARTS: [(&[Cause], [&str; 2]); 9] = [
    (&[Cause::Second], ["l1d_stall_cpi", "l1d_penalty_cpi"]),
    (&[Cause::Third, Cause::Memory], ["l2_stall_cpi", "l2_penalty_cpi"]),
    (&[Cause::Code], ["l1i_stall_cpi", "l1i_penalty_cpi"]),
    (&[Cause::CodeTlb], ["itlb_stall_cpi", "itlb_penalty_cpi"]),
    (&[Cause::DataTlb], ["dtlb_stall_cpi", "dtlb_penalty_cpi"]),
    (&[Cause::Branch], ["branch_stall_cpi", "branch_penalty_cpi"]),
    (&[Cause::Clear], ["clears_stall_cpi", "clears_penalty_cpi"]),
    (&[Cause::Stores, Cause::Outstanding], ["buffers_stall_cpi", "buffers_penalty_cpi"]),
    (&[Cause::Sibling, Cause::Pause], ["sibling_stall_cpi", "sibling_penalty_cpi"]),
];

/// Stalled shares of all cycles (LX.3).
const SHARES: [(Cause, &str); 12] = [
    (Cause::Second, "stalled_l2_share"),
    (Cause::Third, "stalled_l3_share"),
    (Cause::Memory, "stalled_memory_share"),
    (Cause::DataTlb, "stalled_dtlb_share"),
    (Cause::Code, "stalled_code_share"),
    (Cause::CodeTlb, "stalled_itlb_share"),
    (Cause::Branch, "stalled_branch_share"),
    (Cause::Clear, "stalled_clears_share"),
    (Cause::Stores, "stalled_stores_share"),
    (Cause::Outstanding, "stalled_outstanding_share"),
    (Cause::Sibling, "stalled_sibling_share"),
    (Cause::Pause, "stalled_spinning_share"),
];

/// States of lines in the last cache, by the access that found them.
const STATES: [(AccessKind, [&str; 4]); 3] = [
    (AccessKind::Fetch, ["state_fetch_m", "state_fetch_e", "state_fetch_s", "state_fetch_i"]),
    (AccessKind::Load, ["state_load_m", "state_load_e", "state_load_s", "state_load_i"]),
    (AccessKind::Store, ["state_store_m", "state_store_e", "state_store_s", "state_store_i"]),
];

/// Cycles per instruction: computation, and each cause for which `has` holds.
pub(crate) fn cycles_lost(
    all: &Counts,
    instructions: f64,
    has: impl Fn(Cause) -> bool,
    mut say: impl FnMut(&'static str, f64),
) {
    say("cpi", all.cycles() / instructions);
    say("computation_cpi", cycles(all.computation) / instructions);
    say("non_overlapped_cpi", all.non_overlapped_cycles() / instructions);
    for (causes, [waited, apart]) in PARTS {
        if causes.iter().any(|cause| has(*cause)) {
            say(waited, cycles(lost(causes, &all.stalled)) / instructions);
            say(apart, cycles(lost(causes, &all.penalty)) / instructions);
        }
    }
    for (cause, name) in SHARES {
        if has(cause) {
            say(name, cycles(all.stalled[cause as usize]) / all.cycles());
        }
    }
}

/// Sum over causes.
pub(super) fn lost(causes: &[Cause], by_cause: &[u64]) -> u64 {
    causes.iter().map(|cause| by_cause[*cause as usize]).sum()
}

/// States of lines in the last cache before an access (Keeton et al. 1998, tables 9 and 18), and
/// the number of logical CPUs. Kinds without accesses are left out.
pub(crate) fn states(found: &[AccessCounts], mut say: impl FnMut(&'static str, f64)) {
    say("modelled_cpus", found.len() as f64);
    for (kind, names) in STATES {
        let of =
            |state: usize| found.iter().map(|found| found.state[kind as usize][state]).sum::<u64>();
        let all: u64 = (0..4).map(of).sum();
        for (state, name) in names.into_iter().enumerate() {
            say(name, of(state) as f64 / all as f64);
        }
    }
}

/// Lines of other CPUs invalidated by stores.
pub(crate) fn invalidated(found: &[AccessCounts]) -> u64 {
    found.iter().map(|found| found.invalidated).sum()
}

/// Caches between a CPU's data and memory.
pub(crate) fn depths(preset: &Preset) -> usize {
    preset.cache.iter().filter(|level| level.holds != Contents::Instructions).count()
}
