//! Batch lengths: one join with probe and output batches of 256 to 131072 rows, for narrow and wide
//! rows and tables in cache and beyond, and with the length by [`Caches::batch_rows`].

mod inputs;
#[path = "../../walks/benches/measure/mod.rs"]
mod measure;

use std::sync::Arc;

use arrow_array::RecordBatch;
use measure::{Arguments, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_join::{Caches, HashJoin, JoinTable, JoinType, Prober, Side};
use workahead_machine::Machine;
use workahead_machine::clock::thread_cpu_s;
use workahead_walks::random::Random;

/// Rows of a batch as read from a file.
const GIVEN_ROWS: usize = 1 << 17;

/// Joins batches cut to `rows` rows and sums up the output, so that it is also read.
fn joined(table: &Arc<JoinTable>, batches: &[RecordBatch], rows: usize) -> Run {
    let start = thread_cpu_s();
    let (mut count, mut sum) = (0, 0_u64);
    let mut take = |output: RecordBatch| {
        count += output.num_rows();
        sum = sum.wrapping_add(inputs::sum(&output));
    };
    table.expect_probers(1);
    let mut prober = Prober::new(table.clone());
    for batch in batches {
        for first in (0..batch.num_rows()).step_by(rows) {
            let piece = batch.slice(first, rows.min(batch.num_rows() - first));
            prober.probe(piece).expect("a batch of the probe side");
            while let Some(output) = prober.next_output().expect("memory for an output") {
                take(output);
            }
        }
    }
    prober.end().expect("nothing is spilled");
    while let Some(output) = prober.next_output().expect("memory for an output") {
        take(output);
    }
    Run { seconds: thread_cpu_s() - start, answer: Some((count, sum)) }
}

fn main() {
    let arguments = Arguments::read();
    let caches = Caches::reported(&Machine::here()).unwrap_or(Caches::ASSUMED);
    let mut report = Report::new(&arguments, "Lengths of batches: narrow and wide rows");
    let (sizes, probe_rows, lengths) = if arguments.small {
        (vec![1000], 20_000, vec![256, 8192])
    } else {
        let lengths = (8..=17).map(|bits| 1 << bits).collect();
        (vec![4 << 10, 1 << 20], arguments.number("--rows").unwrap_or(4 << 20), lengths)
    };
    for build_rows in sizes {
        let mut random = Random::of(1);
        let permuted = random.permutation(build_rows);
        let keys: Vec<i64> = permuted.into_iter().map(|key| i64::from(key) * 7919).collect();
        let probes: Vec<i64> =
            (0..probe_rows).map(|_| keys[random.below(build_rows) as usize]).collect();
        for columns in [1, 4, 12] {
            let build = inputs::batches(&keys, ("b", columns), GIVEN_ROWS);
            let batches = inputs::batches(&probes, ("p", columns), GIVEN_ROWS);
            let (left, right) = (build[0].schema(), batches[0].schema());
            let join = HashJoin::by_names(left, right, &[("key", "key")], JoinType::Inner);
            let join = join.expect("integers").with_build_side(Side::Left).with_caches(caches);
            let built = |join: HashJoin| {
                let mut side = join.build();
                build.iter().for_each(|batch| side.push(batch.clone()).expect("a batch"));
                Arc::new(side.finish().expect("memory for the table"))
            };
            let chosen = (join.probe_batch_rows(), join.batch_rows());
            let by_caches = built(join.clone());
            let tables: Vec<_> = lengths
                .iter()
                .map(|rows| (*rows, built(join.clone().with_batch_rows(*rows))))
                .collect();
            let mut cases = vec![Case::new("by the caches", |_: &mut ()| {
                joined(&by_caches, &batches, chosen.0)
            })];
            cases.extend(tables.iter().map(|(rows, table)| {
                let batches = &batches;
                Case::new(format!("{rows} rows"), move |_: &mut ()| joined(table, batches, *rows))
            }));
            let times = in_turns(&arguments, arguments.rounds(5), &cases, &mut ());
            let best = times.iter().min_by(|a, b| a.seconds().total_cmp(&b.seconds()));
            for (at, timed) in times.iter().enumerate() {
                let rows = at.checked_sub(1).map_or(chosen, |at| (lengths[at], lengths[at]));
                report.row(&[
                    ("case", json!(timed.name)),
                    ("build_rows", json!(build_rows)),
                    ("columns", json!(2 * columns + 1)),
                    ("probe_batch_rows", json!(rows.0)),
                    ("output_batch_rows", json!(rows.1)),
                    ("mrows_per_s", json!(probe_rows as f64 / timed.seconds() / 1e6)),
                    ("of_best", json!(best.map(|best| timed.times_as_fast_as(best)))),
                ]);
            }
        }
    }
    report.finish(&[
        "CPU time of one thread from keys to joined and summed columns, all of them 64-bit \
         integers, every probe row with one match; median of interleaved rounds.",
    ]);
}
