//! Bytes of rows as they are written out: what a dictionary's key refers to counts in each row, as
//! does the value of a run and what lists share.
//!
//! Batches in memory share such values, so one of few bytes may be gigabytes once it is written;
//! texts of more than 2 GiB don't even fit an array. It is cut before that.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::batch::halved;
use crate::row_bytes::{Measure, nested_bytes, run_bytes, widest_row};

/// Of rows that are written: an item of a list has two levels in Parquet and, while it is encoded,
/// its number among the values.
const WRITTEN: Measure =
    Measure { run_bytes: decoded_bytes, item_bytes: 2 * size_of::<i16>() + size_of::<usize>() };

/// Slices of a batch of at most `bytes_max` bytes each, unless a single row has more. What the keys
/// of a dictionary refer to counts as often as they do.
pub fn decoded_pieces(
    batch: &RecordBatch,
    bytes_max: usize,
) -> impl Iterator<Item = RecordBatch> + use<> {
    halved(vec![batch.clone()], move |piece| {
        let columns = piece.columns().iter();
        columns.fold(0, |sum: usize, column| sum.saturating_add(at_most(column))) <= bytes_max
            || decoded_bytes_of(piece) <= bytes_max
    })
}

/// Bytes of a column, without a look at each row of a short dictionary.
fn at_most(column: &dyn Array) -> usize {
    if let DataType::Dictionary(..) = column.data_type() {
        let values = column.as_any_dictionary().values();
        if values.len() <= column.len() {
            return column.len().saturating_mul(widest_row(values));
        }
    }
    decoded_bytes(column, 0..column.len())
}

fn decoded_bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns.map(|column| decoded_bytes(column, 0..column.len())).fold(0, usize::saturating_add)
}

fn decoded_bytes(array: &dyn Array, rows: Range<usize>) -> usize {
    if !matches!(array.data_type(), DataType::Dictionary(..)) {
        let nested = nested_bytes(array, rows.clone(), WRITTEN);
        return nested.unwrap_or_else(|| run_bytes(array, rows));
    }
    let run = array.slice(rows.start, rows.len());
    let dictionary = run.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return 0;
    }
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    let keys = keys.filter(|(row, _)| run.is_valid(*row));
    keys.map(|(_, key)| decoded_bytes(values, key..key + 1)).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int8Array, Int32Array, Int64Array, ListViewArray, RunArray,
        StringArray, StructArray,
    };
    use arrow_schema::Field;
    use arrow_select::concat::concat_batches;

    use super::*;

    /// Every tenth text has a thousand bytes, the others have one; some are missing.
    fn dictionary(rows: usize) -> ArrayRef {
        let wide = "w".repeat(1_000);
        let texts = (0..rows).map(|row| match row % 10 {
            3 => None,
            7 => Some(&wide[..]),
            _ => Some("n"),
        });
        Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
    }

    fn batch(rows: usize) -> RecordBatch {
        let texts = dictionary(rows);
        let field = Arc::new(Field::new("text", texts.data_type().clone(), true));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, texts.clone())]));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        let columns = [("id", ids), ("text", texts), ("nested", nested)];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
    }

    #[test]
    fn pieces_have_few_bytes_and_all_rows() {
        let batch = batch(1_000);
        for bytes_max in [0, 100, 3_000, 100_000, usize::MAX] {
            let pieces: Vec<_> = decoded_pieces(&batch, bytes_max).collect();
            for piece in &pieces {
                assert!(piece.num_rows() == 1 || decoded_bytes_of(piece) <= bytes_max);
            }
            assert_eq!(concat_batches(&batch.schema(), &pieces).unwrap(), batch, "{bytes_max}");
        }
        assert_eq!(decoded_pieces(&batch, usize::MAX).count(), 1);
        assert_eq!(decoded_pieces(&batch, decoded_bytes_of(&batch)).count(), 1);
    }

    #[test]
    fn what_rows_share_is_cut_too() {
        let text = StringArray::from(vec!["w".repeat(1_000)]);
        let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![64]), &text).unwrap();
        let item = Arc::new(Field::new("item", DataType::Int8, true));
        let items: ArrayRef = Arc::new(Int8Array::from(vec![7; 1_000]));
        let (offsets, sizes) = (vec![0_i32; 64], vec![1_000_i32; 64]);
        let lists = ListViewArray::new(item, offsets.into(), sizes.into(), items, None);
        // A text and its place; numbers of a byte, and where the list begins and ends.
        let columns: [(ArrayRef, usize); 2] =
            [(Arc::new(runs), 1_004), (Arc::new(lists), 1_000 * (1 + WRITTEN.item_bytes) + 8)];
        for (column, row_bytes) in columns {
            let batch = RecordBatch::try_from_iter([("shared", column)]).unwrap();
            let pieces: Vec<_> = decoded_pieces(&batch, 4 * row_bytes).collect();
            assert!(pieces.iter().all(|piece| piece.num_rows() == 4));
            assert_eq!(pieces.len(), 16);
            assert_eq!(decoded_pieces(&batch, 64 * row_bytes).count(), 1);
        }
    }

    #[test]
    fn each_row_has_what_its_key_refers_to() {
        let column = dictionary(20);
        // A text and its place in an array of texts.
        assert_eq!(decoded_bytes(&column, 0..10), 1_000 + 8 + 9 * 4);
        assert_eq!(decoded_bytes(&column, 3..4), 0);
        assert_eq!(decoded_bytes(&column.slice(5, 5), 2..3), 1_004);
        let none: ArrayRef =
            Arc::new([None::<&str>; 2].into_iter().collect::<DictionaryArray<Int32Type>>());
        assert_eq!(decoded_bytes(&none, 0..2), 0);
        assert_eq!(decoded_pieces(&batch(0), 0).count(), 1);
    }
}
