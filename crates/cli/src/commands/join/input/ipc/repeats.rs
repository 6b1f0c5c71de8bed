//! Items of lists that a file has once and repeats: by runs, or because list views and dense unions
//! share them.
//!
//! Rows that share a value are gathered and written in pieces of a few rows. What is in their lists
//! is not cut: a writer makes all items of a row anew, and runs within lists those of all rows.
//! Each piece, and each row in the end, is looked at to find its bytes, which takes no time unless
//! it is lists of what has to be looked at item by item.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_schema::{ArrowError, DataType, UnionMode};
use workahead_join::{decoded_pieces, is_quick};

use super::fields::{ITEM_BYTES, shown};

/// Lists that are looked at item by item are at most as large: hundreds of millions of items, which
/// take some tenths of a second each time.
const LOOKED_AT_BYTES_MAX: usize = 16 << 30;

/// Refuses a batch whose lists hold more than may be used, each item as often as it is repeated.
pub(super) fn check(batch: &RecordBatch, bytes_max: usize) -> Result<(), ArrowError> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if !repeats(field.data_type()) {
            continue;
        }
        if !items_fit(column, bytes_max)? {
            return Err(refusal(field.name(), bytes_max));
        }
        let most = bytes_max.max(LOOKED_AT_BYTES_MAX);
        if !is_quick(field.data_type(), false) && !fits(column.clone(), most)? {
            return Err(refusal(field.name(), most));
        }
    }
    Ok(())
}

fn refusal(column: &str, most: usize) -> ArrowError {
    let says = format!(
        "the lists of column {} take more than the {} MiB that may be used for a batch, with each \
         item as often as it is repeated: raise --memory-limit, or write the file without run ends \
         and list views",
        shown(column),
        most >> 20
    );
    io::Error::new(ErrorKind::OutOfMemory, says).into()
}

/// Whether values of a type may be shared.
fn repeats(data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(_, UnionMode::Dense) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => repeats(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| repeats(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| repeats(field.data_type())),
        _ => false,
    }
}

/// Whether rows fit, with what they share in each of them. A single row always does.
fn fits(rows: ArrayRef, bytes_max: usize) -> Result<bool, ArrowError> {
    let rows = RecordBatch::try_from_iter_with_nullable([("rows", rows, true)])?;
    // A second piece has what the first one has no room for.
    Ok(decoded_pieces(&rows, bytes_max).nth(1).is_none())
}

/// Whether the items of all lists fit, the innermost ones first.
fn items_fit(array: &ArrayRef, bytes_max: usize) -> Result<bool, ArrowError> {
    let has_items = array.data_type().is_list() || matches!(array.data_type(), DataType::Map(..));
    for child in children(array) {
        if !items_fit(&child, bytes_max)? {
            return Ok(false);
        }
        if has_items && repeats(child.data_type()) {
            // They are counted first, as each of them is looked at to find its bytes.
            if shared_items(&child).saturating_mul(ITEM_BYTES) > bytes_max {
                return Ok(false);
            }
            if !fits(child, bytes_max)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The arrays that an array is made of.
fn children(array: &ArrayRef) -> Vec<ArrayRef> {
    match array.data_type() {
        DataType::List(_) => vec![array.as_list::<i32>().values().clone()],
        DataType::LargeList(_) => vec![array.as_list::<i64>().values().clone()],
        DataType::ListView(_) => vec![array.as_list_view::<i32>().values().clone()],
        DataType::LargeListView(_) => vec![array.as_list_view::<i64>().values().clone()],
        DataType::FixedSizeList(..) => vec![array.as_fixed_size_list().values().clone()],
        DataType::Map(..) => vec![Arc::new(array.as_map().entries().clone())],
        DataType::Struct(_) => array.as_struct().columns().to_vec(),
        DataType::RunEndEncoded(..) => vec![array.as_any_ree().values().clone()],
        DataType::Union(fields, _) => {
            let union = array.as_union();
            fields.iter().map(|(id, _)| union.child(id).clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Items of list views, each as often as there are lists that have it.
fn shared_items(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::ListView(_) => sum(array.as_list_view::<i32>().sizes()),
        DataType::LargeListView(_) => sum(array.as_list_view::<i64>().sizes()),
        _ => 0,
    }
}

fn sum<O: OffsetSizeTrait>(sizes: &[O]) -> usize {
    sizes.iter().map(|size| size.as_usize()).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{
        Int8Array, Int32Array, ListViewArray, RunArray, StringArray, StringViewArray, StructArray,
    };
    use arrow_schema::Field;

    use super::super::items::tests::list;
    use super::*;

    /// One run of a text of a hundred bytes.
    fn runs(rows: i32) -> ArrayRef {
        let text = StringArray::from(vec!["x".repeat(100)]);
        Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(vec![rows]), &text).unwrap())
    }

    /// Lists that share a hundred numbers.
    fn views(rows: usize) -> ArrayRef {
        sharing(rows, Arc::new(Int8Array::from(vec![7; 100])))
    }

    /// Lists that all have all items.
    fn sharing(rows: usize, items: ArrayRef) -> ArrayRef {
        let item = Arc::new(Field::new("item", items.data_type().clone(), true));
        let (offsets, sizes) = (vec![0_i32; rows], vec![items.len() as i32; rows]);
        Arc::new(ListViewArray::new(item, offsets.into(), sizes.into(), items, None))
    }

    fn says(column: ArrayRef) -> Option<String> {
        let batch = RecordBatch::try_from_iter_with_nullable([("w", column, true)]).unwrap();
        check(&batch, 1 << 20).err().map(|error| error.to_string())
    }

    #[test]
    fn repeated_items_of_lists_are_counted() {
        // Ten thousand texts take a megabyte, and fewer of the lists.
        for items in [runs as fn(i32) -> ArrayRef, |rows: i32| views(rows as usize)] {
            for nested in [list as fn(ArrayRef) -> ArrayRef, |of: ArrayRef| list(list(of))] {
                assert_eq!(says(nested(items(500))), None);
                let error = says(nested(items(20_000))).unwrap();
                assert!(error.contains("the lists of column \"w\" take more than"), "{error}");
                assert!(error.contains("raise --memory-limit"), "{error}");
            }
            // Rows are written piece by piece.
            assert_eq!(says(items(20_000)), None);
            let field = Arc::new(Field::new("field", items(1).data_type().clone(), true));
            let within: ArrayRef = Arc::new(StructArray::from(vec![(field, items(20_000))]));
            assert_eq!(says(within), None);
        }
    }

    #[test]
    fn lists_that_are_looked_at_item_by_item_are_bounded() {
        let texts = |count| -> ArrayRef { Arc::new(StringViewArray::from(vec![""; count])) };
        assert_eq!(says(sharing(1_000, texts(1_000))), None);
        let lists = sharing(50_000, texts(50_000));
        let one = list(texts(50_000));
        let ends = Int32Array::from(vec![50_000]);
        let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &one).unwrap());
        for column in [lists, runs] {
            let error = says(column).unwrap();
            assert!(error.contains("\"w\" take more than the 16384 MiB"), "{error}");
        }
    }
}
