//! DuckDB's answer to a query, and whether ours is the same.

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

/// How a value may differ.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// The same number.
    Number,
    /// Floating point in DuckDB; here it may be a decimal with this many places, truncated.
    Float(i32),
}

impl Answer {
    /// The answer to a query.
    pub(crate) fn of(number: usize) -> Self {
        let answers = manifest_folder().join("tests/tpch/answers");
        let path = answers.join(format!("q{number:02}.txt"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines();
        let columns = cells(lines.next().expect("a line of columns"));
        let typed = |column: &String| {
            let (name, kind) = column.split_once(':').expect("name:TYPE");
            (name.to_owned(), kind.to_owned())
        };
        Self { columns: columns.iter().map(typed).collect(), rows: lines.map(cells).collect() }
    }

    /// Compares it with result batches; the error says what differs.
    pub(crate) fn check(&self, batches: &[RecordBatch]) -> Result<(), String> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows != self.rows.len() {
            return Err(format!("{rows} rows instead of {}", self.rows.len()));
        }
        let Some(first) = batches.first() else { return Ok(()) };
        let schema = first.schema();
        let names = schema.fields().iter().map(|field| field.name());
        if !names.eq(self.columns.iter().map(|(name, _)| name)) {
            return Err(format!("columns {schema:?}"));
        }
        let types = schema.fields().iter().map(|field| field.data_type());
        let types: Vec<_> =
            types.zip(&self.columns).map(|(ours, (_, duckdb))| kind(ours, duckdb)).collect();
        let mut found: Vec<_> = batches.iter().flat_map(shown).collect();
        let mut wanted = self.rows.clone();
        if !equal(&types, &found, &wanted) {
            // Rows may change places where the query's order leaves them equal.
            found.sort();
            wanted.sort();
        }
        for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            if !equal(&types, std::slice::from_ref(found), std::slice::from_ref(wanted)) {
                return Err(format!("row {at} is {found:?} instead of {wanted:?}"));
            }
        }
        Ok(())
    }
}

fn kind(ours: &DataType, duckdb: &str) -> Kind {
    match (ours, duckdb) {
        (DataType::Decimal128(_, scale), "DOUBLE") => Kind::Float((*scale).into()),
        (_, "DOUBLE") => Kind::Float(i32::MAX),
        (_, "VARCHAR" | "DATE") => Kind::Text,
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

fn equal(kinds: &[Kind], one: &[Vec<String>], two: &[Vec<String>]) -> bool {
    one.iter().zip(two).all(|(one, two)| {
        kinds.iter().zip(one.iter().zip(two)).all(|(kind, (one, two))| kind.equal(one, two))
    })
}

impl Kind {
    fn equal(self, found: &str, wanted: &str) -> bool {
        if found == wanted {
            return true;
        }
        let decimal = |text: &str| BigDecimal::from_str(text).ok();
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
    assert!(!Kind::Text.equal("a", "b"));
    assert!(Kind::Float(4).equal("1.2345", "1.23456789"));
    assert!(!Kind::Float(6).equal("1.2345", "1.23456789"));
    assert!(!Kind::Number.equal("NULL", "0") && !Kind::Float(1).equal("NULL", "0"));
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
