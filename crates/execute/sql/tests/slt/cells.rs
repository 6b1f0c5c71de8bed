//! Result rows as text, by the rules of DataFusion's own runner: they are what the files expect.

use std::str::FromStr;

use bigdecimal::BigDecimal;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// Decimal places of floating-point numbers.
const PLACES: i64 = 12;

/// The rows of a batch.
pub(crate) fn rows(batch: &RecordBatch) -> impl Iterator<Item = Vec<String>> + '_ {
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|c| cell(c, row)).collect())
}

fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "NULL".to_owned();
    }
    match column.data_type() {
        DataType::Float16 => float(column.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => {
            let value = column.as_primitive::<Float32Type>().value(row);
            // By its own shortest digits, not by those of the double it widens to.
            if value.is_finite() { number(&value.to_string(), PLACES) } else { float(value.into()) }
        }
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => number(&shown(column, row), i64::from(*scale)),
        DataType::Utf8 => text(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row)),
        DataType::Utf8View => text(column.as_string_view().value(row)),
        DataType::Dictionary(_, _) => {
            let dictionary = column.as_any_dictionary();
            cell(dictionary.values(), dictionary.normalized_keys()[row])
        }
        _ => shown(column, row),
    }
}

fn shown(column: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(column, &options);
    formatter.map_or_else(|error| error.to_string(), |formatter| formatter.value(row).to_string())
}

fn text(value: &str) -> String {
    match value {
        "" => "(empty)".to_owned(),
        value => value.trim_end_matches('\n').replace('\0', "\\0"),
    }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    number(&value.to_string(), PLACES)
}

fn number(digits: &str, places: i64) -> String {
    let value = BigDecimal::from_str(digits).expect("digits that were just written");
    value.round(places).normalized().to_plain_string()
}
