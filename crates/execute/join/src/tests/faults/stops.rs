//! Joins that are stopped at any step.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

impl Case {
    /// Joins in a limit, and stops at one of the looks at the stop check. Returns the number of
    /// looks.
    fn run_until(&self, limit: usize, stop: usize) -> (Result<SpillMetrics, JoinError>, usize) {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        let stops = StopCheck::new(move || counted.fetch_add(1, Ordering::Relaxed) >= stop);
        let outcome = self.run(&Pool::of(limit), &Arc::default(), stops);
        (outcome, looks.load(Ordering::Relaxed))
    }
}

#[test]
fn a_join_may_be_stopped_at_any_step() {
    let tries_each = tries(96).cases as usize / CASES.len();
    let mut stopped = 0;
    for (turn, (case, limit)) in CASES.iter().enumerate() {
        let (whole, looks) = case.run_until(*limit, usize::MAX);
        whole.unwrap();
        for stop in steps(looks, tries_each, turn) {
            let (outcome, looks) = case.run_until(*limit, stop);
            // Threads may have shared the work in another way.
            if looks <= stop {
                outcome.unwrap();
                continue;
            }
            let error = outcome.unwrap_err();
            assert!(matches!(error, JoinError::Stopped), "stopped at {stop}: {error:?}");
            stopped += 1;
        }
    }
    assert!(stopped > 12, "{stopped}");
}
