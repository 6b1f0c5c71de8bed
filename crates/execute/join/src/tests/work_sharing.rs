//! Batches from a shared source go to whoever is free: under a clock that is not the machine's.
//!
//! Each worker's clock goes on by what a batch costs it, and a worker takes its next batch only
//! when no other's clock is behind: so the threads of [`run`] meet the source in the order in which
//! workers of these speeds would, on any machine and under any load.

use std::sync::{Arc, Condvar, Mutex};

use arrow_array::{Int64Array, RecordBatch};

use crate::{HashJoin, JoinError, JoinType, Worker, run};

const BATCHES: usize = 1000;

struct Clocks {
    /// By worker; the end of time when it has found no batch.
    now: Mutex<Vec<u64>>,
    turned: Condvar,
}

/// Which batches a worker may take.
#[derive(Clone, Copy)]
enum Dealing {
    /// Whichever is next.
    Shared,
    /// Those of its half.
    Halves,
}

struct Paced<'a> {
    clocks: &'a Clocks,
    /// Batches taken of the shared ones.
    next: &'a Mutex<usize>,
    dealing: Dealing,
    me: usize,
    cost: u64,
    taken: usize,
    rows: usize,
    ended: u64,
}

impl Worker for Paced<'_> {
    type Error = JoinError;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let turn = |now: &Vec<u64>| (0..now.len()).min_by_key(|worker| (now[*worker], *worker));
        let mut now = self.clocks.now.lock().unwrap();
        while turn(&now) != Some(self.me) {
            now = self.clocks.turned.wait(now).unwrap();
        }
        let mut next = self.next.lock().unwrap();
        let left = match self.dealing {
            Dealing::Shared => *next < BATCHES,
            Dealing::Halves => self.taken < BATCHES / 2,
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

/// Batches by worker, and when the last ended.
fn dealt(dealing: Dealing, costs: &[u64]) -> (Vec<usize>, u64) {
    let build = keys(0..BATCHES as i64);
    let join =
        HashJoin::by_names(build.schema(), build.schema(), &[("key", "key")], JoinType::Inner);
    let mut side = join.unwrap().build();
    side.push(build).unwrap();
    let table = Arc::new(side.finish().unwrap());
    let clocks = Clocks { now: Mutex::new(vec![0; costs.len()]), turned: Condvar::new() };
    let next = Mutex::new(0);
    let paced = |(me, cost): (usize, &u64)| Paced {
        clocks: &clocks,
        next: &next,
        dealing,
        me,
        cost: *cost,
        taken: 0,
        rows: 0,
        ended: 0,
    };
    let (workers, metrics) = run(&table, costs.iter().enumerate().map(paced).collect()).unwrap();
    // The last batch has one key that is not there.
    assert_eq!(workers.iter().map(|worker| worker.rows).sum::<usize>(), 2 * BATCHES - 1);
    assert_eq!(metrics.probe_rows, 2 * BATCHES as u64);
    let taken = workers.iter().map(|worker| worker.taken).collect();
    (taken, workers.iter().map(|worker| worker.ended).max().unwrap_or(0))
}

#[test]
fn work_is_dealt_by_speed() {
    for costs in [[100, 154], [154, 100], [100, 100], [100, 1000]] {
        let (taken, ended) = dealt(Dealing::Shared, &costs);
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
    let (taken, ended) = dealt(Dealing::Halves, &[100, 154]);
    assert_eq!((taken, ended), (vec![BATCHES / 2; 2], 154 * BATCHES as u64 / 2));
    let (_, shared) = dealt(Dealing::Shared, &[100, 154]);
    assert!(ended as f64 > 1.25 * shared as f64);
}
