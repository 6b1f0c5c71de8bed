//! `Auto` against all layouts it could have chosen: table sizes × shares of probes that hit ×
//! widths of the build side × key distributions; every layout forced, interleaved with `Auto`.
//!
//! A cell is a whole join, build and probe, with all output columns made and summed up. Cells in
//! which `Auto` is more than 15 % behind the best are measured once more before they count, with
//! three times the rounds and only against layouts that were ahead: the best of several noisy
//! figures is too good, and only that cell would pay for it.

mod inputs;
#[path = "../../walks/benches/measure/mod.rs"]
mod measure;

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use measure::{Arguments, Case, Report, Run, Timing, in_turns};
use serde_json::json;
use workahead_join::{Caches, HashJoin, JoinType, Prober, Side, TableLayout};
use workahead_machine::Machine;
use workahead_machine::clock::thread_cpu_s;
use workahead_machine::pages::Pool;
use workahead_walks::random::Random;

/// How far behind the best a cell may be after the second measurement.
const BEHIND_MOST: f64 = 1.15;

/// Bytes of a bucket table for each of its keys.
const ENTRY_BYTES: usize = 32;

/// Keeps the pages of one join for the next: the first touch of fresh pages costs system time, and
/// any amount of it if the host reclaims them.
static PAGES: LazyLock<Pool> = LazyLock::new(|| Pool::keeping(4 << 30));

/// Distribution of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Random numbers.
    Spread,
    /// All numbers of a range, like surrogate keys, in random order.
    Dense,
    /// Every fourth of a range: a dense table is as large as buckets.
    Quarter,
    /// Every eighth: twice as large.
    Eighth,
}

/// One cell's inputs.
struct Inputs {
    build: Vec<RecordBatch>,
    probe: Vec<RecordBatch>,
}

impl Inputs {
    fn new(rows: u32, probes: usize, percent: u32, columns: usize, keys: Keys) -> Self {
        let mut random = Random::of(1);
        let key = |entry: u32| match keys {
            Keys::Spread => Random::of(u64::from(entry)).number() as i64,
            Keys::Dense => i64::from(entry) - 1000,
            Keys::Quarter => i64::from(entry) * 4 + i64::from(entry % 3),
            Keys::Eighth => i64::from(entry) * 8 + i64::from(entry % 7),
        };
        let build: Vec<i64> = random.permutation(rows).into_iter().map(key).collect();
        let mut probe = || {
            let entry = random.below(rows);
            // Misses lie beside the build side's keys, as after a selection of them.
            if random.below(100) < percent { key(entry) } else { key(rows + entry) }
        };
        let probe: Vec<i64> = (0..probes).map(|_| probe()).collect();
        Self {
            build: inputs::batches(&build, ("b", columns), 8192),
            probe: inputs::batches(&probe, ("p", 1), 8192),
        }
    }

    fn join(&self, caches: Caches) -> HashJoin {
        let (left, right) = (self.build[0].schema(), self.probe[0].schema());
        let join = HashJoin::by_names(left, right, &[("key", "key")], JoinType::Inner);
        let join = join.expect("two integers").with_build_side(Side::Left);
        join.with_caches(caches).with_page_pool(PAGES.clone())
    }

    fn joined(&self, join: &HashJoin) -> Run {
        let start = thread_cpu_s();
        let mut side = join.build();
        self.build.iter().for_each(|batch| side.push(batch.clone()).expect("a batch"));
        let table = Arc::new(side.finish().expect("memory for the table"));
        let mut prober = Prober::new(table.clone());
        let (mut rows, mut sum) = (0, 0_u64);
        let mut take = |output: RecordBatch| {
            rows += output.num_rows();
            sum = sum.wrapping_add(inputs::sum(&output));
        };
        for batch in &self.probe {
            prober.probe(batch.clone()).expect("a batch");
            while let Some(output) = prober.next_output().expect("memory") {
                take(output);
            }
        }
        prober.end().expect("nothing is spilled");
        while let Some(output) = prober.next_output().expect("memory") {
            take(output);
        }
        drop((prober, table));
        Run { seconds: thread_cpu_s() - start, answer: Some((rows, sum)) }
    }
}

/// The layouts to compare `Auto` with.
fn forced(keys: Keys) -> Vec<TableLayout> {
    let mut forced = vec![TableLayout::Buckets, TableLayout::Bloom];
    if keys != Keys::Spread {
        forced.push(TableLayout::Dense);
    }
    forced
}

