//! A22, A24, A45: the quad Pentium Pro's bus under one, two and four CPUs and three sizes of L2.

use super::*;
use crate::bus::BusCounts;
use crate::preset::Preset;

/// Each CPU reads lines of its own footprint at random, with some work between; counts of the bus
/// and ticks of the last reads.
fn measured(variant: &str, footprint: u64) -> (BusCounts, Ticks) {
    let preset = Preset::named(&format!("ppro-quad/{variant}")).unwrap();
    let mut processor = Processor::new(&preset).unwrap();
    let cpus: Vec<usize> = (0..preset.cpus() as usize).collect();
    let mut reads = |rounds: u64| {
        let script = |cpu: usize| {
            let base = (cpu as u64) << 32;
            (0..rounds).flat_map(move |round| {
                // Each CPU at its own pace: in step, they would never meet on the bus.
                let random = mixed(round + base);
                let (line, uops) = (random & 0xFFFF_FFFF, 200 + (random >> 57) as u32);
                let address = base + line % (footprint / 32) * 32;
                let load = Op::Load { address, bytes: 4, after: Dependence::Load };
                [load, Op::Compute { uops }]
            })
        };
        let one = |cpu| Thread { script: Box::new(script(cpu)), space: 0, attends: false };
        let threads = cpus.iter().map(|cpu| one(*cpu)).collect();
        to_end(&mut processor, threads, &cpus, Slices::default()).ticks
    };
    let before = reads(60_000);
    let after = reads(80_000);
    (processor.hierarchy.bus.counts, after.max(before))
}

/// SplitMix64's output function (Steele, Lea and Flood 2014).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

const SIZES: [&str; 3] = ["256k", "512k", "1m"];
const CPUS: [&str; 3] = ["1p", "2p", "4p"];

/// Table 6: utilisation rises with CPUs and falls with the size of L2.
#[test]
fn utilisation_rises_with_cpus_and_falls_with_l2() {
    let used = CPUS.map(|cpus| {
        SIZES.map(|size| {
            let (bus, ticks) = measured(&format!("{cpus}-{size}"), 1280 << 10);
            bus.utilisation(ticks).unwrap()
        })
    });
    for size in 0..3 {
        assert!(used[0][size] < used[1][size] && used[1][size] < used[2][size], "{used:?}");
    }
    for by_size in used {
        assert!(by_size[0] > by_size[1] && by_size[1] > by_size[2], "{used:?}");
        assert!(by_size[0] <= 1.0, "{used:?}");
    }
}

/// Table 7: latency rises with CPUs; alone, a CPU that follows its pointers sees lmbench's 38
/// cycles.
#[test]
fn latency_rises_with_cpus() {
    let latencies = CPUS.map(|cpus| {
        let (bus, _) = measured(&format!("{cpus}-256k"), 64 << 20);
        bus.memory_latency().unwrap()
    });
    assert_eq!(latencies[0], 38.0);
    assert!(latencies[1] > 39.0 && latencies[2] > latencies[1] + 2.0, "{latencies:?}");
}
