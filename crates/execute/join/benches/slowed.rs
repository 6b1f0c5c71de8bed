//! Two workers, one of them 1.54 times slower: batches from a shared source against fixed halves,
//! and both against the ideal, where each worker's share is proportional to its speed.
//!
//! After each batch the slow worker spins for another 54 % of the CPU time it took, output
//! included. The factor is that of a slow core on a shared machine (a noisy neighbour, or an
//! efficiency core).

mod inputs;
#[path = "../../walks/benches/measure/mod.rs"]
mod measure;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use measure::{Arguments, Case, Report, Run, in_turns};
use serde_json::json;
use workahead_join::{Caches, HashJoin, JoinError, JoinTable, JoinType, Side, Worker, run};
use workahead_machine::Machine;
use workahead_machine::clock::thread_cpu_s;
use workahead_walks::random::Random;

/// How many times as long the slow worker takes.
const SLOWED: f64 = 1.54;

/// Where a worker's batches come from: a shared source, or a half of its own.
struct Source {
    next: AtomicUsize,
    end: usize,
}

struct PacedInput<'a> {
    batches: &'a [RecordBatch],
    source: &'a Source,
    slowed: f64,
    /// CPU time when the previous batch was taken.
    given_s: Option<f64>,
    taken: usize,
    rows: usize,
    sum: u64,
}

impl Worker for PacedInput<'_> {
    type Error = JoinError;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        if let Some(given_s) = self.given_s {
            let worked_s = thread_cpu_s() - given_s;
            while thread_cpu_s() - given_s < worked_s * self.slowed {
                std::hint::spin_loop();
            }
        }
        let at = self.source.next.fetch_add(1, Ordering::Relaxed);
        self.given_s = Some(thread_cpu_s());
        let batch = (at < self.source.end).then(|| self.batches[at].clone());
        self.taken += usize::from(batch.is_some());
        Ok(batch)
    }

    fn take(&mut self, output: RecordBatch) -> Result<(), JoinError> {
        self.rows += output.num_rows();
        self.sum = self.sum.wrapping_add(inputs::sum(&output));
        Ok(())
    }
}

/// Joins by two workers, and records how many batches the second one took.
fn joined(
    table: &Arc<JoinTable>,
    batches: &[RecordBatch],
    sources: [&Source; 2],
    slowed: f64,
) -> (Run, usize) {
    let paced = |(source, slowed)| PacedInput {
        batches,
        source,
        slowed,
        given_s: None,
        taken: 0,
        rows: 0,
        sum: 0,
    };
    let start = Instant::now();
    let workers = [(sources[0], 1.0), (sources[1], slowed)].map(paced);
    let (workers, _) = run(table, workers.into()).expect("a join");
    let seconds = start.elapsed().as_secs_f64();
    let rows = workers.iter().map(|worker| worker.rows).sum();
    let sum = workers.iter().fold(0_u64, |sum, worker| sum.wrapping_add(worker.sum));
    (Run { seconds, answer: Some((rows, sum)) }, workers[1].taken)
}

fn main() {
    let arguments = Arguments::read();
    let (build_rows, probe_rows) = if arguments.small {
        (1000, 100_000)
    } else {
        (1 << 20, arguments.number("--rows").unwrap_or(16 << 20))
    };
    let mut random = Random::of(1);
    let permuted = random.permutation(build_rows as u32);
    let keys: Vec<i64> = permuted.into_iter().map(|key| i64::from(key) * 7919).collect();
    let probes: Vec<i64> =
        (0..probe_rows).map(|_| keys[random.below(build_rows as u32) as usize]).collect();
    let build = inputs::batches(&keys, ("b", 1), 8192);
    let batches = inputs::batches(&probes, ("p", 1), 8192);
    let schemas = (build[0].schema(), batches[0].schema());
    let join = HashJoin::by_names(schemas.0, schemas.1, &[("key", "key")], JoinType::Inner);
    let caches = Caches::reported(&Machine::here()).unwrap_or(Caches::ASSUMED);
    let mut side =
        join.expect("two integers").with_build_side(Side::Left).with_caches(caches).build();
    build.into_iter().for_each(|batch| side.push(batch).expect("a batch of the build side"));
    let table = Arc::new(side.finish().expect("memory for the table"));

    let count = batches.len();
    let second = [const { AtomicUsize::new(0) }; 3];
    let shared = |slowed: f64, case: usize| {
        let source = Source { next: AtomicUsize::new(0), end: count };
        let (run, taken) = joined(&table, &batches, [&source; 2], slowed);
        second[case].store(taken, Ordering::Relaxed);
        run
    };
    let halves = |slowed: f64, case: usize| {
        let first = Source { next: AtomicUsize::new(0), end: count / 2 };
        let rest = Source { next: AtomicUsize::new(count / 2), end: count };
        let (run, taken) = joined(&table, &batches, [&first, &rest], slowed);
        second[case].store(taken, Ordering::Relaxed);
        run
    };
    let cases = [
        Case::new("two workers alike", |_: &mut ()| shared(1.0, 0)),
        Case::new("one slowed, shared batches", |_: &mut ()| shared(SLOWED, 1)),
        Case::new("one slowed, fixed halves", |_: &mut ()| halves(SLOWED, 2)),
    ];
    let times = in_turns(&arguments, arguments.rounds(15), &cases, &mut ());
    let mut report =
        Report::new(&arguments, "A join by two workers, one of them 1.54 times slower");
    for (case, timed) in times.iter().enumerate() {
        // Two equal workers have speed two; these have one plus a part of one.
        let ideal = if case == 0 { 1.0 } else { 2.0 / (1.0 + 1.0 / SLOWED) };
        report.row(&[
            ("case", json!(timed.name)),
            ("ms", json!(timed.seconds() * 1e3)),
            ("of_ideal", json!(1.0 / timed.times_as_fast_as(&times[0]) / ideal)),
            ("second_percent", json!(100 * second[case].load(Ordering::Relaxed) / count)),
        ]);
    }
    report.finish(&[
        "Wall time, median of interleaved rounds. `of_ideal`: time ÷ (that of two workers alike × \
         2 ÷ (1 + 1 ÷ 1.54)), 1 where each works in proportion to its speed. `second_percent`: \
         batches that the second worker took, the slow one where there is one.",
    ]);
}
