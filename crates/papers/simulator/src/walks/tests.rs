//! Modelled walks give the native answers, and the same counts every time.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use workahead_machine::pages::{PageBuffer, Pages as PageSize};
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::random::Random;
use workahead_walks::record::{OneLine, Record, Unclustered, drawn_table};
use workahead_walks::technique::{self, Technique};
use workahead_walks::walk::{Row, Rows, Sink, Walk};

use super::*;
use crate::counts::Cause;
use crate::preset::tests::small;
use crate::preset::{Branches, Sharing};
use crate::ticks::CYCLE;

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
    preset.clears.cost = 250.0;
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

/// Sum of matching keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum(u64, u64);

impl Sink<(&Record<OneLine>, &Record<OneLine>)> for Sum {
    fn emit(&mut self, row: Row, hit: (&Record<OneLine>, &Record<OneLine>)) {
        self.0 += 1;
        self.1 += u64::from(hit.0.key) * u64::from(hit.1.key) + u64::from(row);
    }
}

/// The answer and cost of a technique on `ROWS` rows, dealt out to the main threads.
fn modelled(data: &Join, technique: &str, mains: &[Main]) -> (Sum, WalksResult) {
    modelled_on(&pentium(), data, technique, mains)
}

fn modelled_on(
    preset: &Preset,
    data: &Join,
    technique: &str,
    mains: &[Main],
) -> (Sum, WalksResult) {
    let technique: Technique = technique.parse().unwrap();
    let sums = Mutex::new(Sum::default());
    let stop = AtomicBool::new(false);
    let walked = run_walks(preset, mains, CoRunners::None, &stop, &|part, recorder| {
        let WalkThread::Main(main) = part else { panic!("no direct helper in this run") };
        let mut recorder = recorder.with_technique(technique);
        let probes = Unclustered { records: &data.probe, rids: &data.rids, row_stage: true };
        let mut walk = HashJoin::new(&data.chains, &data.build, probes);
        let mut rows = Rows::strided(main as u32, ROWS, mains.len() as u32);
        let mut sink = BatchSink::new(Sum::default(), recorder.clone(), BATCH);
        technique::run_over(technique, &mut walk, &mut rows, &mut recorder, &mut sink);
        let sum = sink.finish();
        let mut sums = sums.lock().unwrap();
        (sums.0, sums.1) = (sums.0 + sum.0, sums.1 + sum.1);
    });
    (sums.into_inner().unwrap(), walked.unwrap())
}

fn natively(data: &Join) -> Sum {
    let probes = Unclustered { records: &data.probe, rids: &data.rids, row_stage: true };
    let mut walk = HashJoin::new(&data.chains, &data.build, probes);
    let mut sum = Sum::default();
    let memory = &mut workahead_walks::memory::Direct;
    technique::run_over(
        Technique::Sequential,
        &mut walk,
        &mut Rows::range(0..ROWS),
        memory,
        &mut sum,
    );
    sum
}

const BATCH: BatchLayout = BatchLayout { address: 0x10_0000, row_bytes: 128, rows: 1024 };

const ALONE: [Main; 1] = [Main { cpu: 0, helper: None }];

