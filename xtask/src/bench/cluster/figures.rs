//! Times of queries in each way, as rows of a record.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::arms::ARMS;

/// Queries that are mostly joins, as in `cargo xtask bench sql`.
const JOIN_BOUND: [usize; 6] = [4, 5, 7, 9, 18, 21];

/// Seconds by query and way, a run each.
#[derive(Default)]
pub(super) struct Figures(BTreeMap<usize, [Vec<f64>; ARMS.len()]>);

impl Figures {
    pub(super) fn add(&mut self, query: usize, arm: usize, seconds: f64) {
        self.0.entry(query).or_default()[arm].push(seconds);
    }

    /// One for each query, and for sums of them.
    pub(super) fn rows(&self) -> Vec<Value> {
        let medians: BTreeMap<usize, [f64; ARMS.len()]> = self
            .0
            .iter()
            .map(|(query, arms)| (*query, arms.each_ref().map(|a| median(a))))
            .collect();
        let mut rows: Vec<Value> =
            medians.iter().map(|(query, arms)| row(&format!("q{query}"), *arms)).collect();
        let sum = |of: &dyn Fn(usize) -> bool| {
            let chosen = medians.iter().filter(|(query, _)| of(**query));
            chosen.fold([0.0; ARMS.len()], |mut sum, (_, arms)| {
                sum.iter_mut().zip(arms).for_each(|(sum, seconds)| *sum += seconds);
                sum
            })
        };
        if JOIN_BOUND.iter().all(|query| medians.contains_key(query)) {
            rows.push(row("join-bound six", sum(&|query| JOIN_BOUND.contains(&query))));
        }
        rows.push(row("all of them", sum(&|_| true)));
        rows
    }
}

fn row(name: &str, times: [f64; ARMS.len()]) -> Value {
    let [one, two, one_executor, same_plan, two_executors] = times;
    let mut row = Map::from_iter([("query".to_owned(), json!(name))]);
    row.extend(ARMS.iter().zip(times).map(|(arm, s)| ((*arm).to_owned(), json!(s * 1e3))));
    row.insert("two/one".into(), json!(one_executor / two_executors));
    row.insert("same plan".into(), json!(same_plan / two_executors));
    row.insert("overhead, 1 CPU".into(), json!(one_executor / one - 1.0));
    row.insert("overhead, 2 CPUs".into(), json!(two_executors / two - 1.0));
    Value::Object(row)
}

fn median(seconds: &[f64]) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_medians_and_their_ratios() {
        let mut figures = Figures::default();
        for (arm, seconds) in
            [[1.0, 2.0, 9.0], [1.0; 3], [3.0; 3], [3.6; 3], [1.5; 3]].iter().enumerate()
        {
            seconds.iter().for_each(|seconds| figures.add(4, arm, *seconds));
        }
        let rows = figures.rows();
        assert_eq!(rows.len(), 2, "the six are not all there");
        for row in &rows {
            assert_eq!(row["1 thread, ms"], 2000.0);
            assert_eq!((&row["two/one"], &row["same plan"]), (&json!(2.0), &json!(2.4)));
            assert_eq!(
                (&row["overhead, 1 CPU"], &row["overhead, 2 CPUs"]),
                (&json!(0.5), &json!(0.5))
            );
        }
        assert_eq!(median(&[4.0, 1.0]), 2.5);
    }
}
