//! What a prober counts and times.

use std::time::Duration;

/// What a prober has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeMetrics {
    /// Rows of the probe side.
    pub probe_rows: u64,
    /// Of them, those with a match.
    pub matched_rows: u64,
    /// Of the probe side, those asked of a filter before the table.
    pub sifted_rows: u64,
    /// Rows of the result.
    pub output_rows: u64,
    /// Reading keys and looking them up.
    pub lookup_time: Duration,
    /// Pairing rows, filtering pairs and gathering output columns.
    pub gather_time: Duration,
    /// Writing rows of spilled partitions and reading them back.
    pub spill_time: Duration,
    /// Building tables of spilled partitions.
    pub build_time: Duration,
}

impl ProbeMetrics {
    /// The sum of two probers' metrics.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            probe_rows: self.probe_rows + other.probe_rows,
            matched_rows: self.matched_rows + other.matched_rows,
            sifted_rows: self.sifted_rows + other.sifted_rows,
            output_rows: self.output_rows + other.output_rows,
            lookup_time: self.lookup_time + other.lookup_time,
            gather_time: self.gather_time + other.gather_time,
            spill_time: self.spill_time + other.spill_time,
            build_time: self.build_time + other.build_time,
        }
    }
}
