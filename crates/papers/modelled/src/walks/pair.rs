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
    CoRunners, Costs, Main, RecordedMain, Recorder, RecordingReceiver, RunEnd, WalksResult,
    recording_channel, run_recorded,
};
use workahead_study::engine::{EngineError, Stop};
use workahead_walks::technique::Technique;

use super::model::Model;

/// One operator's end of a machine that two operators share.
#[derive(Debug, Clone)]
pub(super) struct SharedMachine {
    place: usize,
    until: RunEnd,
    costs: Costs,
    sender: Sender<(usize, RecordingReceiver)>,
}

impl SharedMachine {
    /// Whether the rows that each has done are counted.
    pub(super) fn counts_rows(&self) -> bool {
        self.until == RunEnd::First
    }

    /// Runs a walk and sends its recording to the machine.
    pub(super) fn walk(&self, walk: impl FnOnce(Recorder)) {
        let (sender, recording) = recording_channel();
        // If the machine was refused, the walk still runs for its answer.
        let _ = self.sender.send((self.place, recording));
        walk(sender.recorder(self.place, self.costs));
    }
}

impl Model {
    /// Times two operators on this machine, unless it is stopped: `walks` runs both, each with its
    /// end of the machine. Returns its result with their timing.
    pub(super) fn time_together<R>(
        &self,
        execution: &Execution,
        until: RunEnd,
        stop: &Stop,
        walks: impl FnOnce(&(dyn Fn(usize) -> SharedMachine + Sync)) -> R,
    ) -> Result<(R, PairTiming), EngineError> {
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
            let host = scope.spawn(move || self.host(mains, &receiver, until, stop));
            let ran = walks(&|place| SharedMachine {
                place,
                until,
                costs: Costs::on(self.preset()),
                sender: sender.clone(),
            });
            drop(sender);
            (ran, host.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        Ok((ran, PairTiming { model: self.clone(), mains, walked: walked? }))
    }

    fn host(
        &self,
        mains: &[Main],
        receiver: &Receiver<(usize, RecordingReceiver)>,
        until: RunEnd,
        stop: &Stop,
    ) -> Result<WalksResult, EngineError> {
        let mut recordings: Vec<(usize, RecordingReceiver)> =
            receiver.iter().take(mains.len()).collect();
        // They arrive in any order.
        recordings.sort_by_key(|(place, _)| *place);
        let recorded = recordings.into_iter().zip(mains).map(|((_, recording), main)| {
            RecordedMain { main: *main, recording, direct_helper: None }
        });
        let recorded = recorded.collect();
        run_recorded(self.preset(), recorded, until, CoRunners::None, stop.flag())
            .map_err(EngineError::failed)
    }
}

/// The timing of two operators.
pub(super) struct PairTiming {
    model: Model,
    mains: Vec<Main>,
    walked: WalksResult,
}

impl PairTiming {
    /// The result of both, with their time.
    pub(super) fn of(&self, both: RunResult) -> RunResult {
        self.model.timed(both, &self.mains, &self.walked)
    }

    /// Rows done by each.
    pub(super) fn rows(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.walked.passed.iter().map(|rows| *rows as usize)
    }
}
