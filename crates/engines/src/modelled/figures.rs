//! What a workload's run is told in, by the names that counters have.
//!
//! Per instruction, never per second: what a counter would say of the same work. Two accounts of
//! lost cycles stand side by side: `…_stall_cpi`, what the machine waited for, and `…_penalty_cpi`,
//! what it would wait for if nothing overlapped (Hassanein et al. 2008, figure 7; Keeton et al.
//! 1998, figure 8).

use std::collections::BTreeMap;

use workahead_simulator::counts::{Cause, Counts};
use workahead_simulator::drivers::Driven;
use workahead_simulator::hierarchy::{Found, Kind};
use workahead_simulator::preset::{Holds, Preset};
use workahead_simulator::ticks::cycles;
use workahead_study::engine::{Answer, Sample};

/// What a run did, in the workload's own terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    /// Queries, transactions, passes: what the study counts.
    pub(super) tuples: u64,
    /// Instructions of all threads.
    pub(super) instructions: u64,
    /// What was found.
    pub(super) answer: Answer,
}

/// A run as a sample, with `more` measures of the workload's own.
pub(super) fn sample(
    preset: &Preset,
    driven: &Driven,
    done: Done,
    more: impl IntoIterator<Item = (String, f64)>,
) -> Sample {
    let seconds = |ticks| cycles(ticks) / (preset.ghz * 1e9);
    let busy = driven.ran.threads.iter().map(|(counts, _)| counts.ticks).sum();
    let mut measures = of(preset, driven, done);
    measures.extend(more);
    // Nothing is said of what did not happen.
    measures.retain(|_, value| value.is_finite());
    Sample {
        wall_s: seconds(driven.ran.ticks),
        cpu_s: Some(seconds(busy)),
        tuples: done.tuples,
        answer: done.answer,
        measures,
        ..Sample::default()
    }
}

