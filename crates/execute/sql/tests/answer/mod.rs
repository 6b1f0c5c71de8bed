//! DuckDB's answer to a query, and whether ours is the same.
//!
//! ```text
//! name:TYPE|name:TYPE     the first line
//! value|value             a line for each row, in DuckDB's order
//! ```
//!
//! An answer is kept without the query's last LIMIT, and this is how one with it is held against
//! it. A query's order may leave rows equal, and then those before the limit are a matter of
//! chance; but the values that rows are ordered by are not: the first n rows have those of the
//! first n rows of any right answer. So the columns that the query orders by are the same, row by
//! row, and each row is one of the whole answer's, as often as there. After a key in floating point
//! no further one is compared: where that has equal values, and which, is a matter of rounding.

use std::collections::HashMap;
use std::path::Path;
use std::str::FromStr;

use bigdecimal::BigDecimal;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// The relative tolerance for values that DuckDB computes in floating point.
const TOLERANCE: f64 = 1e-9;

/// Columns by name and DuckDB's type, and rows in order.
pub(crate) struct Answer {
    columns: Vec<(String, String)>,
    rows: Vec<Vec<String>>,
}

/// The order that a query states of its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    /// Columns that it orders by, the first keys of its order.
    pub(crate) columns: Vec<usize>,
    pub(crate) limit: Option<usize>,
}

/// How a value may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// The same number.
    Number,
    /// Floating point in DuckDB or here; here it may be a decimal with this many places, truncated.
    Float(i32),
}

impl Answer {
    /// The answer in a file.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines();
        let columns = cells(lines.next().expect("a line of columns"));
        let typed = |column: &String| {
            let (name, kind) = column.rsplit_once(':').expect("name:TYPE");
            (name.to_owned(), kind.to_owned())
        };
        Self { columns: columns.iter().map(typed).collect(), rows: lines.map(cells).collect() }
    }

    /// The columns' names.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Compares it with result batches of a query with this order; the error says what differs.
    pub(crate) fn check(&self, batches: &[RecordBatch], order: &Order) -> Result<(), String> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let wanted = order.limit.map_or(self.rows.len(), |limit| limit.min(self.rows.len()));
        if rows != wanted {
            return Err(format!("{rows} rows instead of {wanted}"));
        }
        let Some(first) = batches.first() else { return Ok(()) };
        let schema = first.schema();
        if schema.fields().len() != self.columns.len() {
            return Err(format!("{} columns", schema.fields().len()));
        }
        let types = schema.fields().iter().map(|field| field.data_type());
        let kinds: Vec<_> =
            types.zip(&self.columns).map(|(ours, (_, duckdb))| kind(ours, duckdb)).collect();
        let found: Vec<_> = batches.iter().flat_map(shown).collect();
        let exact = |column: &&usize| !matches!(kinds[**column], Kind::Float(_));
        let keys = order.columns.iter().take_while(exact).count();
        let keys = &order.columns[..order.columns.len().min(keys + 1)];
        for (at, (found, wanted)) in found.iter().zip(&self.rows).enumerate() {
            let column = keys.iter().find(|c| !kinds[**c].equal(&found[**c], &wanted[**c]));
            if let Some(column) = column {
                let name = &self.columns[*column].0;
                return Err(format!("row {at} is {found:?} in the order of {name} of {wanted:?}"));
            }
        }
        MissingRows::of(&kinds, &self.rows).take_all(&found)
    }
}

/// Rows of the whole answer that are not yet found.
struct MissingRows<'a> {
    kinds: &'a [Kind],
    /// By the values that are compared exactly.
    rows: HashMap<Vec<String>, Vec<&'a [String]>>,
}

impl<'a> MissingRows<'a> {
    fn of(kinds: &'a [Kind], rows: &'a [Vec<String>]) -> Self {
        let mut left = Self { kinds, rows: HashMap::new() };
        // From the end, so that the first is what is tried first.
        for row in rows.iter().rev() {
            left.rows.entry(left.exact(row)).or_default().push(row);
        }
        left
    }

    fn exact(&self, row: &[String]) -> Vec<String> {
        let cells = self.kinds.iter().zip(row);
        cells.filter_map(|(kind, cell)| kind.exact(cell)).collect()
    }

