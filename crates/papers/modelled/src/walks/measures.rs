//! Measures of a modelled run, by the names of hardware counters.

use std::collections::BTreeSet;

use workahead_simulator::counts::{Cause, Counts};
use workahead_simulator::hierarchy::AccessKind;
use workahead_simulator::preset::Preset;
use workahead_simulator::ticks::cycles;
use workahead_simulator::walks::{Main, WalksResult};

use crate::cycles_lost::{self, depths};

/// Measures of a run over `probed` rows.
pub(super) fn of(
    preset: &Preset,
    mains: &[Main],
    walked: &WalksResult,
    probed: usize,
) -> Vec<(&'static str, f64)> {
    let tuples = probed.max(1) as f64;
    let (mut measures, did): (_, Vec<Counts>) = match walked.figures {
        None => (of_machine(preset, mains, walked, tuples), walked.run.cpus.clone()),
        // Counts of CPUs, caches and the bus include other tasks.
        Some(_) => {
            let threads = walked.run.threads.iter().take(count(mains));
            (Vec::new(), threads.map(|thread| thread.counts).collect())
        }
    };
    let sum = did.into_iter().fold(Counts::default(), |sum, counts| sum + counts);
    let each = |count: u64| count as f64 / tuples;
    let instructions = sum.uops as f64 / preset.core.uops_per_instruction;
    measures.extend([
        ("instructions_per_tuple", instructions / tuples),
        // All accesses that are translated; a dropped hint is not.
        ("data_accesses_per_tuple", each(sum.loads + sum.stores + sum.hints - sum.hints_dropped)),
        ("dtlb_misses_per_tuple", each(sum.data_tlb_misses)),
        ("memory_order_clears_per_tuple", each(sum.clears)),
        ("hints_dropped_per_tuple", each(sum.hints_dropped)),
        ("cycles_per_tuple", cycles(walked.run.ticks) / tuples),
        ("measured_over_non_overlapped", sum.cycles() / sum.non_overlapped_cycles()),
        ("computation_share", cycles(sum.computation) / sum.cycles()),
    ]);
    let has = |cause| !OF_CODE.contains(&cause) && (cause != Cause::Third || depths(preset) > 2);
    cycles_lost::cycles_lost(&sum, instructions, has, |name, value| measures.push((name, value)));
    if mains.iter().any(|main| main.helper.is_some()) {
        measures.push(("helper_entries", walked.helpers.entries as f64));
        measures.push(("helper_waits", walked.helpers.waits as f64));
    }
    // Ratios of events that did not happen are left out.
    measures.retain(|(_, value)| value.is_finite());
    measures
}

/// Number of main threads and helpers.
pub(super) fn count(mains: &[Main]) -> usize {
    mains.iter().map(|main| 1 + usize::from(main.helper.is_some())).sum()
}

/// Measures of parts of the machine.
fn of_machine(
    preset: &Preset,
    mains: &[Main],
    walked: &WalksResult,
    tuples: f64,
) -> Vec<(&'static str, f64)> {
    let mut measures = Vec::new();
    let main: BTreeSet<usize> = mains.iter().map(|main| main.cpu).collect();
    let helper: BTreeSet<usize> =
        mains.iter().filter_map(|main| main.helper.map(|helper| helper.cpu)).collect();
    let all: BTreeSet<usize> = main.union(&helper).copied().collect();
    // The counts of a CPU with both kinds of threads can't be attributed.
    let apart = main.is_disjoint(&helper) && !helper.is_empty();
    for (cpus, names) in [(&all, LOADS[0]), (&main, LOADS[1]), (&helper, LOADS[2])] {
        if !std::ptr::eq(cpus, &all) && !apart {
            continue;
        }
        for (depth, name) in (0..).zip(names) {
            let loads = cpus.iter().map(|cpu| missed(walked, *cpu, depth)).sum::<u64>();
            if depth <= depths(preset) {
                measures.push((name, loads as f64 / tuples));
            }
        }
    }
    let each = |count: u64| count as f64 / tuples;
    measures.extend([
        ("memory_latency_cycles", walked.bus.memory_latency().unwrap_or(f64::NAN)),
        ("bus_utilisation", walked.bus.utilisation(walked.run.ticks).unwrap_or(f64::NAN)),
        ("bus_reads_per_tuple", each(walked.bus.reads)),
        ("dirty_reads_per_tuple", each(walked.bus.dirty)),
        ("upgrades_per_tuple", each(walked.bus.upgrades)),
        ("invalidations_per_tuple", each(cycles_lost::invalidated(&walked.found))),
        ("writebacks_per_tuple", each(walked.bus.writes)),
    ]);
    cycles_lost::states(&walked.found, |name, value| measures.push((name, value)));
    measures
}

/// Loads that missed the first `depth` caches.
fn missed(walked: &WalksResult, cpu: usize, depth: usize) -> u64 {
    walked.found[cpu].at[AccessKind::Load as usize][depth..].iter().sum()
}

/// Loads of all threads, of main threads, of helpers; by caches that missed.
const LOADS: [[&str; 4]; 3] = [
    [
        "loads_per_tuple",
        "l1d_load_misses_per_tuple",
        "l2_load_misses_per_tuple",
        "l3_load_misses_per_tuple",
    ],
    [
        "loads_per_tuple_main",
        "l1d_load_misses_per_tuple_main",
        "l2_load_misses_per_tuple_main",
        "l3_load_misses_per_tuple_main",
    ],
    [
        "loads_per_tuple_helper",
        "l1d_load_misses_per_tuple_helper",
        "l2_load_misses_per_tuple_helper",
        "l3_load_misses_per_tuple_helper",
    ],
];

/// A walk's code and branches are not modelled.
const OF_CODE: [Cause; 3] = [Cause::Code, Cause::CodeTlb, Cause::Branch];
