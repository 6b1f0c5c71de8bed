//! Times of queries in each way, as tables of a record.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::targets;
use super::ways::{Cost, WAYS, Way};
use crate::bench::peers::rounds::median;

/// Queries that are mostly joins, as in `cargo xtask bench sql`.
const JOIN_BOUND: [usize; 6] = [4, 5, 7, 9, 18, 21];

/// Workers that took less than this share of a query's CPU time did not run it.
const IDLE_SHARE: f64 = 0.1;

/// A figure for each way.
pub(super) type Row = [f64; WAYS.len()];

/// Runs by query and way, a round each, and the rows of each query.
pub(super) struct Figures {
    workers: usize,
    costs: BTreeMap<usize, [Vec<Cost>; WAYS.len()]>,
    rows: BTreeMap<usize, Vec<String>>,
}

/// One figure of all queries, and sums of it.
pub(super) struct Table {
    pub(super) queries: BTreeMap<usize, Row>,
}

impl Figures {
    pub(super) fn new(workers: usize) -> Self {
        Self { workers, costs: BTreeMap::new(), rows: BTreeMap::new() }
    }

    /// Compares the rows of a query to those that it had first.
    pub(super) fn check(&mut self, query: usize, rows: Vec<String>) -> Result<()> {
        let first = self.rows.entry(query).or_insert_with(|| rows.clone());
        if *first == rows {
            return Ok(());
        }
        let own = rows.iter().find(|row| first.binary_search(row).is_err());
        let (count, all) = (rows.len(), first.len());
        bail!("q{query} has other rows than in another way: {count} lines, not {all}; {own:?}")
    }

    pub(super) fn add(&mut self, query: usize, way: Way, cost: Cost) {
        self.costs.entry(query).or_default()[way as usize].push(cost);
    }

    fn table(&self, of: impl Fn(&[Cost]) -> f64) -> Table {
        let rows = self.costs.iter().map(|(query, ways)| (*query, ways.each_ref().map(|w| of(w))));
        Table { queries: rows.collect() }
    }

    /// Times, CPU times, bytes if any report had them, and the targets.
    pub(super) fn tables(&self) -> Vec<Value> {
        let wall_s = self.table(|costs| median(costs.iter().map(|cost| cost.wall_s).collect()));
        let cpu_s = self.table(|costs| mean(costs.iter().map(Cost::cpu_s)));
        let bytes = self.table(|costs| mean(costs.iter().filter_map(|cost| cost.exchanged_bytes)));
        let mut tables = vec![
            json!({ "title": "Time, ms", "rows": self.rows(&wall_s, 1e3) }),
            json!({ "title": "CPU time, ms", "rows": self.rows(&cpu_s, 1e3) }),
        ];
        if bytes.queries.values().flatten().any(|bytes| *bytes > 0.0) {
            let rows = self.rows(&bytes, 1e-6);
            tables.push(json!({ "title": "Exchanged between processes, MB", "rows": rows }));
        }
        let rows = targets::rows(&wall_s, &cpu_s, &bytes, self.workers);
        tables.push(json!({ "title": "Targets", "rows": rows }));
        tables
    }

    /// One for each query, and for sums of them.
    fn rows(&self, table: &Table, unit: f64) -> Vec<Value> {
        let row = |name: String, figures: Row| {
            let mut row = Map::from_iter([("query".to_owned(), json!(name))]);
            let figures = WAYS.iter().zip(figures);
            let figures = figures.map(|(way, x)| (way.name(self.workers), json!(x * unit)));
            row.extend(figures);
            Value::Object(row)
        };
        let queries = table.queries.iter().map(|(query, row)| (format!("q{query}"), *row));
        let six = table.six().map(|row| ("join-bound six".to_owned(), row));
        let all = ("all of them".to_owned(), table.all());
        queries.chain(six).chain([all]).map(|(name, figures)| row(name, figures)).collect()
    }

    /// Ways that should have run on workers, with the queries that their workers did nothing for.
    pub(super) fn run_elsewhere(&self) -> Vec<String> {
        let mut found = Vec::new();
        for way in WAYS.into_iter().filter(|way| way.needs_workers()) {
            let idle = self.costs.iter().filter(|(_, ways)| {
                let costs = &ways[way as usize];
                let workers_cpu_s: f64 = costs.iter().map(|cost| cost.workers_cpu_s).sum();
                workers_cpu_s < IDLE_SHARE * costs.iter().map(Cost::cpu_s).sum::<f64>()
            });
            let idle: Vec<String> = idle.map(|(query, _)| format!("q{query}")).collect();
            if !idle.is_empty() {
                found.push(format!("{} ({})", way.name(self.workers), idle.join(", ")));
            }
        }
        found
    }

