//! Figures in words.

use workahead_study::statistics::Interval;

/// Three figures: more would be noise.
pub(crate) fn significant(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => grouped(value.round()),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `12,300`.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// `12.3 ms`, `−4.00 µs`: in the unit that makes it read best.
#[must_use]
pub fn time(seconds: f64) -> String {
    // Less than a clock tells is nothing, and has no sign.
    let seconds = if seconds.abs() < 1e-12 { 0.0 } else { seconds };
    let (scale, unit) = match seconds.abs() {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    let sign = if seconds < 0.0 { "−" } else { "" };
    format!("{sign}{} {unit}", significant((scale * seconds).abs()))
}

/// `97 % (95 to 99)`.
pub(crate) fn percent(ratio: f64, interval: Interval) -> String {
    let of = |ratio: f64| format!("{:.0}", ratio * 100.0);
    format!("{} % ({} to {})", of(ratio), of(interval.low), of(interval.high))
}

/// `+14 % (9 to 19)`, `−0.4 % (−1.1 to 0.3)`.
pub(crate) fn change(ratio: f64, interval: Interval) -> String {
    let widest = [interval.low, interval.high].map(|end| (end - 1.0).abs());
    let digits = if widest[0].max(widest[1]) < 0.1 { 1 } else { 0 };
    let of = |ratio: f64| format!("{:.digits$}", (ratio - 1.0) * 100.0).replace('-', "−");
    let sign = if of(ratio).starts_with('−') { "" } else { "+" };
    format!("{sign}{} % ({} to {})", of(ratio), of(interval.low), of(interval.high))
}

/// `40 s`, `12 minutes`, `3 hours`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.0} hours", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(significant(12_345.6), "12,346");
        assert_eq!(significant(-1_234_567.0), "-1,234,567");
        assert_eq!([significant(123.4), significant(1.234)], ["123", "1.23"]);
        let times = [2.5, 0.0123, -4e-6, 7.1e-8].map(time);
        assert_eq!(times, ["2.50 s", "12.3 ms", "−4.00 µs", "71.0 ns"]);
        let interval = |low, high| Interval { low, high };
        assert_eq!(percent(0.97, interval(0.95, 0.99)), "97 % (95 to 99)");
        assert_eq!(change(1.14, interval(1.09, 1.19)), "+14 % (9 to 19)");
        assert_eq!(change(0.996, interval(0.989, 1.003)), "−0.4 % (−1.1 to 0.3)");
        let times = [40.0, 720.0, 10_800.0, 864_000.0].map(duration);
        assert_eq!(times, ["40 s", "12 minutes", "3 hours", "10 days"]);
    }
}
