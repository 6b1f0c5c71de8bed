//! Workers with a shared source get batches by their speed, tested with a simulated clock.
//!
//! A batch advances its worker's clock by a cost, and a worker takes its next batch only if no
//! other clock is behind: the threads of [`run`] take batches in the order of workers with these
//! speeds, on any machine and under any load.

use std::sync::{Arc, Condvar, Mutex};

use arrow_array::{Int64Array, RecordBatch};

use crate::{HashJoin, JoinError, JoinType, Worker, run};

const BATCHES: usize = 1000;

struct Clocks {
    /// By worker; the maximum once it found no batch.
    now: Mutex<Vec<u64>>,
    turned: Condvar,
}

/// Which batches a worker may take.
#[derive(Clone, Copy)]
enum Source {
    /// The next one.
    Shared,
    /// Those of its own half.
    Halves,
}

struct PacedWorker<'a> {
    clocks: &'a Clocks,
    /// Number of shared batches taken.
    next: &'a Mutex<usize>,
    source: Source,
    me: usize,
    cost: u64,
    taken: usize,
    rows: usize,
    ended: u64,
}

impl Worker for PacedWorker<'_> {
    type Error = JoinError;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let turn = |now: &Vec<u64>| (0..now.len()).min_by_key(|worker| (now[*worker], *worker));
        let mut now = self.clocks.now.lock().unwrap();
        while turn(&now) != Some(self.me) {
            now = self.clocks.turned.wait(now).unwrap();
        }
        let mut next = self.next.lock().unwrap();
        let left = match self.source {
            Source::Shared => *next < BATCHES,
            Source::Halves => self.taken < BATCHES / 2,
        };
        if left {
            (*next, self.taken) = (*next + 1, self.taken + 1);
            now[self.me] += self.cost;
        } else {
            self.ended = std::mem::replace(&mut now[self.me], u64::MAX);
        }
        self.clocks.turned.notify_all();
        Ok(left.then(|| keys(*next as i64 - 1..*next as i64 + 1)))
    }

    fn take(&mut self, output: RecordBatch) -> Result<(), JoinError> {
        self.rows += output.num_rows();
        Ok(())
    }
}

fn keys(range: std::ops::Range<i64>) -> RecordBatch {
    let keys = Arc::new(Int64Array::from_iter_values(range));
    RecordBatch::try_from_iter([("key", keys as _)]).unwrap()
}

/// Batches by worker, and the time when the last one ended.
fn batches_taken(source: Source, costs: &[u64]) -> (Vec<usize>, u64) {
    let build = keys(0..BATCHES as i64);
    let join =
        HashJoin::by_names(build.schema(), build.schema(), &[("key", "key")], JoinType::Inner);
    let mut side = join.unwrap().build();
    side.push(build).unwrap();
    let table = Arc::new(side.finish().unwrap());
    let clocks = Clocks { now: Mutex::new(vec![0; costs.len()]), turned: Condvar::new() };
    let next = Mutex::new(0);
    let worker = |(me, cost): (usize, &u64)| PacedWorker {
        clocks: &clocks,
        next: &next,
        source,
        me,
        cost: *cost,
        taken: 0,
        rows: 0,
        ended: 0,
    };
    let (workers, metrics) = run(&table, costs.iter().enumerate().map(worker).collect()).unwrap();
    // The last batch has one key without a match.
    assert_eq!(workers.iter().map(|worker| worker.rows).sum::<usize>(), 2 * BATCHES - 1);
    assert_eq!(metrics.probe_rows, 2 * BATCHES as u64);
    let taken = workers.iter().map(|worker| worker.taken).collect();
    (taken, workers.iter().map(|worker| worker.ended).max().unwrap_or(0))
}

#[test]
fn work_is_shared_by_speed() {
    for costs in [[100, 154], [154, 100], [100, 100], [100, 1000]] {
        let (taken, ended) = batches_taken(Source::Shared, &costs);
        let speed: f64 = costs.iter().map(|cost| 1.0 / *cost as f64).sum();
        let ideal = BATCHES as f64 / speed;
        let slowest = *costs.iter().max().unwrap() as f64;
        assert!((ended as f64) < ideal + slowest, "{costs:?}: {ended}, at best {ideal}");
        for (taken, cost) in taken.iter().zip(costs) {
            let share = ideal / cost as f64;
            assert!((*taken as f64 - share).abs() <= 1.0, "{costs:?}: {taken}, in share {share}");
        }
    }
}

#[test]
fn halves_wait_for_the_slower() {
    let (taken, ended) = batches_taken(Source::Halves, &[100, 154]);
    assert_eq!((taken, ended), (vec![BATCHES / 2; 2], 154 * BATCHES as u64 / 2));
    let (_, shared) = batches_taken(Source::Shared, &[100, 154]);
    assert!(ended as f64 > 1.25 * shared as f64);
}
