//! Inputs of the benches: batches of an integer key and integer columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};

/// A column of a batch that is not its key.
fn payload(row: i64, column: usize) -> i64 {
    row.wrapping_mul(2 * column as i64 + 3).wrapping_add(column as i64)
}

/// Batches of at most `batch_rows`: `key`, and a number of columns called `<name>0`, `<name>1`, ….
pub(crate) fn batches(
    keys: &[i64],
    (name, columns): (&str, usize),
    batch_rows: usize,
) -> Vec<RecordBatch> {
    let batch = |(number, keys): (usize, &[i64])| {
        let first = (number * batch_rows) as i64;
        let rows = || first..first + keys.len() as i64;
        let of = |column| Int64Array::from_iter_values(rows().map(|row| payload(row, column)));
        let columns = (0..columns).map(|at| (format!("{name}{at}"), Arc::new(of(at)) as ArrayRef));
        let key = Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
        RecordBatch::try_from_iter([("key".to_owned(), key)].into_iter().chain(columns))
    };
    keys.chunks(batch_rows)
        .enumerate()
        .map(|keys| batch(keys).expect("columns of one length"))
        .collect()
}

/// The sum of all columns of a batch.
pub(crate) fn sum(batch: &RecordBatch) -> u64 {
    let of = |column: &ArrayRef| {
        let values = column.as_primitive::<Int64Type>().values();
        values.iter().fold(0_u64, |sum, value| sum.wrapping_add(*value as u64))
    };
    batch.columns().iter().map(of).fold(0, u64::wrapping_add)
}
