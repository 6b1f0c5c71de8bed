//! A prober's counters and times.

use std::time::Duration;

use workahead_walks::place::LINE_BYTES;

/// Counters and times of a prober.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeMetrics {
    /// Rows of the probe side.
    pub probe_rows: u64,
    /// Probe rows with a match.
    pub matched_rows: u64,
    /// Probe rows whose keys were tested by the Bloom filter.
    pub bloom_tested_rows: u64,
    /// A sample of the table's lines touched by lookups.
    pub lines: TouchedLines,
    /// Rows of the output.
    pub output_rows: u64,
    /// Reading keys and looking them up.
    pub lookup_time: Duration,
    /// Generating and filtering matches, and gathering output columns.
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
            bloom_tested_rows: self.bloom_tested_rows + other.bloom_tested_rows,
            lines: self.lines.plus(other.lines),
            output_rows: self.output_rows + other.output_rows,
            lookup_time: self.lookup_time + other.lookup_time,
            gather_time: self.gather_time + other.gather_time,
            spill_time: self.spill_time + other.spill_time,
            build_time: self.build_time + other.build_time,
        }
    }
}

/// A sample of the table's cache lines touched by consecutive lookups: keys in order touch the same
/// line or the next one, which is not a random access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TouchedLines {
    /// Lookups in the sample.
    pub lookups: u64,
    /// Lookups that touched another line than the previous one.
    pub others: u64,
    /// Lookups that touched a line more than a page away.
    pub far: u64,
}

/// Lines of a page.
const PAGE_LINES: usize = 4096 / LINE_BYTES;

impl TouchedLines {
    /// From the line of each lookup, in order.
    pub(crate) fn of(mut lines: impl Iterator<Item = usize>) -> Self {
        let mut touched = Self::default();
        let Some(mut before) = lines.next() else { return touched };
        for line in lines {
            touched.lookups += 1;
            touched.others += u64::from(line != before);
            touched.far += u64::from(line.abs_diff(before) > PAGE_LINES);
            before = line;
        }
        touched
    }

    /// The sum of two samples.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            lookups: self.lookups + other.lookups,
            others: self.others + other.others,
            far: self.far + other.far,
        }
    }

    /// New bytes of the table per lookup: a line, unless it is that of the previous lookup.
    #[must_use]
    pub fn bytes_per_lookup(self) -> f64 {
        share(self.others, self.lookups) * LINE_BYTES as f64
    }

    /// The share of lookups that touch a random line, far from that of the previous one; 1 without
    /// a sample.
    #[must_use]
    pub fn random_share(self) -> f64 {
        share(self.far, self.lookups)
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_in_order_touch_no_line_at_random() {
        let in_order = TouchedLines::of((0..801).map(|key| key / 8));
        assert_eq!((in_order.bytes_per_lookup(), in_order.random_share()), (8.0, 0.0));
        let random = TouchedLines::of((0..801).map(|key| key * 7919 % 20_000));
        assert_eq!((random.bytes_per_lookup(), random.random_share()), (64.0, 1.0));
        assert_eq!(in_order.plus(random).random_share(), 0.5);
        assert_eq!(TouchedLines::default().random_share(), 1.0);
    }
}
