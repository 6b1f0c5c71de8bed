//! Four digits of every figure: more would be noise, and short numbers read and compare well.

use super::Limits;

impl Limits {
    /// With every figure rounded.
    pub(super) fn rounded(mut self) -> Self {
        round(&mut self.seconds);
        round(&mut self.pause_ns);
        round(&mut self.presence);
        for point in &mut self.latency {
            round(&mut point.ns);
            round(&mut point.median_ns);
        }
        for point in &mut self.lines {
            round(&mut point.plain_per_s);
            round(&mut point.prefetch_l1_per_s);
            round(&mut point.prefetch_l2_per_s);
        }
        for point in &mut self.bandwidth {
            round(&mut point.read_bytes_per_s);
            round(&mut point.store_bytes_per_s);
            point.non_temporal_store_bytes_per_s.iter_mut().for_each(round);
        }
        self.siblings.pairs.iter_mut().flat_map(|pair| &mut pair.throughput_ratio).for_each(round);
        self.huge_share.iter_mut().for_each(round);
        self
    }
}

/// To four digits. By way of text: only a decimal number that was written short is read back the
/// same by every reader.
fn round(value: &mut f64) {
    if let Ok(rounded) = format!("{value:.3e}").parse() {
        *value = rounded;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn four_digits_are_kept() {
        let rounded = |mut value: f64| {
            super::round(&mut value);
            value
        };
        assert_eq!(rounded(123_456_789.0), 123_500_000.0);
        assert_eq!(rounded(0.000_987_654_3), 0.000_987_7);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(rounded(9.9999), 10.0);
    }
}
