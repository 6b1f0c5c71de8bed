//! The result of a run, before its answer is checked.

use workahead_study::engine::Answer;

use crate::oracle;

/// Times, rows, the answer, and measures by name.
#[derive(Debug, Clone, Default)]
pub struct RunResult {
    /// Elapsed time: the slowest thread's.
    pub wall_s: f64,
    /// Processor time of all threads.
    pub cpu_s: f64,
    /// Probed rows.
    pub probed: usize,
    /// Their answer.
    pub answer: Answer,
    /// Further measures, by name with the unit.
    pub measures: Vec<(&'static str, f64)>,
}

impl RunResult {
    /// The result of this run followed by another.
    #[must_use]
    pub fn then(mut self, after: Self) -> Self {
        let share = after.probed as f64 / (self.probed + after.probed).max(1) as f64;
        self.wall_s += after.wall_s;
        self.cpu_s += after.cpu_s;
        self.probed += after.probed;
        oracle::add(&mut self.answer, after.answer);
        for (name, value) in after.measures {
            match self.measures.iter_mut().find(|measure| measure.0 == name) {
                // Measures per row become those of the mean row.
                Some((_, mean)) if name.contains("_per_tuple") => *mean += share * (value - *mean),
                Some((_, sum)) => *sum += value,
                None => self.measures.push((name, value)),
            }
        }
        self
    }
}