fn with_helper(backward: bool, spin: Option<u32>) -> [Main; 1] {
    [Main {
        cpu: 0,
        helper: Some(Helper {
            cpu: 1,
            kind: HelperKind::Set(HelperOptions { backward, spin, skips_recent: false }),
        }),
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

/// If each bucket has one cell, all four branches of a probe are soon predicted; if their number is
/// random, they are mispredicted, which nothing overlaps.
#[test]
fn branches_of_walks_are_guessed() {
    let mut preset = pentium();
    let guessed = |preset: &Preset, data: &Join| {
        let counts = modelled_on(preset, data, "sequential", &ALONE).1.run.cpus[0];
        assert_eq!(counts.stalled.iter().sum::<Ticks>() + counts.computation, counts.ticks);
        counts
    };
    let (even, mut drawn) = (join(), join());
    let mut random = Random::of(1);
    let mut side = || drawn_table(ROWS, ROWS, &mut random, PageSize::Small).unwrap();
    (drawn.build, drawn.probe) = (side(), side());
    drawn.chains =
        Chains::build(drawn.build.iter().map(|record| record.key), PageSize::Small).unwrap();
    let blind = guessed(&preset, &drawn);
    preset.branches = Some(Branches {
        targets: 64,
        ways: 4,
        history: 8,
        mispredict: 20.0,
        history_sharing: Sharing::Shared,
        targets_sharing: Sharing::Shared,
        histories: crate::preset::Histories::Global,
        history_tagged: false,
    });
    let [even, drawn] = [&even, &drawn].map(|data| guessed(&preset, data));
    assert_eq!(even.branches, 4 * u64::from(ROWS));
    assert!(even.mispredicts < 100, "{even:?}");
    assert!((ROWS / 4..ROWS * 2).contains(&(drawn.mispredicts as u32)), "{drawn:?}");
    assert_eq!((blind.branches, blind.mispredicts), (drawn.branches, 0));
    assert!(drawn.ticks > blind.ticks + 20 * CYCLE * drawn.mispredicts, "{drawn:?} {blind:?}");
}

/// The same data at other addresses of this process has the same figures.
#[test]
fn figures_are_the_same_every_time() {
    let figures = |data: &Join| {
        let (_, walked) = modelled(data, "work-ahead:size=64", &with_helper(true, Some(40)));
        (walked.run, walked.found, walked.bus, walked.helpers)
    };
    let first = join();
    let second = join();
    assert_eq!(figures(&first), figures(&second));
    assert_eq!(figures(&first), figures(&first));
}

/// The helper takes the misses, the main thread is faster than alone, and the pipeline is cleared
/// now and then; all of it follows from the model's parts.
#[test]
fn a_helper_takes_the_misses() {
    let data = join();
    let cycles = |technique: &str, mains: &[Main]| modelled(&data, technique, mains).1;
    let alone = cycles("sequential", &ALONE);
    let helped = cycles("work-ahead:size=128", &with_helper(true, Some(40)));
    assert!(helped.run.ticks < alone.run.ticks, "{} {}", helped.run.ticks, alone.run.ticks);
    let memory = |walked: &WalksResult, cpu: usize| walked.found[cpu].at[1][2];
    assert!(memory(&helped, 1) > memory(&helped, 0), "{:?}", helped.found);
    assert!(helped.run.threads[0].counts.stalled[Cause::Clear as usize] > 0);
    assert!(helped.helpers.entries > u64::from(ROWS));
}

/// A direct helper executes a row, or skips it if the main thread has passed it; it never exceeds
/// its distance.
#[test]
fn a_direct_helper_keeps_up_or_leaves_out() {
    let data = join();
    let run = |rows: u32| {
        let helper = HelperKind::Direct(DirectHelperOptions { rows, pause: 40 });
        let mains = [Main { cpu: 0, helper: Some(Helper { cpu: 1, kind: helper }) }];
        let (pentium, stop) = (pentium(), AtomicBool::new(false));
        let walked = run_walks(&pentium, &mains, CoRunners::None, &stop, &|part, mut recorder| {
            let probes = Unclustered { records: &data.probe, rids: &data.rids, row_stage: true };
            let mut walk = HashJoin::new(&data.chains, &data.build, probes);
            let mut rows = Rows::range(0..ROWS);
            let WalkThread::Main(_) = part else {
                for row in rows {
                    let (_, asks) = walk.start(row, &mut recorder);
                    recorder.preload(&asks);
                    recorder.report(1);
                }
                return;
            };
            let mut sum = Sum::default();
            while rows.left() > 0 {
                let some = &mut rows.take_rows(16);
                let technique = Technique::Sequential;
                technique::run_over(technique, &mut walk, some, &mut recorder, &mut sum);
                recorder.report_to_helper(16);
            }
        });
        walked.unwrap()
    };
    let (near, far) = (run(16), run(256));
    assert_eq!((near.passed[0], far.passed[0]), (ROWS, ROWS));
    assert!(near.helpers.entries <= u64::from(ROWS) && far.helpers.entries <= u64::from(ROWS));
    assert!(far.helpers.entries > u64::from(ROWS) / 2, "{:?}", far.helpers);
    assert!(near.helpers.waits > 0, "it waits where it may not go on");
    assert_eq!(near.run.threads[0].counts.stores, u64::from(ROWS) / 16, "it says where it is");
}

/// A run that ends with the first main thread counts the rows of the other.
#[test]
fn a_race_ends_with_the_first() {
    let data = join();
    let mains = [0, 1].map(|cpu| Main { cpu, helper: None });
    let run = |until: RunEnd| {
        std::thread::scope(|scope| {
            let recorded = mains.iter().enumerate().map(|(number, main)| {
                let (sender, recording) = recording_channel();
                let data = &data;
                scope.spawn(move || {
                    let mut recorder = sender.recorder(number, Costs::on(&pentium()));
                    let probes =
                        Unclustered { records: &data.probe, rids: &data.rids, row_stage: true };
                    let mut walk = HashJoin::new(&data.chains, &data.build, probes);
                    // The second has twice the rows.
                    let mut rows = Rows::range(0..ROWS / 2 * (number as u32 + 1));
                    let mut sum = Sum::default();
                    while rows.left() > 0 {
                        let some = &mut rows.take_rows(16);
                        let technique = Technique::Sequential;
                        technique::run_over(technique, &mut walk, some, &mut recorder, &mut sum);
                        recorder.report(16);
                    }
                });
                RecordedMain { main: *main, recording, direct_helper: None }
            });
            let stop = AtomicBool::new(false);
            run_recorded(&pentium(), recorded.collect(), until, CoRunners::None, &stop).unwrap()
        })
    };
    let (first, all) = (run(RunEnd::First), run(RunEnd::All));
    assert_eq!(all.passed, [ROWS / 2, ROWS]);
    assert_eq!(first.passed[0], ROWS / 2);
    assert!((1..ROWS).contains(&first.passed[1]), "{:?}", first.passed);
    assert!(first.run.ticks < all.run.ticks);
}

/// By hand: capacity two, the third post evicts the first, padding takes no place.
#[test]
fn hardware_drops_the_oldest_post() {
    let mut queue = Queue::of(2);
    for pointer in [1, 7, 2, 3] {
        queue.post(pointer, 7);
    }
    let queue = Rc::new(RefCell::new(queue));
    let shared = SharedState::default();
    let mut script = HardwareScript::new(queue, shared.clone());
    let loads: Vec<bool> =
        (0..3).map(|_| matches!(script.next(0), Some(Op::Load { .. }))).collect();
    assert_eq!(loads, [true, true, false]);
    assert_eq!(shared.helper_counts.borrow().entries, 2);
}

/// With repeated lines skipped, fewer are loaded; skipped posts are the dummy.
#[test]
fn repeated_lines_are_left_out() {
    let mut data = join();
    // Every probe is of the same row: after the first, every line was seen a moment ago.
    data.rids.fill(3);
    let loads = |technique: &str, skips_recent: bool| {
        let orders = HelperOptions { backward: true, spin: None, skips_recent };
        let mains =
            [Main { cpu: 0, helper: Some(Helper { cpu: 1, kind: HelperKind::Set(orders) }) }];
        modelled(&data, technique, &mains).1
    };
    let every = loads("work-ahead:size=64", false);
    let helper = loads("work-ahead:size=64,dedupe=helper", true);
    let post = loads("work-ahead:size=64,dedupe=post", false);
    let stores = |walked: &WalksResult, thread: usize| walked.run.threads[thread].counts.stores;
    assert_eq!(stores(&every, 1), 0, "a helper writes nothing");
    // The few different lines are remembered once each.
    assert!((1..64).contains(&stores(&helper, 1)), "{}", stores(&helper, 1));
    assert!(stores(&post, 0) > stores(&every, 0));
}

#[test]
fn a_thread_without_a_cpu_is_refused() {
    let mains = [Main { cpu: 7, helper: None }];
    let stop = AtomicBool::new(false);
    let refused = run_walks(&pentium(), &mains, CoRunners::None, &stop, &|_, _| {});
    assert!(refused.unwrap_err().to_string().contains("the CPU of a thread is 7"));
}

/// What a walk records after the flag was set is left, whether the model had come so far or not.
#[test]
fn a_stopped_model_leaves_the_rest_of_a_recording() {
    let data = join();
    let uops = |stops: bool| {
        let stop = AtomicBool::new(false);
        let walked = run_walks(&pentium(), &ALONE, CoRunners::None, &stop, &|_, mut recorder| {
            let probes = Unclustered { records: &data.probe, rids: &data.rids, row_stage: true };
            let mut walk = HashJoin::new(&data.chains, &data.build, probes);
            let (mut rows, mut sum) = (Rows::range(0..ROWS), Sum::default());
            while rows.left() > 0 {
                let some = &mut rows.take_rows(ROWS / 2);
                let technique = Technique::Sequential;
                technique::run_over(technique, &mut walk, some, &mut recorder, &mut sum);
                stop.store(stops, Ordering::Relaxed);
            }
        });
        walked.unwrap().run.threads[0].counts.uops
    };
    assert!(uops(true) < uops(false));
}
