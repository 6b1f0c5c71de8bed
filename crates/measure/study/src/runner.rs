//! Executes a run plan on an engine and keeps every sample at once.
//!
//! ```text
//! for every block with remaining visits
//!     warm-up rounds over its cells
//!     for every repetition, for every visit in its order
//!         kept already, or its cell failed?  skip
//!         prepare (free for the same data), run, append to the log
//! finish
//! ```
//!
//! A failed cell costs its own remaining samples only. A stopped run loses only the sample in
//! progress; running it again on the same directory continues it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::cell::Cell;
use crate::engine::{Answer, Engine, EngineError, Sample, Stop};
use crate::error::StudyError;
use crate::log::{self, Log};
use crate::observation::{Observation, Outcome};
use crate::plans::PlanText;
use crate::protocol::Start;
use crate::run_plan::{RunPlan, Visit};

/// A run plan and its result directory.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The cells.
    pub run_plan: &'a RunPlan,
    /// The run plan's fingerprint on this engine.
    pub fingerprint: &'a str,
    /// The result directory, `run.json` in place.
    pub dir: &'a Path,
}

/// Events of the runner, for a progress display.
#[derive(Debug)]
pub enum Event<'a> {
    /// The whole run: samples in all, those the log already has.
    Start {
        /// In all.
        samples: usize,
        /// Already there.
        kept: usize,
    },
    /// A warm-up run starts.
    WarmUp(&'a Cell),
    /// A sample is next. An observer may leave it out: this run then goes on without it.
    Next {
        /// Its cell.
        cell: &'a Cell,
        /// Whether it is left out.
        leave_out: &'a mut bool,
    },
    /// A sample starts.
    Sample(&'a Cell),
    /// A sample or a failure is on the disk.
    Kept(&'a Observation),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every cell has its samples, but those that an observer left out.
    Complete,
    /// This number of cells failed, the others are complete.
    Failures(usize),
    /// Stopped by request.
    Stopped,
}

/// Runs the visits that the log does not have yet.
pub fn run(
    job: Job<'_>,
    engine: &mut dyn Engine,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<End, StudyError> {
    let log = Log::open(job.dir)?;
    let mut state = State::of(&log::read(job.dir, job.fingerprint, job.run_plan)?);
    let kept = state.done.len();
    observe(Event::Start { samples: job.run_plan.samples(), kept });
    let mut running = Running { job, engine, stop, observe, log, state: &mut state };
    let end = running.blocks();
    // Changes are undone even after an error, which is the one reported.
    let finished = running.engine.finish();
    let end = end?;
    finished?;
    Ok(match (end, state.failed.len()) {
        (Flow::Stopped, _) => End::Stopped,
        (Flow::On, 0) => End::Complete,
        (Flow::On, failures) => End::Failures(failures),
    })
}

/// The state of the log.
#[derive(Debug, Default)]
struct State {
    done: HashSet<(usize, u32)>,
    failed: HashSet<usize>,
    answers: HashMap<usize, Answer>,
    /// Fingerprint of the last query plan that was kept, by cell.
    plans: HashMap<usize, String>,
    /// Cells with a profile whose stacks were kept.
    profiled: HashSet<usize>,
}

impl State {
    fn of(observations: &[Observation]) -> State {
        let mut state = State::default();
        observations.iter().for_each(|observation| state.record(observation));
        state
    }

    fn record(&mut self, observation: &Observation) {
        self.done.insert((observation.cell, observation.repetition));
        match &observation.outcome {
            Outcome::Sample(sample) => {
                self.answers.entry(observation.cell).or_insert(sample.answer);
                if let Some(plan) = &sample.plan {
                    self.plans.insert(observation.cell, plan.fingerprint());
                }
                let collection = sample.collection.as_ref();
                let profile = collection.and_then(|collection| collection.profile.as_ref());
                if profile.is_some_and(|profile| !profile.stacks.is_empty()) {
                    self.profiled.insert(observation.cell);
                }
            }
            Outcome::Failed { .. } => {
                self.failed.insert(observation.cell);
            }
        }
    }

    fn is_left(&self, visit: &Visit) -> bool {
        !self.failed.contains(&visit.cell) && !self.done.contains(&(visit.cell, visit.repetition))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Stopped,
}

struct Running<'a> {
    job: Job<'a>,
    engine: &'a mut dyn Engine,
    stop: &'a Stop,
    observe: &'a mut dyn FnMut(Event<'_>),
    log: Log,
    state: &'a mut State,
}

impl Running<'_> {
    fn blocks(&mut self) -> Result<Flow, StudyError> {
        let run_plan = self.job.run_plan;
        for block in 0..run_plan.blocks {
            let visits = (0..run_plan.repetitions).flat_map(|r| run_plan.visits(block, r));
            let left: Vec<Visit> = visits.filter(|visit| self.state.is_left(visit)).collect();
            if self.warm_up(&left)? == Flow::Stopped || self.samples(&left)? == Flow::Stopped {
                return Ok(Flow::Stopped);
            }
        }
        Ok(Flow::On)
    }

    /// Rounds over the warm cells with remaining visits, each once per round.
    fn warm_up(&mut self, left: &[Visit]) -> Result<Flow, StudyError> {
        let run_plan = self.job.run_plan;
        for _ in 0..run_plan.warmup {
            let mut warmed = HashSet::new();
            for visit in left {
                let cell = &run_plan.cells[visit.cell];
                let is_cold = cell.protocol.start == Start::Cold;
                let is_done = !warmed.insert(visit.cell);
                if is_done || is_cold || self.state.failed.contains(&visit.cell) {
                    continue;
                }
                (self.observe)(Event::WarmUp(cell));
                match self.visit(cell) {
                    Ok(_) => {}
                    Err(EngineError::Stopped) => return Ok(Flow::Stopped),
                    Err(error) => self.keep(visit, failed(&error))?,
                }
            }
        }
        Ok(Flow::On)
    }

    fn samples(&mut self, left: &[Visit]) -> Result<Flow, StudyError> {
        let run_plan = self.job.run_plan;
        for visit in left {
            if !self.state.is_left(visit) {
                continue;
            }
            let cell = &run_plan.cells[visit.cell];
            let mut leave_out = false;
            (self.observe)(Event::Next { cell, leave_out: &mut leave_out });
            if leave_out {
                continue;
            }
            (self.observe)(Event::Sample(cell));
            let seen = self.visit(cell).and_then(|sample| self.checked(cell, sample));
            match seen {
                Ok(sample) => self.keep(visit, Outcome::Sample(sample))?,
                Err(EngineError::Stopped) => return Ok(Flow::Stopped),
                Err(error) => self.keep(visit, failed(&error))?,
            }
        }
        Ok(Flow::On)
    }

    fn visit(&mut self, cell: &Cell) -> Result<Sample, EngineError> {
        if self.stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let ran = self.engine.prepare(cell, self.stop);
        let ran = ran.and_then(|()| self.engine.run(cell, self.stop));
        match ran {
            // Whatever went wrong then, an interruption may be what did it.
            Err(_) if self.stop.is_requested() => Err(EngineError::Stopped),
            ran => ran,
        }
    }

    /// Checks a sample: a valid time, the cell's answer, finite measures.
    fn checked(&self, cell: &Cell, mut sample: Sample) -> Result<Sample, EngineError> {
        let cpu_s = sample.cpu_s.unwrap_or_default();
        if !(sample.wall_s.is_finite() && sample.wall_s > 0.0 && cpu_s.is_finite()) {
            let times = format!("{} s elapsed, {cpu_s} s of processor", sample.wall_s);
            return Err(EngineError::failed(format!(
                "the engine gave an impossible time: {times}"
            )));
        }
        match self.state.answers.get(&cell.index) {
            Some(expected) if *expected != sample.answer => {
                return Err(EngineError::WrongAnswer { got: sample.answer, expected: *expected });
            }
            _ => {}
        }
        sample.measures.retain(|_, value| value.is_finite());
        // Kept with the first sample of a cell, and again only when the engine changed its query
        // plan.
        if sample
            .plan
            .as_ref()
            .map(PlanText::fingerprint)
            .is_some_and(|new| self.state.plans.get(&cell.index) == Some(&new))
        {
            sample.plan = None;
        }
        // So are stacks, which are most of a profile; its functions stay with every sample.
        let profile = sample.collection.as_mut().and_then(|collection| collection.profile.as_mut());
        if let Some(profile) = profile.filter(|_| self.state.profiled.contains(&cell.index)) {
            profile.stacks = Vec::new();
            profile.frames = Vec::new();
        }
        Ok(sample)
    }

    fn keep(&mut self, visit: &Visit, outcome: Outcome) -> Result<(), StudyError> {
        let mut observation = Observation {
            study: self.job.run_plan.study.clone(),
            run_plan_fingerprint: self.job.fingerprint.to_owned(),
            cell: visit.cell,
            settings: self.job.run_plan.cells[visit.cell].settings.clone(),
            repetition: visit.repetition,
            slot: visit.slot,
            unix_ms: unix_ms(),
            outcome,
        };
        self.log.append(&mut observation)?;
        self.state.record(&observation);
        (self.observe)(Event::Kept(&observation));
        Ok(())
    }
}

fn failed(error: &EngineError) -> Outcome {
    Outcome::Failed { failure: error.to_string() }
}

/// Milliseconds since 1970; 0 if the clock is before 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
