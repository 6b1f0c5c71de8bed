//! Counts stay the same, to the last tick, when the model is made faster.
//!
//! A change of the model's *meaning* changes the digests, and its commit says so. These are of
//! loads that are exposed until they retire, and of reservations that are all remembered.

use std::sync::atomic::AtomicBool;

use workahead_simulator::core::Processor;
use workahead_simulator::op::{Dependence, Op};
use workahead_simulator::preset::{Preset, Protocol, Sharing};
use workahead_simulator::run::{Slices, Thread, run};
use workahead_walks::random::Random;

/// Two cores of two threads with every part that can be modelled.
const ALL: &str = include_str!("machine.toml");

/// Some of every kind of operation, near and far, aligned and not.
fn ops(thread: u64, count: usize) -> impl Iterator<Item = Op> {
    let mut random = Random::of(40 + thread);
    (0..count).map(move |turn| {
        let span = [1 << 9, 1 << 12, 1 << 15, 1 << 19][random.below(4) as usize];
        let own = if random.below(2) == 0 { thread << 24 } else { 0 };
        let address = own + u64::from(random.below(span));
        let bytes = 1 << random.below(8);
        let after = [Dependence::None, Dependence::Load, Dependence::Announcement]
            [random.below(3) as usize];
        match random.below(16) {
            0 => Op::Compute { uops: 1 + random.below(9) },
            1 | 2 => Op::Store { address, bytes },
            3 => Op::Announce { address, hint: random.below(2) == 0 },
            4 => Op::Branch { at: address & !3, taken: random.below(3) > 0, back: turn % 2 == 0 },
            5 => Op::Fetch { address: address + (1 << 30), bytes, density: 512 },
            6 if random.below(8) == 0 => Op::Pause { cycles: 10 },
            7 => Op::Load { address: turn as u64 * 16, bytes: 16, after: Dependence::None },
            _ => Op::Load { address, bytes, after },
        }
    })
}

/// A digest of all counts of a run (FNV-1a over their text).
fn digest(edit: impl FnOnce(&mut Preset)) -> u64 {
    let mut preset: Preset = toml::from_str(ALL).unwrap();
    edit(&mut preset);
    let mut processor = Processor::new(&preset).unwrap();
    let cpus = preset.cpus() as usize;
    let threads = (0..cpus + 1).map(|thread| Thread {
        script: Box::new(ops(thread as u64, 20_000)),
        space: thread as u16 / 2,
        attends: false,
    });
    let places: Vec<usize> = (0..cpus + 1).map(|thread| thread % cpus).collect();
    let slices = Slices { quantum: 5000.0, switch: 100.0 };
    let run = run(&mut processor, threads.collect(), &places, slices, &AtomicBool::new(false));
    let hierarchy = &processor.hierarchy;
    // The text of the types when the digests were recorded.
    let threads: Vec<_> = run.threads.iter().map(|one| (one.counts, one.finished)).collect();
    let run = format!("Ran {{ cpus: {:?}, threads: {threads:?}, ticks: {} }}", run.cpus, run.ticks);
    let found = format!("{:?}", hierarchy.found).replace("AccessCounts", "Found");
    let text = without_slots(&format!("{run} {found} {:?}", hierarchy.bus.counts));
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The text without counts of cycles in which operations begin and retire, which are younger.
fn without_slots(text: &str) -> String {
    let mut parts = text.split("begun_cycles: ");
    let first = parts.next().unwrap_or_default().to_owned();
    let after = |part: &str| part.split_once("], ").map(|(_, rest)| rest.to_owned()).unwrap();
    parts.map(after).fold(first, |text, part| text + &part)
}

#[test]
fn counts_match_the_recorded_digests() {
    let all = [
        digest(|_| {}),
        digest(|preset| preset.core.window = 0),
        digest(|preset| (preset.core.window, preset.core.stores) = (0, 0)),
        digest(|preset| preset.memory.protocol = Protocol::Msi),
        digest(|preset| (preset.cores, preset.threads) = (4, 1)),
        digest(|preset| preset.cache[2].cores = 2),
        digest(|preset| preset.cache[2].inclusive = true),
        digest(|preset| preset.cache[0].threads = Sharing::Split),
        digest(|preset| preset.tlb.data.ways = 4),
        digest(|preset| preset.core.window_sharing = Sharing::Split),
        digest(|preset| preset.core.drops_hints = true),
        digest(|preset| preset.prefetcher = None),
    ];
    let written = [
        0x097c_ab75_68c4_20f9,
        0xe270_215c_2f0a_a58e,
        0x1937_5e9f_bf65_76ff,
        0xdd90_0a66_21e0_5262,
        0x2096_0520_9896_1ad2,
        0xeded_c73c_13c1_04da,
        0xeecb_5d0a_ac1e_1d27,
        0xbe2e_70e7_1d4a_c57c,
        0x94d9_becd_d011_9af9,
        0x8e56_99da_1c1e_89bb,
        0x1353_b55e_10e7_935e,
        0xe6cb_3669_b6d0_dc95,
    ];
    assert_eq!(all, written, "{all:#x?}");
}