fn of(preset: &Preset, driven: &Driven, done: Done) -> BTreeMap<String, f64> {
    let all = driven.ran.cpus.iter().fold(Counts::default(), |sum, counts| sum + *counts);
    let instructions = done.instructions as f64;
    let mut said = BTreeMap::new();
    let mut say = |name: &str, value: f64| {
        said.insert(name.to_owned(), value);
    };
    mix(&all, instructions, &mut say);
    misses(preset, &driven.found, instructions, &mut say);
    say("dtlb_mpki", 1e3 * all.data_tlb_misses as f64 / instructions);
    say("itlb_mpki", 1e3 * all.code_tlb_misses as f64 / instructions);
    say("branch_miss_ratio", ratio(all.mispredicts, all.branches));
    say("btb_miss_ratio", ratio(all.target_misses, all.branches));
    say("memory_order_clears_pki", 1e3 * all.clears as f64 / instructions);
    bus(driven, &mut say);
    states(&driven.found, &mut say);
    for (cause, names) in PARTS {
        let of = |part: &[u64]| cause.iter().map(|one| part[*one as usize]).sum::<u64>();
        say(names[0], cycles(of(&all.stalled)) / instructions);
        say(names[1], cycles(of(&all.penalty)) / instructions);
    }
    each_cpu(driven, instructions, done, &mut say);
    said
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Instructions, what they are, and the cycles of each.
fn mix(all: &Counts, instructions: f64, say: &mut impl FnMut(&str, f64)) {
    let of = |count: u64| count as f64 / instructions;
    let uops = all.uops as f64;
    say("instructions", instructions);
    say("uops_per_instruction", uops / instructions);
    say("load_share", of(all.loads));
    say("store_share", of(all.stores));
    say("branch_share", of(all.branches));
    say("other_share", 1.0 - of(all.loads + all.stores + all.branches));
    say("cpi", all.cycles() / instructions);
    say("ucpi", all.cycles() / uops);
    say("computation_cpi", cycles(all.computation) / instructions);
    say("computation_ucpi", cycles(all.computation) / uops);
    say("non_overlapped_cpi", all.non_overlapped_cycles() / instructions);
    say("overlap", all.cycles() / all.non_overlapped_cycles());
    let stalled =
        |causes: &[Cause]| -> u64 { causes.iter().map(|cause| all.stalled[*cause as usize]).sum() };
    let fetch = stalled(&[Cause::Code, Cause::CodeTlb, Cause::Branch]);
    let every = all.stalled.iter().sum::<u64>();
    say("instruction_stall_cpi", cycles(fetch) / instructions);
    say("resource_stall_cpi", cycles(every - fetch) / instructions);
}

/// Misses of each cache.
fn misses(preset: &Preset, found: &[Found], instructions: f64, say: &mut impl FnMut(&str, f64)) {
    let sum = |kinds: &[Kind], depth: usize| -> u64 {
        let one = |found: &Found| {
            kinds
                .iter()
                .map(|kind| found.at[*kind as usize][depth..].iter().sum::<u64>())
                .sum::<u64>()
        };
        found.iter().map(one).sum()
    };
    let data = [Kind::Load, Kind::Store];
    let mut say = |name: &str, kinds: &[Kind], depth: usize| {
        let (missed, asked) = (sum(kinds, depth + 1), sum(kinds, depth));
        say(&format!("{name}_mpki"), 1e3 * missed as f64 / instructions);
        say(&format!("{name}_miss_ratio"), ratio(missed, asked));
        say(&format!("{name}_apki"), 1e3 * asked as f64 / instructions);
    };
    say("l1d", &data, 0);
    say("l1d_load", &[Kind::Load], 0);
    say("l1i", &[Kind::Fetch], 0);
    let depths = preset.cache.iter().filter(|level| level.holds != Holds::Instructions).count();
    for depth in 1..depths {
        let name = format!("l{}", depth + 1);
        say(&name, &Kind::ALL, depth);
        say(&format!("{name}_load"), &[Kind::Load], depth);
        say(&format!("{name}_data"), &data, depth);
        say(&format!("{name}_code"), &[Kind::Fetch], depth);
    }
}

/// The way to memory.
fn bus(driven: &Driven, say: &mut impl FnMut(&str, f64)) {
    let bus = driven.bus;
    say("memory_latency_cycles", bus.memory_latency().unwrap_or(f64::NAN));
    say("memory_utilisation", bus.utilisation(driven.ran.ticks).unwrap_or(f64::NAN));
    say("dirty_miss_share", ratio(bus.dirty, bus.reads));
    say("bus_reads", bus.reads as f64);
    say("dirty_reads", bus.dirty as f64);
    say("upgrades", bus.upgrades as f64);
    say("upgrades_alone", bus.upgrades_alone as f64);
    say("writebacks", bus.writes as f64);
}

/// States of lines in the last cache before an access (Keeton et al. 1998, tables 9 and 18).
fn states(found: &[Found], say: &mut impl FnMut(&str, f64)) {
    for (kind, word) in [(Kind::Fetch, "fetch"), (Kind::Load, "load"), (Kind::Store, "store")] {
        let of = |state: usize| found.iter().map(|found| found.state[kind as usize][state]).sum();
        let all: u64 = (0..4).map(of).sum();
        for (state, letter) in "mesi".chars().enumerate() {
            say(&format!("state_{word}_{letter}"), ratio(of(state), all));
        }
    }
}

/// What each logical CPU did: its part of the instructions, and its stalls over its own and over
/// all instructions (S0.15: the paper doesn't say which it divides by).
fn each_cpu(driven: &Driven, all: f64, done: Done, say: &mut impl FnMut(&str, f64)) {
    let uops: u64 = driven.ran.cpus.iter().map(|counts| counts.uops).sum();
    for (cpu, counts) in driven.ran.cpus.iter().enumerate() {
        let share = ratio(counts.uops, uops);
        let own = share * done.instructions as f64;
        say(&format!("instructions_share_p{cpu}"), share);
        if counts.uops == 0 {
            continue;
        }
        for (causes, [_, name]) in PARTS {
            let part = causes.iter().map(|cause| counts.penalty[*cause as usize]).sum::<u64>();
            say(&format!("{name}_p{cpu}"), cycles(part) / own);
            say(&format!("{name}_p{cpu}_of_all"), cycles(part) / all);
        }
    }
}

/// Parts of the lost cycles: their causes, as waited for and as if nothing overlapped.
const PARTS: [(&[Cause], [&str; 2]); 9] = [
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
