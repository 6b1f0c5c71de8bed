//! Loops beside the clients, on the server's CPUs: a gain of one program may be a loss of another.
//!
//! They run exactly as long as clients are measured, and their own work is counted as Yamada et al.
//! (2010, section 5.3) count it: passes over their bytes in a second of their own CPU time.

use std::str::FromStr;

use workahead_machine::{CpuSet, pin};
use workahead_study::engine::EngineError;
use workahead_workloads::loops::{LoopRun, Loops};

/// More than any machine has CPUs.
const LOOPS_MAX: usize = 4096;

/// The number of loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopCount {
    /// This number.
    Number(usize),
    /// One for each of the server's CPUs.
    PerCpu,
}

impl FromStr for LoopCount {
    type Err = String;

    fn from_str(text: &str) -> Result<LoopCount, String> {
        match (text, text.parse()) {
            ("per-cpu", _) => Ok(LoopCount::PerCpu),
            (_, Ok(number)) if number <= LOOPS_MAX => Ok(LoopCount::Number(number)),
            _ => Err(format!("`{text}` is not a number from 0 to {LOOPS_MAX}, nor `per-cpu`")),
        }
    }
}

/// Loops of a cell, maybe none.
pub(super) struct Background {
    count: LoopCount,
    bytes: usize,
    /// Their CPUs; all of this process when not given.
    cpus: Option<CpuSet>,
    running: Option<Loops>,
    ran: Result<Vec<LoopRun>, EngineError>,
}

impl Background {
    pub(super) fn new(count: LoopCount, bytes: usize, cpus: Option<CpuSet>) -> Self {
        Self { count, bytes, cpus, running: None, ran: Ok(Vec::new()) }
    }

    /// Starts them; an error is reported by [`measures`](Self::measures).
    pub(super) fn begin(&mut self) {
        if self.count == LoopCount::Number(0) {
            return;
        }
        let failed = |says: String| EngineError::failed(says);
        let started = pin::affinity().map_err(|error| failed(error.to_string())).and_then(|all| {
            let cpus = self.cpus.as_ref().unwrap_or(&all);
            let count = match self.count {
                LoopCount::Number(count) => count,
                LoopCount::PerCpu => cpus.len(),
            };
            let cpus: Vec<usize> = cpus.iter().collect();
            let on: Vec<usize> = cpus.iter().copied().cycle().take(count).collect();
            Loops::start(&on, self.bytes, &all).map_err(|error| failed(error.to_string()))
        });
        match started {
            Ok(loops) => self.running = Some(loops),
            Err(error) => self.ran = Err(error),
        }
    }

    pub(super) fn end(&mut self) {
        if let Some(loops) = self.running.take() {
            self.ran = loops.stop().map_err(EngineError::failed);
        }
    }

    /// Their measures by name; none without loops.
    pub(super) fn measures(self) -> Result<Vec<(&'static str, f64)>, EngineError> {
        let ran = self.ran?;
        if ran.is_empty() {
            return Ok(Vec::new());
        }
        let cpu_s = ran.iter().map(|ran| ran.cpu_s).sum::<f64>();
        let passes = ran.iter().map(|ran| ran.passes).sum::<u64>() as f64;
        // Every loop has the same weight, however long it ran.
        let rates = ran.iter().map(LoopRun::passes_per_cpu_s).sum::<f64>();
        Ok(vec![
            ("loop_passes", passes),
            ("loop_cpu_s", cpu_s),
            ("loop_passes_per_cpu_s", rates / ran.len() as f64),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_loops_than_cpus_share_them_and_are_counted() {
        let all = pin::affinity().unwrap();
        let one: CpuSet = all.iter().take(1).collect();
        let mut loops = Background::new(LoopCount::Number(3), 1 << 12, Some(one));
        loops.begin();
        loops.end();
        let measures = loops.measures().unwrap();
        assert_eq!(measures.len(), 3);
        assert!(measures.iter().all(|(_, value)| *value > 0.0), "{measures:?}");
        assert_eq!(Background::new(LoopCount::Number(0), 0, None).measures().unwrap(), []);
        let mut small = Background::new(LoopCount::PerCpu, 8, None);
        small.begin();
        small.end();
        assert!(small.measures().unwrap_err().to_string().contains("a cache line"));
        assert_eq!("per-cpu".parse(), Ok(LoopCount::PerCpu));
        assert!("-1".parse::<LoopCount>().is_err() && "4097".parse::<LoopCount>().is_err());
    }
}
