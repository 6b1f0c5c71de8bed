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
use crate::row_bytes::{Measure, nested_bytes, run_bytes, widest_nested, widest_row};

/// Of rows that are written: an item of a list has two levels in Parquet and, while it is encoded,
/// its number among the values.
const WRITTEN: Measure =
    Measure { run_bytes: decoded_bytes, item_bytes: 2 * size_of::<i16>() + size_of::<usize>() };

/// Keys that are looked at together: they are copied to eight bytes each.
const KEYS: usize = 256;

/// Slices of a batch of at most `bytes_max` bytes each, unless a single row has more. What the keys
/// of a dictionary refer to counts as often as they do.
///
/// Beside each that is a single row, how much larger its lists of keys are written than they are in
/// memory: a writer makes all items of a row at once, so only the caller can refuse it.
pub fn decoded_pieces(
    batch: &RecordBatch,
    bytes_max: usize,
) -> impl Iterator<Item = (RecordBatch, usize)> + use<> {
    let pieces = halved(vec![batch.clone()], move |piece| {
        let columns = piece.columns().iter();
        columns.fold(0, |sum: usize, column| sum.saturating_add(at_most(column))) <= bytes_max
            || decoded_bytes_of(piece) <= bytes_max
    });
    pieces.map(|piece| {
        let made = if piece.num_rows() == 1 { made_in_lists(&piece) } else { 0 };
        (piece, made)
    })
}

/// Bytes of a row that are not in memory, because lists have keys of a dictionary.
fn made_in_lists(row: &RecordBatch) -> usize {
    let lists = row.columns().iter().filter(|column| has_keys(column.data_type(), false));
    let made = lists.map(|column| {
        let bytes = decoded_bytes(column, 0..column.len());
        bytes.saturating_sub(run_bytes(column, 0..column.len()))
    });
    made.fold(0, usize::saturating_add)
}

/// Whether lists have keys of a dictionary; or, if a type is that of items, whether they have.
fn has_keys(data_type: &DataType, items: bool) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => items || has_keys(value, false),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => has_keys(item.data_type(), true),
        DataType::Struct(fields) => fields.iter().any(|field| has_keys(field.data_type(), items)),
        DataType::Union(fields, _) => {
            fields.iter().any(|(_, field)| has_keys(field.data_type(), items))
        }
        DataType::RunEndEncoded(_, value) => has_keys(value.data_type(), items),
        _ => false,
    }
}

/// Bytes of a column, without a look at each row of a short dictionary.
fn at_most(column: &dyn Array) -> usize {
    if let DataType::Dictionary(..) = column.data_type() {
        let values = column.as_any_dictionary().values();
        if values.len() <= column.len() {
            return column.len().saturating_mul(widest_decoded(values));
        }
    }
    decoded_bytes(column, 0..column.len())
}

fn decoded_bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns.map(|column| decoded_bytes(column, 0..column.len())).fold(0, usize::saturating_add)
}

fn decoded_bytes(array: &dyn Array, rows: Range<usize>) -> usize {
    let DataType::Dictionary(..) = array.data_type() else {
        let nested = nested_bytes(array, rows.clone(), WRITTEN);
        return nested.unwrap_or_else(|| run_bytes(array, rows));
    };
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if rows.is_empty() || values.is_empty() {
        return 0;
    }
    let bytes = rows.clone().step_by(KEYS).map(|start| {
        let run = array.slice(start, KEYS.min(rows.end - start));
        let keys = run.as_any_dictionary().normalized_keys().into_iter().enumerate();
        let keys = keys.filter(|(row, _)| run.is_valid(*row));
        keys.map(|(_, key)| decoded_bytes(values, key..key + 1)).fold(0, usize::saturating_add)
    });
    bytes.fold(0, usize::saturating_add)
}

/// Most bytes of a row.
fn widest_decoded(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Dictionary(..) => widest_decoded(array.as_any_dictionary().values()),
        DataType::RunEndEncoded(..) => widest_nested(array, decoded_bytes, widest_decoded),
        nested if nested.is_nested() => widest_nested(array, decoded_bytes, widest_decoded),
        _ => widest_row(array),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        ArrayRef, DictionaryArray, Int8Array, Int32Array, Int64Array, ListArray, ListViewArray,
        RunArray, StringArray, StringViewArray, StructArray,
    };
    use arrow_buffer::OffsetBuffer;
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
            let pieces = decoded_pieces(&batch, bytes_max).map(|(piece, made)| {
                assert_eq!(made, 0, "no lists of keys");
                piece
            });
            let pieces: Vec<_> = pieces.collect();
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
            assert!(pieces.iter().all(|(piece, _)| piece.num_rows() == 4));
            assert_eq!(pieces.len(), 16);
            assert_eq!(decoded_pieces(&batch, 64 * row_bytes).count(), 1);
        }
    }

    /// Lists of as many items each.
    fn lists(rows: usize, items: ArrayRef) -> ArrayRef {
        let field = Arc::new(Field::new("item", items.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(vec![items.len() / rows; rows]);
        Arc::new(ListArray::new(field, offsets, items, None))
    }

    /// Keys that all refer to the same value.
    fn keys(count: usize, value: ArrayRef) -> ArrayRef {
        Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(vec![0; count]), value))
    }

    #[test]
    fn a_row_of_many_keys_comes_with_what_they_make() {
        let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["w".repeat(1_000)])) };
        let made = 20 * (1_004 + WRITTEN.item_bytes - 1);
        let field = |of: &ArrayRef| Arc::new(Field::new("field", of.data_type().clone(), true));
        let structs =
            |of: ArrayRef| -> ArrayRef { Arc::new(StructArray::from(vec![(field(&of), of)])) };
        for of in [keys(40, text()), structs(keys(40, text()))] {
            let batch = RecordBatch::try_from_iter([("lists", lists(2, of))]).unwrap();
            let pieces = decoded_pieces(&batch, made);
            assert_eq!(pieces.map(|(_, made)| made).collect::<Vec<_>>(), [made; 2]);
            assert_eq!(decoded_pieces(&batch, 3 * made).map(|(_, made)| made).sum::<usize>(), 0);
        }
    }

    #[test]
    fn a_list_that_keys_refer_to_counts_in_each_of_them() {
        let views: ArrayRef = Arc::new(StringViewArray::from(vec!["", "a", "b"]));
        let of_views = keys(1_000_000, lists(1, views));
        let bytes = 4 + 3 * (16 + WRITTEN.item_bytes);
        assert_eq!(decoded_bytes(&of_views, 0..1_000_000), 1_000_000 * bytes);
        let of_keys = keys(5, lists(1, keys(3, Arc::new(StringArray::from(vec!["ab"])))));
        let bytes = 4 + 3 * (4 + 2 + WRITTEN.item_bytes);
        assert_eq!(at_most(&of_keys), 5 * bytes);
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
