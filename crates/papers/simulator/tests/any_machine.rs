//! Any small machine on any operations: no panics, every tick is accounted for, and larger
//! structures never miss more.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use workahead_simulator::core::Processor;
use workahead_simulator::counts::Counts;
use workahead_simulator::hierarchy::{AccessCounts, AccessKind};
use workahead_simulator::op::{Dependence, Op};
use workahead_simulator::preset::{Preset, Protocol, Sharing};
use workahead_simulator::run::{Slices, Thread, run};
use workahead_simulator::ticks::Ticks;

/// One small CPU without overlap.
fn base() -> Preset {
    let mut preset: Preset = toml::from_str(include_str!("machine.toml")).unwrap();
    (preset.cores, preset.threads) = (1, 1);
    (preset.core.width, preset.core.window, preset.core.stores) = (2, 0, 0);
    let [first, instructions, second] = &mut preset.cache[..] else { panic!("three caches") };
    (first.bytes, first.ways, first.line) = (512, 2, 32);
    (instructions.bytes, instructions.line) = (512, 32);
    (second.bytes, second.ways, second.line) = (4096, 4, 64);
    preset.tlb.data.entries = 8;
    preset.memory.outstanding = 0;
    preset
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![Just(Sharing::Shared), Just(Sharing::Duplicated), Just(Sharing::Split)]
}

/// Machines of one to six CPUs; with and without overlap, predictor, prefetcher.
fn machines() -> impl Strategy<Value = Preset> {
    let cpus = (1_u32..4, 1_u32..3, 0_usize..3, any::<[bool; 5]>());
    let core = (
        prop_oneof![Just(0_u32), 1_u32..8, Just(64)],
        prop_oneof![Just(0_u32), 1_u32..8],
        1_u32..6,
        1_u32..5,
    );
    let shared = [sharing(), sharing(), sharing(), sharing()];
    let line = prop_oneof![Just(32_u32), Just(64), Just(128)];
    (cpus, core, shared, 0_u32..4, line).prop_map(|(cpus, core, shared, requests, line)| {
        let mut preset = base();
        let (cores, threads, protocol, [inclusive, drops, plain, alone, sets]) = cpus;
        (preset.cores, preset.threads) = (cores, threads);
        preset.memory.protocol = [Protocol::Mesi, Protocol::Msi][protocol % 2];
        (preset.cache[2].inclusive, preset.core.drops_hints) = (inclusive, drops);
        preset.cache[2].cores = if alone { 1 } else { cores };
        preset.cache[2].line = line;
        preset.memory.outstanding = requests;
        preset.tlb.data.ways = if sets { 4 } else { 0 };
        preset.cache[1].uops = if sets { 6 } else { 0 };
        preset.tlb.instructions_on_misses = sets;
        preset.core.loads = if sets { 3 } else { 0 };
        preset.core.walkers = u32::from(inclusive);
        preset.core.pause_drains = sets;
        preset.core.combining = if drops { 2 } else { 0 };
        preset.cache[0].write_through = drops;
        if plain {
            (preset.branches, preset.prefetcher, preset.tlb.instructions) = (None, None, None);
        }
        (preset.core.window, preset.core.stores, preset.core.outstanding, preset.core.width) = core;
        let [window, stores, first, tlb] = shared;
        (preset.core.window_sharing, preset.core.stores_sharing) = (window, stores);
        preset.core.combining_sharing = stores;
        (preset.cache[0].threads, preset.tlb.data.threads) = (first, tlb);
        preset
    })
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..256, 0_u64..16_384, 0_u64..1 << 20]
}

fn ops() -> impl Strategy<Value = Op> {
    let after =
        prop_oneof![Just(Dependence::None), Just(Dependence::Load), Just(Dependence::Announcement)];
    let bytes = prop_oneof![Just(0_u16), Just(8), 1_u16..400];
    prop_oneof![
        6 => (address(), bytes.clone(), after)
            .prop_map(|(address, bytes, after)| Op::Load { address, bytes, after }),
        3 => (address(), bytes.clone()).prop_map(|(address, bytes)| Op::Store { address, bytes }),
        1 => (1_u32..20).prop_map(|uops| Op::Compute { uops }),
        1 => (address(), any::<bool>()).prop_map(|(address, hint)| Op::Announce { address, hint }),
        1 => (address(), any::<bool>(), any::<bool>())
            .prop_map(|(at, taken, back)| Op::Branch { at, taken, back }),
        1 => (address(), bytes, 0_u16..2000)
            .prop_map(|(address, bytes, density)| Op::Fetch { address, bytes, density }),
        1 => (0_u32..30).prop_map(|cycles| Op::Pause { cycles }),
    ]
}

/// Counts of one CPU after all operations are done.
fn alone(preset: &Preset, ops: &[Op]) -> (Counts, AccessCounts) {
    let mut processor = Processor::new(preset).unwrap();
    ops.iter().for_each(|op| processor.run(0, *op));
    processor.drain(0);
    (processor.counts(0), processor.hierarchy.found[0])
}

