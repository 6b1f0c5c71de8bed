//! How near the lookups came to what the machine's memory can do.
//!
//! From the limits that `workahead limits` has kept. Where there are none, the one point that is
//! needed is measured if that takes a fraction of a second: for a table that is not too large, and
//! lookups that took long enough to be compared with anything.

use std::time::Duration;

use serde::Serialize;
use workahead_machine::Machine;
use workahead_machine::limits::lines::{self, Method};
use workahead_machine::limits::{Limits, Store};
use workahead_machine::pages::Pages;

/// The machine, and its limits if they are kept.
pub(crate) struct Bounds {
    pub(crate) machine: Machine,
    pub(crate) limits: Option<Limits>,
}

/// The machine's limit beside what was reached.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    /// Independent random cache lines per second, on as many threads, over a footprint as large as
    /// the table.
    random_lines_per_second: f64,
    /// The lookups per second that touch lines at random, as a share of it: one line each.
    pub(crate) fraction: f64,
    /// Where it is from.
    pub(crate) source: Source,
}

/// Where the limit is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// `workahead limits` kept it.
    Kept,
    /// Measured after the join, at this one point.
    MeasuredNow,
}

/// What is said when the limit is not known.
pub(crate) const NOT_MEASURED: &str = "not measured: run workahead limits";

/// A larger table takes too long to touch (up to seconds per GiB in a virtual machine).
const TABLE_MAX_BYTES: usize = 256 << 20;
/// Shorter lookups say nothing about speed, and would wait longer for the limit.
const PROBE_LEAST: Duration = Duration::from_millis(100);
/// One sample of each of the three methods.
const SAMPLE: Duration = Duration::from_millis(25);

impl Bounds {
    /// This machine's.
    pub(crate) fn here() -> Self {
        let machine = Machine::here();
        let limits = Store::of_user().load(&machine);
        Self { machine, limits }
    }

    /// The limit for a table of so many bytes that so many threads probed, reaching so many
    /// lookups per second in so much time.
    pub(crate) fn limit(
        &self,
        table_bytes: usize,
        threads: usize,
        (reached, time): (f64, Duration),
    ) -> Option<Limit> {
        // More threads than CPUs take turns.
        let threads = threads.min(self.machine.allowed_cpus().len()).max(1);
        let kept = self.limits.as_ref();
        let kept = kept.and_then(|limits| limits.lines_per_s(table_bytes, threads, Pages::Huge));
        let (per_s, source) = match kept {
            Some(per_s) => (per_s, Source::Kept),
            None if table_bytes <= TABLE_MAX_BYTES && time >= PROBE_LEAST => {
                (measured(table_bytes, threads)?, Source::MeasuredNow)
            }
            None => return None,
        };
        let fraction = reached / per_s;
        fraction.is_finite().then_some(Limit { random_lines_per_second: per_s, fraction, source })
    }
}

/// The best of the three methods at one point; `None` when memory or CPUs can't be had, which is no
/// reason to lose the join.
fn measured(bytes: usize, threads: usize) -> Option<f64> {
    let rate = |method| lines::measure(bytes, threads, Pages::Huge, method, SAMPLE).ok();
    Method::ALL.into_iter().filter_map(rate).reduce(f64::max)
}
