//! What a modelled run is told in, by the names that counters have.

use std::collections::BTreeSet;

use workahead_simulator::counts::{Cause, Counts};
use workahead_simulator::hierarchy::Kind;
use workahead_simulator::preset::Preset;
use workahead_simulator::ticks::cycles;
use workahead_simulator::walks::{Main, Walked};

use crate::cycles_lost::{self, depths};

/// Measures of a run that probed so many rows.
pub(super) fn of(
    preset: &Preset,
    mains: &[Main],
    walked: &Walked,
    probed: usize,
) -> Vec<(&'static str, f64)> {
    let tuples = probed.max(1) as f64;
    let (mut said, did): (_, Vec<Counts>) = match walked.figures {
        None => (of_machine(preset, mains, walked, tuples), walked.ran.cpus.clone()),
        // What a CPU, a cache or the bus did was for others, too.
        Some(_) => {
            let threads = walked.ran.threads.iter().take(count(mains));
            (Vec::new(), threads.map(|(counts, _)| *counts).collect())
        }
    };
    let sum = did.into_iter().fold(Counts::default(), |sum, counts| sum + counts);
    let each = |count: u64| count as f64 / tuples;
    let instructions = sum.uops as f64 / preset.core.uops_per_instruction;
    said.extend([
        ("instructions_per_tuple", instructions / tuples),
        // What asks for a translation; a hint that is dropped does not get that far.
        ("data_accesses_per_tuple", each(sum.loads + sum.stores + sum.hints - sum.hints_dropped)),
        ("dtlb_misses_per_tuple", each(sum.data_tlb_misses)),
        ("memory_order_clears_per_tuple", each(sum.clears)),
        ("hints_dropped_per_tuple", each(sum.hints_dropped)),
        ("cycles_per_tuple", cycles(walked.ran.ticks) / tuples),
        ("measured_over_non_overlapped", sum.cycles() / sum.non_overlapped_cycles()),
        ("computation_share", cycles(sum.computation) / sum.cycles()),
    ]);
    let has = |cause| !OF_CODE.contains(&cause) && (cause != Cause::Third || depths(preset) > 2);
    cycles_lost::cycles_lost(&sum, instructions, has, |name, value| said.push((name, value)));
    if mains.iter().any(|main| main.helper.is_some()) {
        said.push(("helper_entries", walked.helped.0 as f64));
        said.push(("helper_waits", walked.helped.1 as f64));
    }
    // Nothing is said of what did not happen.
    said.retain(|(_, value)| value.is_finite());
    said
}

/// Main threads and what helps them.
pub(super) fn count(mains: &[Main]) -> usize {
    mains.iter().map(|main| 1 + usize::from(main.helper.is_some())).sum()
}

/// What is told of parts of the machine, not of threads.
fn of_machine(
    preset: &Preset,
    mains: &[Main],
    walked: &Walked,
    tuples: f64,
) -> Vec<(&'static str, f64)> {
    let mut said = Vec::new();
    let main: BTreeSet<usize> = mains.iter().map(|main| main.cpu).collect();
    let helper: BTreeSet<usize> =
        mains.iter().filter_map(|main| main.helper.map(|(cpu, _)| cpu)).collect();
    let all: BTreeSet<usize> = main.union(&helper).copied().collect();
    // A CPU that has both kinds of threads tells nothing of either.
    let apart = main.is_disjoint(&helper) && !helper.is_empty();
    for (cpus, names) in [(&all, LOADS[0]), (&main, LOADS[1]), (&helper, LOADS[2])] {
        if !std::ptr::eq(cpus, &all) && !apart {
            continue;
        }
        for (depth, name) in (0..).zip(names) {
            let loads = cpus.iter().map(|cpu| missed(walked, *cpu, depth)).sum::<u64>();
            if depth <= depths(preset) {
                said.push((name, loads as f64 / tuples));
            }
        }
    }
    let each = |count: u64| count as f64 / tuples;
    said.extend([
        ("memory_latency_cycles", walked.bus.memory_latency().unwrap_or(f64::NAN)),
        ("bus_utilisation", walked.bus.utilisation(walked.ran.ticks).unwrap_or(f64::NAN)),
        ("bus_reads_per_tuple", each(walked.bus.reads)),
        ("dirty_reads_per_tuple", each(walked.bus.dirty)),
        ("upgrades_per_tuple", each(walked.bus.upgrades)),
        ("invalidations_per_tuple", each(cycles_lost::invalidated(&walked.found))),
        ("writebacks_per_tuple", each(walked.bus.writes)),
    ]);
    cycles_lost::states(&walked.found, |name, value| said.push((name, value)));
    said
}

/// Loads that so many caches did not have.
fn missed(walked: &Walked, cpu: usize, depth: usize) -> u64 {
    walked.found[cpu].at[Kind::Load as usize][depth..].iter().sum()
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