/// Accesses that missed the caches up to a depth of the path.
fn missed(found: &AccessCounts, depth: usize) -> u64 {
    found.at.iter().flat_map(|at| &at[depth + 1..]).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Computation and stalls are all of a CPU's time.
    #[test]
    fn computation_and_stalls_are_all(
        preset in machines(),
        ops in proptest::collection::vec((0_usize..6, ops()), 0..300),
    ) {
        let mut processor = Processor::new(&preset).unwrap();
        let cpus = preset.cpus() as usize;
        for (cpu, op) in ops {
            processor.run(cpu % cpus, op);
        }
        for cpu in 0..cpus {
            processor.drain(cpu);
            let counts = processor.counts(cpu);
            let stalled: Ticks = counts.stalled.iter().sum();
            prop_assert_eq!(counts.computation + stalled, counts.ticks, "CPU {}", cpu);
        }
    }

    /// Threads in turn on fewer CPUs finish, and their counts add up.
    #[test]
    fn runs_end(
        preset in machines(),
        ops in proptest::collection::vec(proptest::collection::vec(ops(), 0..60), 1..5),
        quantum in 1_u32..2000,
    ) {
        let mut processor = Processor::new(&preset).unwrap();
        let places: Vec<usize> = (0..ops.len()).map(|at| at % preset.cpus() as usize).collect();
        let threads = ops.iter().zip(0..).map(|(ops, space)| {
            Thread { script: Box::new(ops.iter().copied()), space, attends: false }
        });
        let slices = Slices { quantum: quantum.into(), switch: 5.0 };
        let stop = AtomicBool::new(false);
        let ran = run(&mut processor, threads.collect(), &places, slices, &stop);
        let of = |counts: &Counts| [counts.uops, counts.loads, counts.stores, counts.computation];
        let sum = |all: Vec<[u64; 4]>| {
            all.into_iter().fold([0; 4], |sum, one| [0, 1, 2, 3].map(|at| sum[at] + one[at]))
        };
        let of_threads = sum(ran.threads.iter().map(|thread| of(&thread.counts)).collect());
        prop_assert_eq!(of_threads, sum(ran.cpus.iter().map(of).collect()));
    }

    /// Without window and store buffer nothing overlaps (A19).
    #[test]
    fn without_overlap_measured_is_non_overlapped(
        preset in machines(), ops in proptest::collection::vec(ops(), 0..300),
    ) {
        let mut preset = preset.without_siblings();
        (preset.core.window, preset.core.stores) = (0, 0);
        let (counts, _) = alone(&preset, &ops);
        prop_assert_eq!(counts.non_overlapped_cycles(), counts.cycles());
    }

    /// A window changes the times of misses, not their number.
    #[test]
    fn windows_change_no_misses(
        preset in machines(), ops in proptest::collection::vec(ops(), 0..300),
    ) {
        let mut preset = preset.without_siblings();
        let found = |window, preset: &mut Preset| {
            preset.core.window = window;
            let (counts, found) = alone(preset, &ops);
            (found, counts.data_tlb_misses, counts.mispredicts)
        };
        let without = found(0, &mut preset);
        for window in [1, 8, 64] {
            prop_assert_eq!(found(window, &mut preset), without);
        }
    }

    /// Of two caches with the same number of sets, the one with more ways has all lines of the
    /// other (Mattson et al. 1970): in the first level on any operations, in the second where the
    /// first is the same and nothing is prefetched; also in TLBs.
    #[test]
    fn more_ways_never_miss_more(ops in proptest::collection::vec(ops(), 0..600)) {
        let counted = |first: u32, second: u32, pages: u32| {
            let mut preset = base();
            preset.prefetcher = None;
            (preset.cache[0].bytes, preset.cache[0].ways) = (256 * u64::from(first), first);
            (preset.cache[2].bytes, preset.cache[2].ways) = (1024 * u64::from(second), second);
            preset.tlb.data.entries = pages;
            let (counts, found) = alone(&preset, &ops);
            (missed(&found, 0), missed(&found, 1), counts.data_tlb_misses)
        };
        let of_data = |(first, _, _): (u64, u64, u64)| first;
        for ways in 1..4 {
            prop_assert!(of_data(counted(ways + 1, 4, 8)) <= of_data(counted(ways, 4, 8)));
            let (smaller, larger) = (counted(2, ways, 8), counted(2, ways + 1, 8));
            prop_assert!(larger.1 <= smaller.1, "{smaller:?} {larger:?}");
            prop_assert!(counted(2, 4, 4 * ways + 4).2 <= counted(2, 4, 4 * ways).2);
        }
    }
}

/// Kinds are numbered in the order of the counts.
#[test]
fn kinds_are_places() {
    assert_eq!(AccessKind::ALL.map(|kind| kind as usize), [0, 1, 2]);
}
