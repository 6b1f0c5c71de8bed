//! How long a run takes: before it starts by the study's own figure, then by its samples.
//!
//! ```text
//! before     time_s of the study (on 2 cores), if it has one running    for every remaining visit:
//! the median time between two samples of its cell, or of
//!            all cells; warm-up rounds of blocks to come count as visits
//! ```
//!
//! The time between samples holds everything: preparation, restarts, the sample, the disk.

use std::collections::HashMap;

use crate::error::StudyError;
use crate::observation::Observation;
use crate::protocol::Start;
use crate::run_plan::RunPlan;
use crate::spec::Spec;
use crate::statistics::{Mean, mean};

/// Refuses a study whose own estimate is longer, naming smaller scales.
pub fn fits(spec: &Spec, duration_s_max: f64) -> Result<(), StudyError> {
    match spec.time_s {
        Some(time_s) if time_s > duration_s_max => Err(StudyError::TooLong {
            id: spec.id.clone(),
            time_s,
            duration_s_max,
            remedy: spec.other_scales("lower its repetitions"),
        }),
        _ => Ok(()),
    }
}

/// The pace of a run, by its samples.
#[derive(Debug, Clone)]
pub struct Pace<'a> {
    run_plan: &'a RunPlan,
    /// When the last sample was kept.
    last_unix_ms: Option<u64>,
    last_block: Option<usize>,
    /// Times between samples, by cell.
    steps_s: HashMap<usize, Vec<f64>>,
    /// Samples so far, by cell, those of earlier runs too.
    seen: HashMap<usize, u32>,
}

impl<'a> Pace<'a> {
    /// A pace with the samples of the log so far.
    pub fn new(run_plan: &'a RunPlan, kept: &[Observation]) -> Pace<'a> {
        let mut pace = Pace {
            run_plan,
            last_unix_ms: None,
            last_block: None,
            steps_s: HashMap::new(),
            seen: HashMap::new(),
        };
        kept.iter().for_each(|observation| pace.count(observation));
        pace
    }

    /// Records a sample of this run.
    pub fn record(&mut self, observation: &Observation) {
        self.count(observation);
        let block = self.run_plan.cells[observation.cell].block;
        // The first sample of a block comes after its data and its warm-up.
        if let (Some(last), true) = (self.last_unix_ms, self.last_block == Some(block)) {
            let step_s = observation.unix_ms.saturating_sub(last) as f64 / 1e3;
            self.steps_s.entry(observation.cell).or_default().push(step_s);
        }
        self.last_unix_ms = Some(observation.unix_ms);
        self.last_block = Some(block);
    }

    fn count(&mut self, observation: &Observation) {
        let seen = self.seen.entry(observation.cell).or_default();
        *seen = seen.saturating_add(1);
        if observation.sample().is_none() {
            // A failed cell has no visits left.
            *seen = u32::MAX;
        }
    }

    /// The remaining time in seconds; `None` before the first sample.
    pub fn left_s(&self) -> Option<f64> {
        let median = |steps: &[f64]| mean(steps, Mean::Median);
        let all: Vec<f64> = self.steps_s.values().flatten().copied().collect();
        let usual_s = median(&all)?;
        let cell_s = |cell: usize| {
            self.steps_s.get(&cell).and_then(|steps| median(steps)).unwrap_or(usual_s)
        };
        let left = self.run_plan.cells.iter().map(|cell| {
            let seen = self.seen.get(&cell.index).copied().unwrap_or(0);
            let samples = self.run_plan.repetitions.saturating_sub(seen);
            let is_to_warm = seen == 0 && cell.protocol.start == Start::Warm;
            let rounds = if is_to_warm { self.run_plan.warmup } else { 0 };
            f64::from(samples + rounds) * cell_s(cell.index)
        });
        Some(left.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Mock};

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\ntime_s = 600\n\
        [axes]\npages = ['huge', 'small']\n[[cases]]\nname = 'a'\n[[cases]]\nname = 'b'\n\
        [method]\nrepetitions = 3\n[scale.small]\ntime_s = 20\n";

    #[test]
    fn the_studys_estimate_is_checked_against_the_limit() {
        let spec = Spec::parse("demo", STUDY).unwrap();
        assert!(fits(&spec, 600.0).is_ok());
        let message = fits(&spec, 60.0).unwrap_err().to_string();
        assert!(message.contains("600 s") && message.contains("--scale small"), "{message}");
        assert!(fits(&Spec::parse_scaled("demo", STUDY, "small").unwrap(), 60.0).is_ok());
    }

    #[test]
    fn the_remaining_time_follows_from_samples() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = testing::results(dir.path(), STUDY, &mut Mock::new());
        // Cell 1 takes 3 s, every other 1 s; before the first sample lies a minute of loading.
        let mut clock_ms = 60_000;
        for seen in &mut results.observations {
            clock_ms += if seen.cell == 1 { 3000 } else { 1000 };
            seen.unix_ms = clock_ms;
        }
        let mut pace = Pace::new(&results.run_plan, &[]);
        assert_eq!(pace.left_s(), None);
        for seen in &results.observations[..4] {
            pace.record(seen);
        }
        // A B B A, so steps of 3, 3 and 1 s. Left: one sample of each; 6 of the other block and
        // its 2 of warm-up at the usual 3 s.
        assert_eq!(pace.left_s(), Some(1.0 + 3.0 + 8.0 * 3.0));
        for seen in &results.observations[4..] {
            pace.record(seen);
        }
        assert_eq!(pace.left_s(), Some(0.0));
    }
}