    /// Every run, for other statistics.
    pub(super) fn raw(&self) -> Vec<Value> {
        let mut raw = Vec::new();
        for (query, ways) in &self.costs {
            for (way, costs) in WAYS.iter().zip(ways) {
                let name = way.name(self.workers);
                raw.extend(
                    costs.iter().zip(1..).map(|(cost, round)| cost.json(&name, *query, round)),
                );
            }
        }
        raw
    }
}

impl Table {
    /// The sums over all queries.
    pub(super) fn all(&self) -> Row {
        self.sum(|_| true)
    }

    /// The sums over those that are mostly joins, if all of these were run.
    pub(super) fn six(&self) -> Option<Row> {
        let whole = JOIN_BOUND.iter().all(|query| self.queries.contains_key(query));
        whole.then(|| self.sum(|query| JOIN_BOUND.contains(&query)))
    }

    /// The part of the table that is mostly joins.
    pub(super) fn join_bound(&self) -> Self {
        let rows = self.queries.iter().filter(|(query, _)| JOIN_BOUND.contains(query));
        Self { queries: rows.map(|(query, row)| (*query, *row)).collect() }
    }

    fn sum(&self, of: impl Fn(usize) -> bool) -> Row {
        let chosen = self.queries.iter().filter(|(query, _)| of(**query));
        chosen.fold([0.0; WAYS.len()], |mut sum, (_, row)| {
            sum.iter_mut().zip(row).for_each(|(sum, figure)| *sum += figure);
            sum
        })
    }
}

/// Of none, zero.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    values.for_each(|value| {
        sum += value;
        count += 1;
    });
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(wall_s: f64, exchanged_bytes: Option<f64>) -> Cost {
        Cost { wall_s, client_cpu_s: wall_s / 4.0, workers_cpu_s: wall_s / 4.0, exchanged_bytes }
    }

    fn figures(exchanged_bytes: Option<f64>) -> Figures {
        let mut figures = Figures::new(2);
        for (way, walls) in WAYS.into_iter().zip([[1.0, 2.0, 9.0]; WAYS.len()]) {
            walls.iter().for_each(|wall_s| figures.add(4, way, cost(*wall_s, exchanged_bytes)));
        }
        figures
    }

    #[test]
    fn times_are_medians_and_cpu_times_are_means() {
        let tables = figures(None).tables();
        assert_eq!(tables.len(), 3, "no report has bytes");
        for (table, figure) in [(0, 2000.0), (1, 2000.0)] {
            let rows = tables[table]["rows"].as_array().unwrap();
            assert_eq!(rows.len(), 2, "the six are not all there");
            for row in rows {
                assert_eq!(
                    (&row["1 thread"], &row["2 workers, stock"]),
                    (&json!(figure), &json!(figure))
                );
            }
        }
        let tables = figures(Some(2e6)).tables();
        assert_eq!(tables[2]["rows"][0]["2 workers"], 2.0);
        assert_eq!(figures(None).raw().len(), 3 * WAYS.len());
    }

    #[test]
    fn queries_that_no_worker_ran_are_named() {
        let mut figures = figures(None);
        assert_eq!(figures.run_elsewhere(), [""; 0]);
        let here = Cost { workers_cpu_s: 0.0, ..cost(1.0, None) };
        for way in WAYS {
            figures.add(21, way, here);
        }
        let found = [
            "1 worker (q21)",
            "2 workers (q21)",
            "2 workers, no filters (q21)",
            "2 workers, stock (q21)",
        ];
        assert_eq!(figures.run_elsewhere(), found);
    }

    #[test]
    fn other_rows_are_refused_and_named() {
        let rows = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>();
        let mut figures = Figures::new(2);
        figures.check(1, rows(&["a", "b"])).unwrap();
        figures.check(1, rows(&["a", "b"])).unwrap();
        let error = figures.check(1, rows(&["a", "x"])).unwrap_err().to_string();
        assert!(error.contains("\"x\""), "{error}");
        assert!(figures.check(1, rows(&["a"])).is_err());
    }
}
