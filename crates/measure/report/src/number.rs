//! The format of numbers: three significant digits, thousands apart, units last.
//!
//! One rule for the whole page, so that a figure reads the same in a chart, a table and a sentence.
//! Values that are not finite are written as a dash: a page never shows `NaN` or `inf`.

/// The dash of a missing number.
pub(crate) const NONE: &str = "–";

/// Three significant digits, thousands apart by commas: `0.0123`, `58.3`, `1,230`.
pub(crate) fn plain(value: f64) -> String {
    // Digits that the measurement does not carry are not shown: 1234.6 is 1,230.
    let Ok(rounded) = format!("{value:.2e}").parse::<f64>() else { return NONE.to_owned() };
    if !rounded.is_finite() {
        return NONE.to_owned();
    }
    if rounded == 0.0 {
        return "0".to_owned();
    }
    match rounded.abs().log10().floor() as i32 {
        magnitude @ -4..12 => fixed(rounded, (2 - magnitude).max(0) as usize),
        _ => format!("{rounded:.2e}"),
    }
}

/// A number with exactly `decimals` places, thousands apart by commas.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let text = format!("{value:.decimals$}");
    let digits = text.trim_start_matches('-');
    let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    format!("{sign}{}{fraction}", grouped(whole))
}

/// A whole number, thousands apart by commas.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A setting or a size as it was set: all its digits, no thousands.
pub(crate) fn exact(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => NONE.to_owned(),
    }
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio to the baseline: `0.83×`, `2.31×`, `12.4×`.
pub(crate) fn ratio(value: f64) -> String {
    match value.is_finite() {
        true => format!("{}×", ratio_digits(value)),
        false => NONE.to_owned(),
    }
}

/// An interval of ratios: `2.25 to 2.38`.
pub(crate) fn ratio_interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", ratio_digits(low), ratio_digits(high))
}

fn ratio_digits(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => fixed(value, 2),
        middling if middling < 100.0 => fixed(value, 1),
        _ => plain(value),
    }
}

/// A fraction in whole per cent, with one decimal below ten: `72 %`, `4.3 %`.
pub(crate) fn percent(fraction: f64) -> String {
    match fraction.is_finite() {
        true => format!("{} %", fixed(fraction * 100.0, usize::from(fraction.abs() < 0.0995))),
        false => NONE.to_owned(),
    }
}

/// A time in the unit that suits it: `1.24 s`, `12.3 ms`, `45.0 µs`.
pub(crate) fn seconds(value_s: f64) -> String {
    let (value, unit) = match value_s.abs() {
        span if span >= 1.0 || span == 0.0 => (value_s, "s"),
        span if span >= 1e-3 => (value_s * 1e3, "ms"),
        span if span >= 1e-6 => (value_s * 1e6, "µs"),
        _ => (value_s * 1e9, "ns"),
    };
    match value_s.is_finite() {
        true => format!("{} {unit}", plain(value)),
        false => NONE.to_owned(),
    }
}

/// A size in binary units: `64 B`, `512 KiB`, `1.5 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let is_whole = (scaled - scaled.round()).abs() < 0.005 || scaled >= 100.0;
    format!("{} {}", fixed(scaled, usize::from(!is_whole)), UNITS[unit])
}

/// A tick of an axis whose ticks are `step` apart: as many decimals as the step needs, no more.
pub(crate) fn tick(value: f64, step: f64) -> String {
    match step.is_finite() && step > 0.0 {
        true => fixed(value, (-step.log10().floor()).clamp(0.0, 9.0) as usize),
        false => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_digits_and_thousands() {
        let written: Vec<String> =
            [0.0, 0.012345, 0.99951, 9.999, 58.34, 1234.6, 1e6, -2.5, 1e15].map(plain).into();
        assert_eq!(
            written,
            ["0", "0.0123", "1.00", "10.0", "58.3", "1,230", "1,000,000", "−2.50", "1.00e15"]
        );
    }

    #[test]
    fn units_suit_the_size() {
        assert_eq!(
            [1.5, 0.0123, 4.5e-5, 2e-8].map(seconds),
            ["1.50 s", "12.3 ms", "45.0 µs", "20.0 ns"]
        );
        assert_eq!(
            [64, 512 << 10, 3 << 29, 1 << 40].map(bytes),
            ["64 B", "512 KiB", "1.5 GiB", "1 TiB"]
        );
        assert_eq!([0.724, 0.0431, 1.0].map(percent), ["72 %", "4.3 %", "100 %"]);
        assert_eq!([0.834, 12.44, 250.0].map(ratio), ["0.83×", "12.4×", "250×"]);
        assert_eq!(tick(0.25, 0.05), "0.25");
        assert_eq!(tick(2000.0, 500.0), "2,000");
    }

    #[test]
    fn no_number_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for written in [plain(value), ratio(value), percent(value), seconds(value)] {
                assert_eq!(written, NONE);
            }
        }
    }

    proptest! {
        #[test]
        fn a_plain_number_keeps_three_digits(value in -1e11f64..1e11) {
            let written = plain(value).replace(',', "").replace('−', "-");
            let read: f64 = written.parse().unwrap();
            prop_assert!((read - value).abs() <= value.abs() * 0.006);
        }
    }
}
