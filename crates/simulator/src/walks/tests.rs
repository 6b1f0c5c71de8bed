//! Walks give the same answers modelled as natively, and the same counts every time.

use std::sync::Mutex;

use workahead_machine::pages::{PageBuffer, Pages as PageSize};
use workahead_operators::chained::{Chains, HashJoin};
use workahead_operators::record::{OneLine, Record, Unclustered};
use workahead_operators::technique::{self, Technique};
use workahead_operators::walk::{Row, Rows, Sink};

use super::*;
use crate::counts::Cause;
use crate::preset::tests::small;

/// One core of two threads with the latencies of the Pentium 4 of Zhou et al. (2005), and caches
/// that small data does not fit.
fn pentium() -> Preset {
    let mut preset = small();
    (preset.cores, preset.threads) = (1, 2);
    (preset.core.width, preset.core.window, preset.core.stores) = (3, 126, 24);
    let [l1, l1i, l2] = &mut preset.cache[..] else { panic!("three caches") };
    (l1.bytes, l1.ways, l1.latency) = (8192, 4, 4.0);
    l1i.bytes = 8192;
    (l2.bytes, l2.ways, l2.line, l2.latency) = (65536, 8, 128, 22.0);
    preset.tlb.data.cost = 53.0;
    (preset.memory.latency, preset.memory.dirty_latency) = (298.0, 298.0);
    preset.memory.transfer = 40.0;
    (preset.clears.cost, preset.clears.window) = (250.0, 100.0);
    preset
}

struct Join {
    build: PageBuffer<Record<OneLine>>,
    probe: PageBuffer<Record<OneLine>>,
    rids: PageBuffer<u32>,
    chains: Chains,
}

const ROWS: u32 = 8192;

fn join() -> Join {
    let records = |step: u32| {
        let mut records = PageBuffer::<Record<OneLine>>::zeroed(ROWS as usize, PageSize::Small);
        let rows = records.as_mut().expect("memory for a test");
        for (row, record) in (0..ROWS).zip(rows.iter_mut()) {
            *record = Record::new(row.wrapping_mul(step) % ROWS + 1, row, row);
        }
        records.expect("memory for a test")
    };
    let build = records(5);
    let chains = Chains::build(build.iter().map(|record| record.key), PageSize::Small).unwrap();
    let rids: Vec<u32> = (0..ROWS).map(|row| row.wrapping_mul(40_503) % ROWS).collect();
    Join {
        build,
        probe: records(3),
        rids: PageBuffer::copied(&rids, PageSize::Small).unwrap(),
        chains,
    }
}

/// Keys that met, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum(u64, u64);

impl Sink<(&Record<OneLine>, &Record<OneLine>)> for Sum {
    fn emit(&mut self, row: Row, hit: (&Record<OneLine>, &Record<OneLine>)) {
        self.0 += 1;
        self.1 += u64::from(hit.0.key) * u64::from(hit.1.key) + u64::from(row);
    }
}

/// What a technique found on so many rows, dealt out to the mains, and what it cost.
fn modelled(data: &Join, technique: &str, mains: &[Main]) -> (Sum, Walked) {
    let technique: Technique = technique.parse().unwrap();
    let sums = Mutex::new(Sum::default());
    let walked = run_walks(&pentium(), (mains, Costs::default()), |part, recorder| {
        let Part::Main(main) = part else { panic!("no direct helper is asked for") };
        let mut recorder = recorder.told(technique);
        let probes = Unclustered { records: &data.probe, rids: &data.rids };
        let mut walk = HashJoin::new(&data.chains, &data.build, probes);
        let mut rows = Rows::strided(main as u32, ROWS, mains.len() as u32);
        let mut sink = Written::new(Sum::default(), recorder.clone(), (0x10_0000, 128, 1024));
        technique::run_over(technique, &mut walk, &mut rows, &mut recorder, &mut sink);
        let sum = sink.finish();
        let mut sums = sums.lock().unwrap();
        (sums.0, sums.1) = (sums.0 + sum.0, sums.1 + sum.1);
    });
    (sums.into_inner().unwrap(), walked.unwrap())
}

fn natively(data: &Join) -> Sum {
    let probes = Unclustered { records: &data.probe, rids: &data.rids };
    let mut walk = HashJoin::new(&data.chains, &data.build, probes);
    let mut sum = Sum::default();
    let memory = &mut workahead_operators::memory::Direct;
    technique::run_over(
        Technique::Sequential,
        &mut walk,
        &mut Rows::range(0..ROWS),
        memory,
        &mut sum,
    );
    sum
}

const ALONE: [Main; 1] = [Main { cpu: 0, helper: None }];

fn with_helper(backward: bool, spin: Option<u32>) -> [Main; 1] {
    [Main {
        cpu: 0,
        helper: Some((1, Helping::Set(Orders { backward, spin, skips_recent: false }))),
    }]
}

#[test]
fn answers_are_those_of_the_real_machine() {
    let data = join();
    let expected = natively(&data);
    assert_eq!(expected.0, u64::from(ROWS));
    let techniques = [
        "sequential",
        "staged:width=64",
        "group:width=16",
        "amac:width=16,hint=l1",
        "distance:rows=8,hint=l1",
    ];
    for technique in techniques {
        assert_eq!(modelled(&data, technique, &ALONE).0, expected, "{technique}");
    }
    let set = "work-ahead:size=128";
    for mains in [ALONE, with_helper(true, Some(40)), with_helper(false, None)] {
        assert_eq!(modelled(&data, set, &mains).0, expected, "{mains:?}");
    }
    let both = [Main { cpu: 0, helper: None }, Main { cpu: 1, helper: None }];
    assert_eq!(modelled(&data, "sequential", &both).0, expected);
}

/// The same data elsewhere in this process, the same figures: nothing of an address is left.
#[test]
fn figures_are_the_same_every_time() {
    let figures = |data: &Join| {
        let (_, walked) = modelled(data, "work-ahead:size=64", &with_helper(true, Some(40)));
        (walked.ran, walked.found, walked.bus, walked.helped)
    };
    let first = join();
    let second = join();
    assert_eq!(figures(&first), figures(&second));
    assert_eq!(figures(&first), figures(&first));
}

/// The helper takes the misses, the main thread is faster than alone, and the pipeline is cleared
/// now and then; all of it follows from the model's parts, none is told to it.
#[test]
fn a_helper_takes_the_misses() {
    let data = join();
    let cycles = |technique: &str, mains: &[Main]| modelled(&data, technique, mains).1;
    let alone = cycles("sequential", &ALONE);
    let helped = cycles("work-ahead:size=128", &with_helper(true, Some(40)));
    assert!(helped.ran.ticks < alone.ran.ticks, "{} {}", helped.ran.ticks, alone.ran.ticks);
    let memory = |walked: &Walked, cpu: usize| walked.found[cpu].at[1][2];
    assert!(memory(&helped, 1) > memory(&helped, 0), "{:?}", helped.found);
    assert!(helped.ran.threads[0].0.stalled[Cause::Clear as usize] > 0);
    assert!(helped.helped.0 > u64::from(ROWS));
}

#[test]
fn a_thread_without_a_cpu_is_refused() {
    let mains = [Main { cpu: 7, helper: None }];
    let refused = run_walks(&pentium(), (&mains, Costs::default()), |_, _| {});
    assert!(refused.unwrap_err().to_string().contains("the CPU of a thread is 7"));
}
