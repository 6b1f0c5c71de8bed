//! `--max-duration`: the time limit of a run, checked against the study's estimate and then its
//! samples.

use std::time::{Duration, Instant};

use workahead_study::engine::Stop;
use workahead_study::estimate::{self, Pace};
use workahead_study::observation::Observation;
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

use super::summary;

#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct DurationLimit {
    /// Refuse to start, or stop early, if the run would exceed this, e.g. 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = parse)]
    max_duration: Option<Duration>,
}

impl DurationLimit {
    /// No limit.
    pub(crate) const ANY: DurationLimit = DurationLimit { max_duration: None };

    /// Refuses a study whose own estimate is longer.
    pub(crate) fn fits(self, spec: &Spec) -> anyhow::Result<()> {
        match self.max_duration {
            Some(most) => Ok(estimate::fits(spec, most.as_secs_f64())?),
            None => Ok(()),
        }
    }

    /// Monitors a run whose log has these samples already.
    pub(crate) fn monitor<'a>(
        self,
        run_plan: &'a RunPlan,
        kept: &[Observation],
    ) -> DurationMonitor<'a> {
        DurationMonitor {
            most: self.max_duration,
            begun: Instant::now(),
            pace: Pace::new(run_plan, kept),
            exceeded: None,
        }
    }
}

/// A run and its limit.
pub(crate) struct DurationMonitor<'a> {
    most: Option<Duration>,
    begun: Instant,
    pace: Pace<'a>,
    /// Why it was stopped.
    pub(crate) exceeded: Option<String>,
}

impl DurationMonitor<'_> {
    /// Records a sample; stops the run once the remaining time exceeds the limit.
    pub(crate) fn record(&mut self, observation: &Observation, stop: &Stop) {
        let Some(most) = self.most.filter(|_| self.exceeded.is_none()) else { return };
        self.pace.record(observation);
        let Some(left_s) = self.pace.left_s() else { return };
        let needed_s = self.begun.elapsed().as_secs_f64() + left_s;
        if left_s > 0.0 && needed_s > most.as_secs_f64() {
            stop.request();
            self.exceeded = Some(format!(
                "by its samples the run takes {} and --max-duration allows {}",
                summary::duration(needed_s),
                summary::duration(most.as_secs_f64())
            ));
        }
    }
}

/// Seconds, or a number with `s`, `m` or `h`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time: write e.g. 90s, 10m or 2h");
    let (number, unit_s) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds: f64 = number.trim().parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds * unit_s)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times_are_read() {
        for (text, seconds) in [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0)] {
            assert_eq!(parse(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        for text in ["", "s", "soon", "-5m", "0", "inf", "NaN", "1d", "1e300h"] {
            let message = parse(text).unwrap_err();
            assert!(message.contains("10m"), "{message}");
        }
    }
}
