//! Measures of a workload's run, by the names of hardware counters.
//!
//! Per instruction, never per second, as counters would report.

use std::collections::BTreeMap;

use workahead_simulator::counts::{Cause, Counts};
use workahead_simulator::drivers::ProgramResult;
use workahead_simulator::hierarchy::{AccessCounts, AccessKind};
use workahead_simulator::preset::Preset;
use workahead_simulator::ticks::cycles;
use workahead_study::engine::{Answer, Sample};

use crate::cycles_lost::{self, PARTS, lost};

/// Work of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunWork {
    /// Queries, transactions or passes, as the study counts.
    pub(super) tuples: u64,
    /// Instructions of all threads.
    pub(super) instructions: u64,
    /// Its answer.
    pub(super) answer: Answer,
}

/// A run as a sample, with `more` measures of the workload's own.
pub(super) fn sample(
    preset: &Preset,
    driven: &ProgramResult,
    done: RunWork,
    more: impl IntoIterator<Item = (String, f64)>,
) -> Sample {
    let seconds = |ticks| cycles(ticks) / (preset.ghz * 1e9);
    let busy = driven.run.threads.iter().map(|thread| thread.counts.ticks).sum();
    let mut measures = of(preset, driven, done);
    measures.extend(more);
    // Ratios of events that did not happen are left out.
    measures.retain(|_, value| value.is_finite());
    Sample {
        wall_s: seconds(driven.run.ticks),
        cpu_s: Some(seconds(busy)),
        tuples: done.tuples,
        answer: done.answer,
        measures,
        ..Sample::default()
    }
}

