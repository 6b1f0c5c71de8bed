//! Where a value lies on an axis, and which values an axis names.
//!
//! Ticks are 1, 2 or 5 times a power of ten apart (Heckbert, "Nice numbers for graph labels",
//! Graphics Gems, 1990) and cover the data; sizes that double are spaced evenly, by their logarithm
//! to base two.

/// The fewest ticks that still let a reader judge a length.
const TICKS_MIN: f64 = 3.0;

/// Values at equal steps that cover a range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ticks {
    /// The distance between two ticks.
    pub(crate) step: f64,
    /// The ticks, rising; the first is at or below the range, the last at or above it.
    pub(crate) values: Vec<f64>,
}

impl Ticks {
    /// About `wanted` nice values that cover `low..=high`. An empty or broken range is taken as
    /// `0..=1`.
    pub(crate) fn covering(low: f64, high: f64, wanted: f64) -> Self {
        let (low, high) = proper_range(low, high);
        let step = nice_step((high - low) / wanted.max(TICKS_MIN));
        let first = (low / step + 1e-9).floor();
        let last = (high / step - 1e-9).ceil().max(first + 1.0);
        let steps = (last - first) as usize;
        let values = (0..=steps).map(|index| (first + index as f64) * step).collect();
        Self { step, values }
    }

    pub(crate) fn low(&self) -> f64 {
        self.values.first().copied().unwrap_or(0.0)
    }

    pub(crate) fn high(&self) -> f64 {
        self.values.last().copied().unwrap_or(1.0)
    }
}

fn proper_range(low: f64, high: f64) -> (f64, f64) {
    let is_usable = low.is_finite() && high.is_finite() && low.abs().max(high.abs()) < 1e300;
    match (is_usable, high - low) {
        (false, _) => (0.0, 1.0),
        // Closer than their own rounding: a range is made around them.
        (true, span) if span <= low.abs().max(high.abs()) * 1e-6 || span < 1e-290 => match low {
            0.0 => (0.0, 1.0),
            one => (one - one.abs() / 2.0, one + one.abs() / 2.0),
        },
        (true, _) => (low, high),
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let multiple = least / power;
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| multiple <= nice * (1.0 + 1e-9));
    nice.unwrap_or(10.0) * power
}

/// How a value becomes a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Equal differences are equally far apart.
    Even,
    /// Doublings are equally far apart.
    Doubling,
}

/// An axis: the values from `low` to `high` laid from `from` to `to` (in the drawing's units).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) spacing: Spacing,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Scale {
    /// The place of `value`, kept on the axis.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let along = |value: f64| match self.spacing {
            Spacing::Even => value,
            Spacing::Doubling => value.max(f64::MIN_POSITIVE).log2(),
        };
        let (low, high) = (along(self.low), along(self.high));
        let share = (along(value) - low) / (high - low);
        let share = if share.is_nan() { 0.5 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }
}

/// The powers of two from the one at or below `low` to the one at or above `high`, thinned evenly
/// to at most `most`. Empty for a range without a logarithm.
pub(crate) fn powers_of_two(low: f64, high: f64, most: usize) -> Vec<f64> {
    if !(low > 0.0 && low <= high && high.is_finite()) {
        return Vec::new();
    }
    let first = (low.log2() + 1e-9).floor() as i32;
    let last = (high.log2() - 1e-9).ceil().max(f64::from(first)) as i32;
    let stride = ((last - first + 1) as usize).div_ceil(most.max(2)).max(1);
    (first..=last).step_by(stride).map(|power| f64::from(power).exp2()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_nice() {
        assert_eq!(Ticks::covering(0.0, 58.3, 5.0).values, [0.0, 20.0, 40.0, 60.0]);
        assert_eq!(Ticks::covering(0.0, 1.0, 4.0).step, 0.5);
        assert_eq!(Ticks::covering(f64::NAN, 1.0, 4.0).low(), 0.0);
        assert_eq!(Ticks::covering(3.0, 3.0, 4.0).values, [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn sizes_double_evenly() {
        let scale =
            Scale { spacing: Spacing::Doubling, low: 16.0, high: 64.0, from: 0.0, to: 100.0 };
        assert_eq!([16.0, 32.0, 64.0, 128.0].map(|x| scale.place(x)), [0.0, 50.0, 100.0, 100.0]);
        assert_eq!(powers_of_two(16.0, 8192.0, 10).len(), 10);
        assert_eq!(powers_of_two(16.0, 8192.0, 5), [16.0, 64.0, 256.0, 1024.0, 4096.0]);
        assert!(powers_of_two(0.0, 8.0, 5).is_empty());
    }

    proptest! {
        #[test]
        fn ticks_cover_the_range(low in -1e9f64..1e9, span in 1e-6f64..1e9, wanted in 2f64..9.0) {
            let high = low + span;
            let ticks = Ticks::covering(low, high, wanted);
            let slack = ticks.step * 1e-6;
            if span > low.abs().max(high.abs()) * 1e-6 {
                prop_assert!(ticks.low() <= low + slack && ticks.high() >= high - slack);
            }
            prop_assert!((2..=14).contains(&ticks.values.len()));
            prop_assert!(ticks.values.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn a_place_is_on_the_axis(
            value in any::<f64>(),
            low in any::<f64>(),
            high in any::<f64>(),
        ) {
            for spacing in [Spacing::Even, Spacing::Doubling] {
                let place = Scale { spacing, low, high, from: 10.0, to: 90.0 }.place(value);
                prop_assert!((10.0..=90.0).contains(&place));
            }
        }
    }
}
