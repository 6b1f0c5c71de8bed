//! Runs that differ in what was drawn, as one sample.

use std::collections::BTreeMap;

use workahead_study::engine::Sample;

/// The mean of runs, with the answer of the last. Of several, the shortest and the longest time are
/// measures of it: the interval in which the mean of more would lie is narrower.
pub(crate) fn mean(mut samples: Vec<Sample>) -> Sample {
    let runs = samples.len();
    let Some(first) = samples.pop() else { return Sample::default() };
    if samples.is_empty() {
        return first;
    }
    let all = || samples.iter().chain([&first]);
    let of = |value: &dyn Fn(&Sample) -> f64| all().map(value).sum::<f64>() / runs as f64;
    // Ratios of events that did not happen in a run are of those in which they did.
    let mut measures: BTreeMap<String, (f64, u32)> = BTreeMap::new();
    for (name, value) in all().flat_map(|sample| &sample.measures) {
        let (sum, count) = measures.entry(name.clone()).or_default();
        *sum += value;
        *count += 1;
    }
    let mut measures: BTreeMap<String, f64> =
        measures.into_iter().map(|(name, (sum, count))| (name, sum / f64::from(count))).collect();
    let times = || all().map(|sample| sample.wall_s);
    measures.insert("wall_s_shortest".to_owned(), times().fold(f64::INFINITY, f64::min));
    measures.insert("wall_s_longest".to_owned(), times().fold(0.0, f64::max));
    Sample {
        wall_s: of(&|sample| sample.wall_s),
        cpu_s: Some(of(&|sample| sample.cpu_s.unwrap_or_default())),
        measures,
        ..first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(wall_s: f64, measures: &[(&str, f64)]) -> Sample {
        let measures = measures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Sample { wall_s, cpu_s: Some(1.0), measures, ..Sample::default() }
    }

    #[test]
    fn several_runs_are_one_sample() {
        let one = sample(2.0, &[("cpi", 3.0)]);
        assert_eq!(mean(vec![one.clone()]).measures, one.measures);
        let all = mean(vec![one, sample(4.0, &[("cpi", 1.0), ("overlap", 0.5)])]);
        assert_eq!(all.wall_s, 3.0);
        let expected =
            [("cpi", 2.0), ("overlap", 0.5), ("wall_s_longest", 4.0), ("wall_s_shortest", 2.0)];
        assert_eq!(all.measures, sample(0.0, &expected).measures);
    }
}
