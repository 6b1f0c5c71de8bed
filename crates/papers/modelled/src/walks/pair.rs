//! Two operators on one modelled machine, each recorded by a thread of its own (S4.24).
//!
//! ```text
//!   operator 0 ── run ── walk ──► recording 0 ──┐
//!                                               ├──► one machine, which times both
//!   operator 1 ── run ── walk ──► recording 1 ──┘
//! ```

use std::sync::mpsc::{Receiver, Sender, channel};

use workahead_native::execution::{Execution, Threads};
use workahead_native::run::RunResult;
use workahead_simulator::walks::{
    Among, Costs, Main, Recorder, Told, Until, Walked, recording, run_told,
};
use workahead_study::engine::EngineError;
use workahead_walks::technique::Technique;

use super::model::Model;

/// Where a walk's recording goes that shares its machine with another one.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    place: usize,
    until: Until,
    sender: Sender<(usize, Told)>,
}

impl Beside {
    /// Whether it must be known how many rows each has done.
    pub(super) fn counts_rows(&self) -> bool {
        self.until == Until::First
    }

    /// Walks here, recorded for there.
    pub(super) fn walk(&self, walk: impl FnOnce(Recorder)) {
        let (telling, told) = recording();
        // A machine that was refused wants no recording; the walk runs for its answer.
        let _ = self.sender.send((self.place, told));
        walk(telling.recorder(self.place, Costs::default()));
    }
}

impl Model {
    /// Times two operators on this machine: `walks` runs both, which find by their places where
    /// their recordings go. What it returns stands beside what they took, and beside the rows that
    /// each had done by the end.
    pub(super) fn time_together<R>(
        &self,
        execution: &Execution,
        until: Until,
        walks: impl FnOnce(&(dyn Fn(usize) -> Beside + Sync)) -> R,
    ) -> Result<(R, Timed), EngineError> {
        if let Technique::DirectHelper { .. } = execution.technique {
            return Err(EngineError::setting(
                "technique",
                "two operators side by side have no direct helpers in a \
                 model: choose `work-ahead`",
            ));
        }
        if self.sharing.is_some() {
            return Err(EngineError::setting(
                "scheduler",
                "two operators side by side have their CPUs to themselves: \
                 choose another operator",
            ));
        }
        let mains = self.mains(&execution.with_threads(Threads::Independent(2)))?;
        let (sender, receiver) = channel();
        let (ran, walked) = std::thread::scope(|scope| {
            let mains = &mains;
            let host = scope.spawn(move || self.host(mains, &receiver, until));
            let ran = walks(&|place| Beside { place, until, sender: sender.clone() });
            drop(sender);
            (ran, host.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        Ok((ran, Timed { model: self.clone(), mains, walked: walked? }))
    }

    fn host(
        &self,
        mains: &[Main],
        receiver: &Receiver<(usize, Told)>,
        until: Until,
    ) -> Result<Walked, EngineError> {
        let mut told: Vec<(usize, Told)> = receiver.iter().take(mains.len()).collect();
        // Who came first is chance.
        told.sort_by_key(|(place, _)| *place);
        let told = told.into_iter().zip(mains).map(|((_, told), main)| (*main, told, None));
        run_told(self.preset(), told.collect(), until, Among::Nobody).map_err(EngineError::failed)
    }
}

/// What two operators took.
pub(super) struct Timed {
    model: Model,
    mains: Vec<Main>,
    walked: Walked,
}

impl Timed {
    /// What both found, with what that took.
    pub(super) fn of(&self, both: RunResult) -> RunResult {
        self.model.timed(both, &self.mains, &self.walked)
    }

    /// Rows that each had done.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.walked.passed.iter().map(|rows| *rows as usize)
    }
}
