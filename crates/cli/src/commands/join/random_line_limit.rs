//! The lookups' speed compared with the random-line limit of the machine's memory.
//!
//! The limits are those that `workahead limits` has kept. Without them, the one needed point is
//! measured if that takes a fraction of a second: for a table that is not too large, and lookups
//! that took long enough to be compared.

use std::time::Duration;

use serde::Serialize;
use workahead_machine::Machine;
use workahead_machine::limits::lines::{self, Method};
use workahead_machine::limits::{Limits, Store};
use workahead_machine::pages::Pages;

/// The machine, and its kept limits.
pub(crate) struct MachineLimits {
    pub(crate) machine: Machine,
    pub(crate) kept: Option<Limits>,
}

/// The machine's limit, and the share of it that was reached.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    /// Independent random cache lines per second, on as many threads, over a footprint as large as
    /// the table.
    random_lines_per_second: f64,
    /// Lookups per second that touch lines at random, as a share of the limit: one line each.
    pub(crate) fraction: f64,
    /// The source of the limit.
    pub(crate) source: Source,
}

/// The source of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// `workahead limits` kept it.
    Kept,
    /// Measured after the join, at this one point.
    MeasuredNow,
}

/// The text for an unknown limit.
pub(crate) const NOT_MEASURED: &str = "not measured: run workahead limits";

/// A larger table takes too long to touch (up to seconds per GiB in a virtual machine).
const TABLE_BYTES_MAX: usize = 256 << 20;
/// Shorter lookups give no reliable speed, and measuring the limit would take longer.
const PROBE_TIME_MIN: Duration = Duration::from_millis(100);
/// One sample of each of the three methods.
const SAMPLE: Duration = Duration::from_millis(25);

impl MachineLimits {
    /// This machine's.
    pub(crate) fn here() -> Self {
        let machine = Machine::here();
        let kept = Store::of_user().load(&machine);
        Self { machine, kept }
    }

    /// The limit for a table of this size and number of probing threads, which reached this number
    /// of lookups per second in this time.
    pub(crate) fn limit(
        &self,
        table_bytes: usize,
        threads: usize,
        (reached, time): (f64, Duration),
    ) -> Option<Limit> {
        // More threads than CPUs take turns.
        let threads = threads.min(self.machine.allowed_cpus().len()).max(1);
        let kept = self.kept.as_ref();
        let kept = kept.and_then(|limits| limits.lines_per_s(table_bytes, threads, Pages::Huge));
        let (per_s, source) = match kept {
            Some(per_s) => (per_s, Source::Kept),
            None if table_bytes <= TABLE_BYTES_MAX && time >= PROBE_TIME_MIN => {
                (measure(table_bytes, threads)?, Source::MeasuredNow)
            }
            None => return None,
        };
        let fraction = reached / per_s;
        fraction.is_finite().then_some(Limit { random_lines_per_second: per_s, fraction, source })
    }
}

/// The best of the three methods at one point; `None` if memory or CPUs are unavailable, which is
/// not an error of the join.
fn measure(bytes: usize, threads: usize) -> Option<f64> {
    let rate = |method| lines::measure(bytes, threads, Pages::Huge, method, SAMPLE).ok();
    Method::ALL.into_iter().filter_map(rate).reduce(f64::max)
}