fn of(preset: &Preset, driven: &ProgramResult, done: RunWork) -> BTreeMap<String, f64> {
    let all = driven.run.cpus.iter().fold(Counts::default(), |sum, counts| sum + *counts);
    let instructions = done.instructions as f64;
    let mut said = BTreeMap::new();
    let mut say = |name: &str, value: f64| {
        said.insert(name.to_owned(), value);
    };
    mix(&all, instructions, &mut say);
    idle(&all, instructions, &mut say);
    cycles_lost::cycles_lost(&all, instructions, |_| true, &mut say);
    misses(preset, &driven.found, instructions, &mut say);
    say("dtlb_mpki", 1e3 * all.data_tlb_misses as f64 / instructions);
    say("itlb_mpki", 1e3 * all.code_tlb_misses as f64 / instructions);
    say("branch_miss_ratio", ratio(all.mispredicts, all.branches));
    say("btb_miss_ratio", ratio(all.target_misses, all.branches));
    say("memory_order_clears_pki", 1e3 * all.clears as f64 / instructions);
    bus(driven, &mut say);
    say("invalidations", cycles_lost::invalidated(&driven.found) as f64);
    cycles_lost::states(&driven.found, &mut say);
    each_cpu(driven, instructions, done, &mut say);
    said
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// The mix of instructions, and their cycles.
fn mix(all: &Counts, instructions: f64, say: &mut impl FnMut(&str, f64)) {
    let of = |count: u64| count as f64 / instructions;
    let uops = all.uops as f64;
    say("instructions", instructions);
    say("uops_per_instruction", uops / instructions);
    say("load_share", of(all.loads));
    say("store_share", of(all.stores));
    say("branch_share", of(all.branches));
    say("other_share", 1.0 - of(all.loads + all.stores + all.branches));
    say("ucpi", all.cycles() / uops);
    say("computation_ucpi", cycles(all.computation) / uops);
    say("overlap", all.cycles() / all.non_overlapped_cycles());
    let fetch = lost(&[Cause::Code, Cause::CodeTlb, Cause::Branch], &all.stalled);
    let every = all.stalled.iter().sum::<u64>();
    say("instruction_stall_cpi", cycles(fetch) / instructions);
    say("resource_stall_cpi", cycles(every - fetch) / instructions);
}

/// Shares of the cycles in which nothing begins or retires (Keeton et al. 1998, figure 6). An
/// instruction retires with the last of its micro-operations.
fn idle(all: &Counts, instructions: f64, say: &mut impl FnMut(&str, f64)) {
    let cycles = all.cycles();
    say("decode_idle_share", 1.0 - all.begun_cycles as f64 / cycles);
    let of_instruction = all.uops as f64 / instructions;
    let [mut uops, mut whole] = [0.0; 2];
    for (count, retired) in (1..).map(f64::from).zip(all.retired_cycles) {
        uops += retired as f64;
        whole += retired as f64 * (count / of_instruction).min(1.0);
    }
    say("uop_retire_idle_share", 1.0 - uops / cycles);
    say("retire_idle_share", 1.0 - whole / cycles);
}

/// Misses of each cache.
fn misses(
    preset: &Preset,
    found: &[AccessCounts],
    instructions: f64,
    say: &mut impl FnMut(&str, f64),
) {
    let sum = |kinds: &[AccessKind], depth: usize| -> u64 {
        let one = |found: &AccessCounts| {
            kinds
                .iter()
                .map(|kind| found.at[*kind as usize][depth..].iter().sum::<u64>())
                .sum::<u64>()
        };
        found.iter().map(one).sum()
    };
    let data = [AccessKind::Load, AccessKind::Store];
    let mut say = |name: &str, kinds: &[AccessKind], depth: usize| {
        let (missed, accesses) = (sum(kinds, depth + 1), sum(kinds, depth));
        say(&format!("{name}_mpki"), 1e3 * missed as f64 / instructions);
        say(&format!("{name}_miss_ratio"), ratio(missed, accesses));
        say(&format!("{name}_apki"), 1e3 * accesses as f64 / instructions);
    };
    say("l1d", &data, 0);
    say("l1d_load", &[AccessKind::Load], 0);
    say("l1i", &[AccessKind::Fetch], 0);
    for depth in 1..cycles_lost::depths(preset) {
        let name = format!("l{}", depth + 1);
        say(&name, &AccessKind::ALL, depth);
        say(&format!("{name}_load"), &[AccessKind::Load], depth);
        say(&format!("{name}_data"), &data, depth);
        say(&format!("{name}_code"), &[AccessKind::Fetch], depth);
    }
}

/// The memory bus.
fn bus(driven: &ProgramResult, say: &mut impl FnMut(&str, f64)) {
    let bus = driven.bus;
    say("memory_latency_cycles", bus.memory_latency().unwrap_or(f64::NAN));
    say("memory_utilisation", bus.utilisation(driven.run.ticks).unwrap_or(f64::NAN));
    say("dirty_miss_share", ratio(bus.dirty, bus.reads));
    say("bus_reads", bus.reads as f64);
    say("dirty_reads", bus.dirty as f64);
    say("upgrades", bus.upgrades as f64);
    say("upgrades_alone", bus.upgrades_alone as f64);
    say("writebacks", bus.writes as f64);
}

/// Each logical CPU's share of the instructions, and its stalls per own and per all instructions
/// (S0.15: the paper doesn't say which it divides by).
fn each_cpu(driven: &ProgramResult, all: f64, done: RunWork, say: &mut impl FnMut(&str, f64)) {
    let uops: u64 = driven.run.cpus.iter().map(|counts| counts.uops).sum();
    for (cpu, counts) in driven.run.cpus.iter().enumerate() {
        let share = ratio(counts.uops, uops);
        let own = share * done.instructions as f64;
        say(&format!("instructions_share_p{cpu}"), share);
        if counts.uops == 0 {
            continue;
        }
        for (name, missed) in missed(&driven.found[cpu], counts) {
            say(&format!("{name}_p{cpu}"), 1e3 * missed as f64 / own);
        }
        for (causes, [_, name]) in PARTS {
            let part = lost(causes, &counts.penalty);
            say(&format!("{name}_p{cpu}"), cycles(part) / own);
            say(&format!("{name}_p{cpu}_of_all"), cycles(part) / all);
        }
    }
}

/// Misses of one CPU, by the names of the totals.
fn missed(found: &AccessCounts, counts: &Counts) -> [(&'static str, u64); 5] {
    let beyond = |kinds: &[AccessKind], depth: usize| -> u64 {
        kinds.iter().flat_map(|kind| &found.at[*kind as usize][depth..]).sum()
    };
    [
        ("l1d_mpki", beyond(&[AccessKind::Load, AccessKind::Store], 1)),
        ("l1i_mpki", beyond(&[AccessKind::Fetch], 1)),
        ("l2_mpki", beyond(&AccessKind::ALL, 2)),
        ("dtlb_mpki", counts.data_tlb_misses),
        ("itlb_mpki", counts.code_tlb_misses),
    ]
}