/// How many times as long as the best layout `Auto` takes, and the best.
fn behind(times: &[Timing]) -> (f64, &Timing) {
    let forced = times[1..].iter();
    let best = forced.max_by(|a, b| {
        let [a, b] = [a, b].map(|timed| timed.times_as_fast_as(&times[0]));
        a.total_cmp(&b)
    });
    let best = best.expect("something is forced");
    (best.times_as_fast_as(&times[0]), best)
}

/// Times of `Auto`, then of the selected layouts.
fn measured(
    arguments: &Arguments,
    rounds: usize,
    (inputs, keys): (&Inputs, Keys),
    wanted: impl Fn(&str) -> bool,
) -> Vec<Timing> {
    let caches = Caches::reported(&Machine::here()).unwrap_or(Caches::ASSUMED);
    let join = inputs.join(caches);
    let auto = join.clone();
    // The first join would pay for pages that the pool lacks.
    inputs.joined(&auto);
    let mut cases = vec![Case::new("auto", move |_: &mut ()| inputs.joined(&auto))];
    for layout in forced(keys).into_iter().filter(|layout| wanted(layout.name())) {
        let join = join.clone().with_table_layout(layout);
        cases.push(Case::new(layout.name(), move |_: &mut ()| inputs.joined(&join)));
    }
    in_turns(arguments, rounds, &cases, &mut ())
}

fn main() {
    let arguments = Arguments::read();
    let mut report = Report::new(&arguments, "Auto against every layout it could choose");
    let sizes = if arguments.small {
        vec![(1 << 16, 20_000)]
    } else {
        let all =
            [(256 << 10, 4 << 20), (8 << 20, 4 << 20), (64 << 20, 8 << 20), (512 << 20, 16 << 20)];
        let only = arguments.number("--bytes");
        all.into_iter().filter(|(bytes, _)| only.is_none_or(|only| only == *bytes)).collect()
    };
    let (mut logs, mut worst) = (Vec::new(), (0.0, String::new()));
    for (bytes, probes) in sizes {
        // The largest joins take seconds each: only the extremes.
        let large = bytes > 64 << 20;
        let (hits, widths): (&[u32], &[usize]) =
            if large { (&[10, 100], &[1]) } else { (&[1, 10, 50, 100], &[1, 4]) };
        for &percent in hits {
            for &columns in widths {
                for keys in [Keys::Spread, Keys::Dense, Keys::Quarter, Keys::Eighth] {
                    let rows = (bytes / ENTRY_BYTES) as u32;
                    let inputs = Inputs::new(rows, probes, percent, columns, keys);
                    let rounds = arguments.rounds(3);
                    let mut times = measured(&arguments, rounds, (&inputs, keys), |_| true);
                    let again = behind(&times).0 > BEHIND_MOST && !arguments.small;
                    if again {
                        let before = times;
                        times = measured(&arguments, 3 * rounds, (&inputs, keys), |name| {
                            let forced = before[1..].iter().find(|timed| timed.name == name);
                            forced.is_some_and(|forced| forced.times_as_fast_as(&before[0]) > 1.0)
                        });
                    }
                    let (ratio, best) = behind(&times);
                    report.row(&[
                        ("case", json!(format!("{} KiB, {keys:?}", bytes >> 10).to_lowercase())),
                        ("hits_percent", json!(percent)),
                        ("columns", json!(columns)),
                        ("auto_ms", json!(times[0].seconds() * 1e3)),
                        ("best_ms", json!(best.seconds() * 1e3)),
                        ("auto_to_best", json!(ratio)),
                        ("best", json!(best.name)),
                        ("again", json!(u8::from(again))),
                    ]);
                    logs.push(ratio.ln());
                    let cell = format!("{bytes} bytes, {percent} %, {columns} columns, {keys:?}");
                    if ratio > worst.0 {
                        worst = (ratio, cell);
                    }
                }
            }
        }
    }
    let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    let summary = format!(
        "Geometric mean of Auto ÷ best forced over {} cells: {mean:.3}; worst: {:.3} ({}).",
        logs.len(),
        worst.0,
        worst.1
    );
    report.finish(&[
        &summary,
        "CPU time of one thread for build, probe, and summing all output columns; medians of \
         interleaved rounds. Size: of a bucket table of the build side. Columns: 64-bit integers \
         of the build side beside the key. `again`: more than 15 % behind at first, measured anew.",
    ]);
}
