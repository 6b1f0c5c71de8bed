//! Memory that is refused at any step.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proptest::test_runner::TestRunner;

use super::super::every_join::{inputs_of, options, possible};
use super::*;

/// No join of these tests makes this many requests, unless it repeats one forever.
const REQUESTS_MAX: usize = 1 << 16;

/// A pool that refuses some requests however much memory is free.
pub(super) struct Refusing<F> {
    pool: Arc<Pool>,
    requests: AtomicUsize,
    refuses: F,
    /// The rule of its limit, if that changes.
    limits: Option<Limits>,
}

/// Limits that rise and fall, as those of a pool that others use.
struct Limits {
    seed: u64,
    requests: AtomicU64,
}

impl<F: Fn(usize) -> bool + Send + Sync> Refusing<F> {
    pub(super) fn new(limit: usize, refuses: F) -> Self {
        Self { pool: Pool::of(limit), requests: AtomicUsize::new(0), refuses, limits: None }
    }

    fn with_limits(self, seed: u64) -> Self {
        Self { limits: Some(Limits { seed, requests: AtomicU64::new(0) }), ..self }
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Half of the pool's to all of it.
    fn limit_now(&self) -> usize {
        let most = self.pool.limit().expect("it has a limit");
        let Some(limits) = &self.limits else { return most };
        let request = limits.requests.fetch_add(1, Ordering::Relaxed);
        most - scrambled(limits.seed, request) as usize % (most / 2)
    }
}

impl<F> std::fmt::Debug for Refusing<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refusing").finish_non_exhaustive()
    }
}

impl<F: Fn(usize) -> bool + Send + Sync> MemoryPool for Refusing<F> {
    fn try_grow(&self, bytes: usize) -> Result<(), MemoryError> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        assert!(request < REQUESTS_MAX, "the join asks for memory forever");
        let (used, limit) = (self.pool.used(), self.limit_now());
        if (self.refuses)(request) || used + bytes > limit {
            return Err(MemoryError { wanted: bytes, used, limit });
        }
        self.pool.try_grow(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.pool.shrink(bytes);
    }

    fn used(&self) -> usize {
        self.pool.used()
    }

    fn limit(&self) -> Option<usize> {
        Some(self.limit_now())
    }

    fn total(&self) -> Option<usize> {
        self.pool.limit()
    }

    fn share(&self) -> Option<usize> {
        self.pool.limit()
    }
}

/// The outcomes of the joins of a test.
#[derive(Debug, Default, Clone, Copy)]
struct Outcomes {
    joined: usize,
    refused: usize,
    levels: u64,
    chunks: u64,
}

impl Outcomes {
    fn add(&mut self, outcome: Result<SpillMetrics, JoinError>) {
        match outcome {
            Ok(spilled) => {
                self.joined += 1;
                self.levels = self.levels.max(spilled.levels);
                self.chunks += spilled.chunks;
            }
            Err(JoinError::LimitTooSmall { .. }) => self.refused += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Once, twice, every second time, and every time from there on.
const REFUSALS: [fn(usize) -> bool; 4] =
    [|since| since == 0, |since| since < 2, |since| since % 2 == 0, |_| true];

#[test]
fn any_request_may_be_refused() {
    let mut outcomes = Outcomes::default();
    let tries_each = tries(96).cases as usize / CASES.len();
    for (turn, (case, least)) in CASES.iter().enumerate() {
        // Little enough to spill, and then some, so that much can be done after a refusal.
        let limit = least + [0, 24 << 10][turn % 2];
        let whole = Arc::new(Refusing::new(limit, |_| false));
        case.run(&whole, &Arc::default(), StopCheck::default()).unwrap();
        for (at, first) in steps(whole.requests(), tries_each, turn).enumerate() {
            let refuses = REFUSALS[(turn + at) % REFUSALS.len()];
            let refuses = move |request: usize| request.checked_sub(first).is_some_and(refuses);
            let pool = Arc::new(Refusing::new(limit, refuses));
            outcomes.add(case.run(&pool, &Arc::default(), StopCheck::default()));
        }
    }
    let Outcomes { joined, refused, levels, chunks } = outcomes;
    assert!(joined > 5 && refused > 5 && levels > 1 && chunks > 5, "{outcomes:?}");
}

#[test]
fn requests_are_refused_at_random_by_limits_that_change() {
    let outcomes = Mutex::new(Outcomes::default());
    // One of this number of requests is refused.
    let rarity = prop::sample::select(&[3_u64, 30, 300, u64::MAX][..]);
    let faults = (rarity, any::<[bool; 2]>(), any::<u64>(), 200_usize << 10..500 << 10);
    let strategy = (inputs_of(900, 500), options(), faults);
    let joins = |([mut left, mut right], options, faults): ([Input; 2], CaseOptions, _)| {
        let (rarity, [changes, ordered], seed, limit) = faults;
        for side in [&mut left, &mut right] {
            (side.pad, side.batch_rows) = (200, side.batch_rows.min(50));
        }
        let options = possible(options, left.kinds.len());
        let limit = limit + (options.probers - 1) * (150 << 10);
        let case = Case::new([left, right], CaseOptions { batch_rows: 50, ..options }, ordered);
        let refuses = move |request| scrambled(seed, request as u64).is_multiple_of(rarity);
        let pool = Refusing::new(limit, refuses);
        let pool = Arc::new(if changes { pool.with_limits(!seed) } else { pool });
        let outcome = case.run(&pool, &Arc::default(), StopCheck::default());
        outcomes.lock().unwrap().add(outcome);
        Ok(())
    };
    let config = tries(80);
    // Of a few, all may end in the same way.
    let few = config.cases < 80;
    TestRunner::new(config).run(&strategy, joins).unwrap();
    let outcomes = outcomes.into_inner().unwrap();
    let Outcomes { joined, refused, levels, .. } = outcomes;
    assert!(few || (joined > 10 && refused > 10 && levels > 0), "{outcomes:?}");
}
