//! Numbers that follow a machine's cores: `"1.5 per core"` is 6 on four of them.
//!
//! Chang (2013) has four cores and degrees of parallelism up to 8: what is said of 8 is said of two
//! threads a core, and on sixteen cores of 32.

use crate::setting::{Setting, Settings};
use crate::spec::Spec;

/// More threads a core are a typing error.
const FACTOR_MAX: f64 = 64.0;

impl Spec {
    /// With numbers for this many cores in place of those per core: the nearest whole one, at least
    /// 1. Values of an axis that are the same there are one.
    #[must_use]
    pub(crate) fn on_cores(mut self, cores: usize) -> Spec {
        let value = |value: &mut Setting| {
            if let Some(factor) = value.as_text().and_then(factor) {
                *value = Setting::Integer((factor * cores as f64).round().max(1.0) as i64);
            }
        };
        let list = |values: &mut Vec<Setting>| {
            values.iter_mut().for_each(value);
            let mut first = Vec::with_capacity(values.len());
            values.retain(|value| {
                let is_new = !first.contains(value);
                first.push(value.clone());
                is_new
            });
        };
        let settings = |settings: &mut Settings| settings.values_mut().for_each(value);
        self.axes.iter_mut().for_each(|axis| list(&mut axis.values));
        for sweep in &mut self.sweeps {
            list(&mut sweep.values);
            settings(&mut sweep.cells);
        }
        settings(&mut self.workload);
        self.cases.iter_mut().for_each(|case| settings(&mut case.settings));
        settings(&mut self.method.baseline);
        self.method.charts.iter_mut().for_each(|chart| settings(&mut chart.only));
        for claim in &mut self.claims {
            let compared = [&mut claim.cells, &mut claim.against, &mut claim.than];
            compared.into_iter().chain(&mut claim.except).for_each(settings);
        }
        self
    }
}

/// 1.5 of `1.5 per core`.
fn factor(text: &str) -> Option<f64> {
    let factor: f64 = text.strip_suffix(" per core")?.parse().ok()?;
    (factor > 0.0 && factor <= FACTOR_MAX).then_some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
        title = "t"
        question = "q"
        engine = "e"
        workload = { clients = "0.5 per core", name = "a core" }
        [axes]
        parallel = [
            1, 2, "0.5 per core", "1 per core", "1.25 per core", "1.5 per core", "1.75 per core",
            "2 per core",
        ]
        [method]
        baseline = { parallel = 1 }
        repetitions = 2
        [[paper]]
        row = "E1.1"
        figure = "f"
        where = { parallel = "2 per core" }
        against = { parallel = "1 per core" }
        direction = "faster"
        says = "s"
    "#;

    fn on(cores: usize) -> (Vec<Setting>, Spec) {
        let spec = Spec::parse("demo", STUDY).unwrap().on_cores(cores);
        (spec.axes[0].values.clone(), spec)
    }

    #[test]
    fn four_cores_have_the_degrees_that_are_printed() {
        let whole = |of: &[i64]| of.iter().copied().map(Setting::Integer).collect::<Vec<_>>();
        let (degrees, spec) = on(4);
        assert_eq!(degrees, whole(&[1, 2, 4, 5, 6, 7, 8]));
        assert_eq!(spec.claims[0].cells["parallel"], Setting::Integer(8));
        assert_eq!(spec.claims[0].against["parallel"], Setting::Integer(4));
        assert_eq!(spec.workload["clients"], Setting::Integer(2));
        assert_eq!(spec.workload["name"], Setting::from("a core"));
        assert_eq!(on(16).0, whole(&[1, 2, 8, 16, 20, 24, 28, 32]));
        assert_eq!(on(2).0, whole(&[1, 2, 3, 4]));
        assert_eq!(on(1).0, whole(&[1, 2]));
    }

    #[test]
    fn only_factors_are_numbers() {
        for text in
            ["per core", " per core", "0 per core", "-1 cores", "NaN cores", "65 per core", "4"]
        {
            assert_eq!(factor(text), None, "{text}");
        }
        assert_eq!(factor("1.25 per core"), Some(1.25));
    }
}
