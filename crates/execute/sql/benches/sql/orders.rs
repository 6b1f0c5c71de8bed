//! A star and a chain of six tables, each joined in orders drawn at random: what a wrong order
//! costs (worst over best of the orders' times), which filters between joins are to make small
//! (Robust Predicate Transfer, SIGMOD 2025).
//!
//! ```text
//! star   sales 6 M rows × scale ─► five dimensions of 1,000 to 1 M rows, a filter on each
//! chain  r1 ─► r2 ─► … ─► r6, 1 M rows × scale each, filters on r1, r4 and r6
//! order  join the parts that a random edge connects, until there is one (bushy for the chain)
//! ```
//!
//! DataFusion keeps the order that a query is written in, and chooses the build side of each join
//! by its estimates.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::shapes::{Shape, random};

/// Orders of each query.
pub(crate) const ORDERS: usize = 10;
const SALES_ROWS: f64 = 6e6;
const CHAIN_ROWS: f64 = 1e6;
const CHAIN: usize = 6;
const BATCH_ROWS: i64 = 8192;

/// Rows of each dimension, and how many of 100 its filter keeps.
const DIMENSIONS: [(i64, i64); 5] =
    [(1_000, 50), (10_000, 30), (100_000, 20), (200_000, 10), (1_000_000, 60)];
/// How many of 100 rows of each table of the chain pass its filter.
const CHAIN_KEEPS: [i64; CHAIN] = [50, 100, 100, 20, 100, 5];

/// Tables, and the conditions that connect two of them each.
struct Graph {
    name: &'static str,
    tables: Vec<String>,
    edges: Vec<(usize, usize, String)>,
    /// All filters, and what is counted.
    filter: String,
    sum: &'static str,
}

impl Graph {
    fn star() -> Self {
        let numbers = 1..=DIMENSIONS.len();
        let keeps = numbers.clone().zip(DIMENSIONS);
        Self {
            name: "star",
            tables: std::iter::once("sales".to_owned())
                .chain(numbers.clone().map(|at| format!("d{at}")))
                .collect(),
            edges: numbers.map(|at| (0, at, format!("sales.k{at} = d{at}.id"))).collect(),
            filter: keeps
                .map(|(at, (_, keeps))| format!("d{at}.part < {keeps}"))
                .collect::<Vec<_>>()
                .join(" and "),
            sum: "sum(sales.id)",
        }
    }

    fn chain() -> Self {
        let edge = |at: usize| (at, at + 1, format!("r{}.next = r{}.id", at + 1, at + 2));
        let filters = CHAIN_KEEPS.iter().zip(1..).filter(|(keeps, _)| **keeps < 100);
        Self {
            name: "chain",
            tables: (1..=CHAIN).map(|at| format!("r{at}")).collect(),
            edges: (0..CHAIN - 1).map(edge).collect(),
            filter: filters
                .map(|(keeps, at)| format!("r{at}.part < {keeps}"))
                .collect::<Vec<_>>()
                .join(" and "),
            sum: "sum(r1.id)",
        }
    }

    /// The joins in an order that the seed gives.
    fn ordered(&self, seed: i64) -> String {
        let mut parts: Vec<(BTreeSet<usize>, String)> = self
            .tables
            .iter()
            .enumerate()
            .map(|(at, name)| (BTreeSet::from([at]), name.clone()))
            .collect();
        let mut edges: Vec<&(usize, usize, String)> = self.edges.iter().collect();
        let mut draw = seed;
        while !edges.is_empty() {
            draw = random(draw);
            let (one, other, condition) = edges.swap_remove(draw as usize % edges.len());
            let mut part_of = |table: &usize| {
                let at = parts.iter().position(|(tables, _)| tables.contains(table));
                parts.swap_remove(at.expect("each table is in a part"))
            };
            let (left, right) = (part_of(one), part_of(other));
            let text = format!("({} join {} on {condition})", left.1, right.1);
            parts.push((left.0.union(&right.0).copied().collect(), text));
        }
        parts.swap_remove(0).1
    }

    /// The query in different orders.
    fn queries(&self) -> Vec<Shape> {
        let mut drawn = BTreeSet::new();
        let orders =
            (0..).map(|seed| self.ordered(seed)).filter(|order| drawn.insert(order.clone()));
        let query = |order: String| {
            let text = format!("select count(*), {} from {order} where {}", self.sum, self.filter);
            (format!("{} {order}", self.name), text)
        };
        orders.take(ORDERS).map(query).collect()
    }
}

/// The star's orders, then the chain's.
pub(crate) fn all() -> Vec<Shape> {
    [Graph::star(), Graph::chain()].iter().flat_map(Graph::queries).collect()
}

/// Numbers of the queries that are orders of the same, with what they are of.
pub(crate) fn sets() -> [(&'static str, Vec<usize>); 2] {
    [("star", (1..=ORDERS).collect()), ("chain", (ORDERS + 1..=2 * ORDERS).collect())]
}

/// The tables, in batches.
pub(crate) fn tables(scale: f64) -> Vec<(&'static str, Vec<RecordBatch>)> {
    let scaled = |rows: f64| ((rows * scale) as i64).max(1);
    let key = |salt: i64, rows: i64| move |row: i64| random(row ^ (salt << 40)) % rows;
    let part = |salt: i64| key(salt, 100);
    let id = |row: i64| row;
    let dimensions =
        DIMENSIONS.map(|(rows, _)| if rows > 1_000 { scaled(rows as f64) } else { rows });
    let [k1, k2, k3, k4, k5] = [0, 1, 2, 3, 4].map(|at: usize| key(at as i64 + 1, dimensions[at]));
    let sales: [Column; 6] =
        [("id", &id), ("k1", &k1), ("k2", &k2), ("k3", &k3), ("k4", &k4), ("k5", &k5)];
    let mut tables = vec![("sales", batches(scaled(SALES_ROWS), &sales))];
    for (name, (rows, salt)) in
        ["d1", "d2", "d3", "d4", "d5"].into_iter().zip(dimensions.into_iter().zip(11..))
    {
        tables.push((name, batches(rows, &[("id", &id), ("part", &part(salt))])));
    }
    let rows = scaled(CHAIN_ROWS);
    for (name, salt) in ["r1", "r2", "r3", "r4", "r5", "r6"].into_iter().zip(21..) {
        let (next, part) = (key(salt, rows), part(salt + 10));
        tables.push((name, batches(rows, &[("id", &id), ("next", &next), ("part", &part)])));
    }
    tables
}

/// A name, and a row's value.
type Column<'a> = (&'a str, &'a dyn Fn(i64) -> i64);

fn batches(rows: i64, columns: &[Column]) -> Vec<RecordBatch> {
    let batch = |start: i64| {
        let rows = start..(start + BATCH_ROWS).min(rows);
        let column = |(name, value): &Column| {
            let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(value)));
            ((*name).to_owned(), values)
        };
        RecordBatch::try_from_iter(columns.iter().map(column)).expect("columns of one length")
    };
    (0..rows).step_by(BATCH_ROWS as usize).map(batch).collect()
}