    fn take_all(mut self, found: &[Vec<String>]) -> Result<(), String> {
        found.iter().enumerate().try_for_each(|(at, row)| {
            let alike = self.exact(row);
            let kinds = self.kinds;
            let same = |one: &&[String]| equal(kinds, row, one);
            let alike = self.rows.entry(alike).or_default();
            match alike.iter().rposition(same) {
                Some(at) => {
                    alike.remove(at);
                    Ok(())
                }
                None => Err(format!(
                    "row {at} is {row:?}, not left in the answer; like it: {:?}",
                    alike.last()
                )),
            }
        })
    }
}

fn kind(ours: &DataType, duckdb: &str) -> Kind {
    match (ours, duckdb) {
        (_, "VARCHAR" | "DATE") => Kind::Text,
        (DataType::Decimal128(_, scale), "DOUBLE") => Kind::Float((*scale).into()),
        (_, "DOUBLE") | (DataType::Float64, _) => Kind::Float(i32::MAX),
        _ => Kind::Number,
    }
}

fn shown(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = |column| ArrayFormatter::try_new(column, &options).expect("a plain type");
    let columns: Vec<_> =
        batch.columns().iter().map(|column| formatter(column as &dyn Array)).collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn equal(kinds: &[Kind], one: &[String], two: &[String]) -> bool {
    kinds.iter().zip(one.iter().zip(two)).all(|(kind, (one, two))| kind.equal(one, two))
}

fn decimal(text: &str) -> Option<BigDecimal> {
    BigDecimal::from_str(text).ok()
}

impl Kind {
    /// A text that only equal values have, of values that are compared exactly.
    fn exact(self, text: &str) -> Option<String> {
        match self {
            Self::Text => Some(text.to_owned()),
            Self::Number => Some(match decimal(text) {
                Some(number) => number.normalized().to_string(),
                None => text.to_owned(),
            }),
            Self::Float(_) => None,
        }
    }

    fn equal(self, found: &str, wanted: &str) -> bool {
        if found == wanted {
            return true;
        }
        match self {
            Self::Text => false,
            Self::Number => decimal(found).is_some() && decimal(found) == decimal(wanted),
            Self::Float(places) => match (found.parse::<f64>(), wanted.parse::<f64>()) {
                (Ok(found), Ok(wanted)) => {
                    let cut = 10_f64.powi(-places.min(300));
                    (found - wanted).abs() <= cut + TOLERANCE * wanted.abs()
                }
                _ => false,
            },
        }
    }
}

#[test]
fn only_floating_point_is_compared_with_a_tolerance() {
    assert!(Kind::Number.equal("1.50", "1.5") && !Kind::Number.equal("1.50", "1.51"));
    assert_eq!(Kind::Number.exact("1.50"), Kind::Number.exact("1.5"));
    assert!(!Kind::Text.equal("a", "b"));
    assert!(Kind::Float(4).equal("1.2345", "1.23456789"));
    assert!(!Kind::Float(6).equal("1.2345", "1.23456789"));
    assert!(!Kind::Number.equal("NULL", "0") && !Kind::Float(1).equal("NULL", "0"));
}

#[test]
fn rows_before_a_limit_may_be_any_of_equal_ones_and_no_others() {
    use datafusion::arrow::array::{ArrayRef, Int64Array};
    use std::sync::Arc;
    let columns = ["k", "v"].map(|name| (name.to_owned(), "BIGINT".to_owned())).to_vec();
    let rows = [["1", "5"], ["2", "6"], ["2", "7"], ["3", "8"]];
    let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
    let answer = Answer { columns, rows };
    let order = Order { columns: vec![0], limit: Some(2) };
    let check = |k: Vec<i64>, v: Vec<i64>| {
        let columns: [(_, ArrayRef); 2] =
            [("k", Arc::new(Int64Array::from(k))), ("v", Arc::new(Int64Array::from(v)))];
        let batch = RecordBatch::try_from_iter(columns).expect("two columns");
        answer.check(&[batch], &order).is_ok()
    };
    assert!(check(vec![1, 2], vec![5, 6]) && check(vec![1, 2], vec![5, 7]));
    // Another order, another row, a row of another key, a row too few.
    assert!(!check(vec![2, 1], vec![6, 5]) && !check(vec![1, 2], vec![5, 8]));
    assert!(!check(vec![1, 3], vec![5, 8]) && !check(vec![1], vec![5]));
}
