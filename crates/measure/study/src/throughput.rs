//! The unit of throughputs: one choice for the summary of a run and for the report.
//!
//! Samples keep millions of tuples a second. People read queries a second, millions of probes a
//! second, or orders a minute: `method.tuples` names the tuples, the rest follows from the largest
//! figure, so that all figures of a result share one unit.

/// From this many a second on, millions are counted.
const MILLIONS_FROM_PER_S: f64 = 1e5;

/// Below this many a second, minutes are counted.
const MINUTES_BELOW_PER_S: f64 = 1.0;

/// A unit of throughputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// `queries/s`, `million probes/s`, `orders/min`.
    pub name: String,
    /// The value of one million tuples a second in it.
    pub factor: f64,
}

impl Unit {
    /// For these tuples and all figures in millions a second. A study may fix the time with `tuples
    /// = "new orders/min"`, or by the second where figures lie far apart.
    pub fn of(tuples: &str, mtuples_per_s: impl Iterator<Item = f64>) -> Unit {
        if let Some(counted) = tuples.strip_suffix("/min") {
            return Unit { name: format!("{counted}/min"), factor: 60e6 };
        }
        if tuples.ends_with("/s") {
            return Unit { name: tuples.to_owned(), factor: 1e6 };
        }
        let finite = mtuples_per_s.filter(|value| value.is_finite());
        let most_per_s = finite.fold(None, |most: Option<f64>, value| {
            Some(most.map_or(value, |most| most.max(value)))
        });
        match most_per_s.map(|most| most * 1e6) {
            Some(most) if most > 0.0 && most < MINUTES_BELOW_PER_S => {
                Unit { name: format!("{tuples}/min"), factor: 60e6 }
            }
            Some(most) if most < MILLIONS_FROM_PER_S => {
                Unit { name: format!("{tuples}/s"), factor: 1e6 }
            }
            _ if tuples == "tuples" => Unit { name: "Mtuples/s".to_owned(), factor: 1.0 },
            _ => Unit { name: format!("million {tuples}/s"), factor: 1.0 },
        }
    }

    /// A throughput in this unit.
    pub fn scaled(&self, mtuples_per_s: f64) -> f64 {
        mtuples_per_s * self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_follows_from_name_and_figures() {
        let named = |tuples, most: f64| Unit::of(tuples, [most / 2.0, most, f64::NAN].into_iter());
        assert_eq!(named("queries", 3000e-6).name, "queries/s");
        assert!((named("queries", 3000e-6).scaled(45e-6) - 45.0).abs() < 1e-9);
        assert_eq!(named("probes", 58.0).name, "million probes/s");
        assert_eq!(named("tuples", 58.0).name, "Mtuples/s");
        assert_eq!(named("power runs", 0.01e-6).name, "power runs/min");
        assert!((named("power runs", 0.01e-6).scaled(0.01e-6) - 0.6).abs() < 1e-12);
        assert_eq!(named("new orders/min", 58.0).name, "new orders/min");
        assert_eq!(named("passes/s", 58.0), Unit { name: "passes/s".to_owned(), factor: 1e6 });
        assert_eq!(Unit::of("queries", [].into_iter()).factor, 1.0);
    }
}
