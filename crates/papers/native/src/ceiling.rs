//! The upper bound that this machine's memory sets on an operator.
//!
//! A probe must touch its lines, and lines can't be touched faster than independent random reads
//! were measured. Each structure is taken as if it had the caches to itself, which makes this an
//! upper bound.

use workahead_machine::pages::Pages;

use crate::operator::Touch;

/// Independent random lines per second over a footprint, by threads and pages.
pub(crate) type LinesPerS<'l> = &'l dyn Fn(usize, usize, Pages) -> Option<f64>;

/// Probes per second that the lines allow; `None` without a measurement.
pub(crate) fn probes_per_s(
    touches: &[Touch],
    threads: usize,
    pages: Pages,
    lines_per_s: LinesPerS<'_>,
) -> Option<f64> {
    let seconds: Option<f64> = touches
        .iter()
        .filter(|touch| touch.lines > 0.0 && touch.bytes > 0)
        .map(|touch| Some(touch.lines / lines_per_s(touch.bytes, threads, pages)?))
        .sum();
    seconds.filter(|seconds| *seconds > 0.0).map(|seconds| 1.0 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_all_lines_add_up() {
        let touches = [Touch::random(1 << 20, 2.0), Touch::random(1 << 30, 1.0)];
        let rate = |bytes: usize, threads: usize, _| {
            Some(if bytes > 1 << 25 { 1e8 } else { 4e8 } * threads as f64)
        };
        let one = probes_per_s(&touches, 1, Pages::Huge, &rate).unwrap();
        assert!((one - 1.0 / (2.0 / 4e8 + 1.0 / 1e8)).abs() < 1.0, "{one}");
        let two = probes_per_s(&touches, 2, Pages::Huge, &rate).unwrap();
        assert!((two / one - 2.0).abs() < 1e-9);
        assert_eq!(probes_per_s(&touches, 1, Pages::Huge, &|_, _, _| None), None);
        assert_eq!(probes_per_s(&[], 1, Pages::Huge, &rate), None);
    }
}
