//! Bytes of single rows: a value may have one byte or a million, so batches of such values are
//! bounded by what is measured, not by the number of rows.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_data::MAX_INLINE_VIEW_LEN;
use arrow_schema::DataType;
use workahead_walks::walk::Row;

use crate::chunks::NO_ROW;

/// Bytes of a value of fixed width; what a dictionary's key refers to is shared.
pub(crate) fn fixed_bytes(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::Null => Some(0),
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).ok(),
        DataType::Dictionary(key, _) => fixed_bytes(key),
        DataType::FixedSizeList(item, items) => {
            Some(fixed_bytes(item.data_type())? * usize::try_from(*items).ok()?)
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| fixed_bytes(field.data_type())).sum::<Option<_>>()
        }
        other => other.primitive_width(),
    }
}

/// Bytes of a run of rows; of most types without a look at each of them.
pub(crate) fn run_bytes(array: &dyn Array, rows: Range<usize>) -> usize {
    let count = rows.len();
    if let Some(bytes) = fixed_bytes(array.data_type()) {
        return count * bytes;
    }
    match array.data_type() {
        DataType::Utf8 => of_offsets(array.as_string::<i32>().offsets(), &rows),
        DataType::LargeUtf8 => of_offsets(array.as_string::<i64>().offsets(), &rows),
        DataType::Binary => of_offsets(array.as_binary::<i32>().offsets(), &rows),
        DataType::LargeBinary => of_offsets(array.as_binary::<i64>().offsets(), &rows),
        DataType::Utf8View => array.as_string_view().views()[rows].iter().map(view_bytes).sum(),
        DataType::BinaryView => array.as_binary_view().views()[rows].iter().map(view_bytes).sum(),
        // Of unions and runs an average.
        _ => nested_bytes(array, rows, run_bytes)
            .unwrap_or_else(|| count * array.get_array_memory_size().div_ceil(array.len().max(1))),
    }
}

/// Bytes of a run of an array.
pub(crate) type RunBytes = fn(&dyn Array, Range<usize>) -> usize;

/// Bytes of a run of rows that have others within; none if they are of another kind.
pub(crate) fn nested_bytes(
    array: &dyn Array,
    rows: Range<usize>,
    run_bytes: RunBytes,
) -> Option<usize> {
    Some(match array.data_type() {
        DataType::List(_) => of_list::<i32>(array, rows, run_bytes),
        DataType::LargeList(_) => of_list::<i64>(array, rows, run_bytes),
        DataType::Map(..) => {
            let map = array.as_map();
            let items = items(map.offsets(), &rows);
            rows.len() * size_of::<i32>() + run_bytes(map.entries(), items)
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let items = list.value_length() as usize;
            run_bytes(list.values(), rows.start * items..rows.end * items)
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| run_bytes(column, rows.clone())).sum()
        }
        _ => return None,
    })
}

fn of_list<O: OffsetSizeTrait>(array: &dyn Array, rows: Range<usize>, of: RunBytes) -> usize {
    let list = array.as_list::<O>();
    let items = items(list.offsets(), &rows);
    rows.len() * size_of::<O>() + of(list.values(), items)
}

fn items<O: ArrowNativeType>(offsets: &OffsetBuffer<O>, rows: &Range<usize>) -> Range<usize> {
    offsets[rows.start].as_usize()..offsets[rows.end].as_usize()
}

fn of_offsets<O: ArrowNativeType>(offsets: &OffsetBuffer<O>, rows: &Range<usize>) -> usize {
    rows.len() * size_of::<O>() + items(offsets, rows).len()
}

/// The low half of a view is its length.
fn view_bytes(view: &u128) -> usize {
    let length = *view as u32;
    size_of::<u128>() + if length > MAX_INLINE_VIEW_LEN { length as usize } else { 0 }
}

/// Bytes of the widest row.
pub(crate) fn widest_row(array: &dyn Array) -> usize {
    if let Some(bytes) = fixed_bytes(array.data_type()) {
        return bytes;
    }
    match array.data_type() {
        DataType::Utf8 => widest_of(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => widest_of(array.as_string::<i64>().offsets()),
        DataType::Binary => widest_of(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => widest_of(array.as_binary::<i64>().offsets()),
        DataType::Utf8View => widest_view(array.as_string_view().views()),
        DataType::BinaryView => widest_view(array.as_binary_view().views()),
        _ => (0..array.len()).map(|row| run_bytes(array, row..row + 1)).max().unwrap_or(0),
    }
}

fn widest_of<O: ArrowNativeType + std::ops::Sub<Output = O>>(offsets: &OffsetBuffer<O>) -> usize {
    let lengths = offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| *end - *start);
    let widest = lengths.fold(
        O::usize_as(0),
        |widest, length| {
            if length > widest { length } else { widest }
        },
    );
    size_of::<O>() + widest.as_usize()
}

fn widest_view(views: &[u128]) -> usize {
    // Lengths are compared, which is one instruction for several of them.
    let longest = views.iter().fold(0, |longest, view| longest.max(*view as u32));
    if views.is_empty() { 0 } else { view_bytes(&u128::from(longest)) }
}

/// The widest value of each column of some batches.
#[derive(Debug, Clone, Default)]
pub(crate) struct WidestValues(Vec<usize>);

impl WidestValues {
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.0.resize(batch.num_columns(), 0);
        for (widest, column) in self.0.iter_mut().zip(batch.columns()) {
            *widest = widest_row(column).max(*widest);
        }
    }

    /// Bytes of the widest row, at most.
    pub(crate) fn row_bytes(&self) -> usize {
        self.0.iter().sum()
    }
}

/// Adds the bytes of some rows' values, row by row. [`NO_ROW`] has none.
pub(crate) fn add_row_bytes(array: &ArrayRef, rows: &[Row], to: &mut [usize]) {
    let rows = rows.iter().zip(to).filter(|(row, _)| **row != NO_ROW);
    let rows = rows.map(|(row, to)| (*row as usize, to));
    match array.data_type() {
        DataType::Utf8 => add(array.as_string::<i32>().offsets(), rows),
        DataType::Binary => add(array.as_binary::<i32>().offsets(), rows),
        DataType::Utf8View => add_views(array.as_string_view().views(), rows),
        DataType::BinaryView => add_views(array.as_binary_view().views(), rows),
        _ => rows.for_each(|(row, to)| *to += run_bytes(array, row..row + 1)),
    }
}

fn add<'t>(offsets: &OffsetBuffer<i32>, rows: impl Iterator<Item = (usize, &'t mut usize)>) {
    rows.for_each(|(row, to)| *to += (offsets[row + 1] - offsets[row]) as usize + size_of::<i32>());
}

fn add_views<'t>(views: &[u128], rows: impl Iterator<Item = (usize, &'t mut usize)>) {
    rows.for_each(|(row, to)| *to += view_bytes(&views[row]));
}

/// The number of first rows whose bytes together are at most `most`, but at least one.
pub(crate) fn first_rows(bytes: &[usize], most: usize) -> usize {
    let mut sum = 0_usize;
    let beyond = bytes.iter().position(|bytes| {
        sum = sum.saturating_add(*bytes);
        sum > most
    });
    beyond.unwrap_or(bytes.len()).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{MapBuilder, StringBuilder};
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        BinaryArray, DictionaryArray, FixedSizeListArray, Int64Array, LargeStringArray, ListArray,
        StringArray, StringViewArray, StructArray,
    };
    use arrow_schema::Field;

    use super::*;

    fn arrays() -> Vec<(ArrayRef, [usize; 3])> {
        let texts = || StringArray::from(vec![Some("ab"), None, Some("twenty-two characters.")]);
        let long = "twenty-two characters.";
        let lists = vec![Some(vec![Some(1), Some(2)]), None, Some(vec![Some(3)])];
        let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for entries in [1, 0, 2] {
            for _ in 0..entries {
                map.keys().append_value("k");
                map.values().append_value("val");
            }
            map.append(true).unwrap();
        }
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        let six = StringArray::from(vec!["a", "b", "c", "d", "ee", "ff"]);
        let texts_field = Arc::new(Field::new("a", DataType::Utf8, true));
        let texts_column: ArrayRef = Arc::new(texts());
        vec![
            (Arc::new(texts()), [6, 4, 26]),
            (Arc::new(BinaryArray::from_vec(vec![b"", b"abc", b"a"])), [4, 7, 5]),
            (Arc::new(LargeStringArray::from(vec!["a", "", "bcd"])), [9, 8, 11]),
            (Arc::new(StringViewArray::from(vec!["a", long, ""])), [16, 38, 16]),
            (Arc::new(Int64Array::from(vec![1, 2, 3])), [8; 3]),
            (Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)), [12, 4, 8]),
            (Arc::new(map.finish()), [4 + 12, 4, 4 + 24]),
            (Arc::new(FixedSizeListArray::new(item, 2, Arc::new(six), None)), [10, 10, 12]),
            (Arc::new(StructArray::from(vec![(texts_field, texts_column)])), [6, 4, 26]),
            (Arc::new(DictionaryArray::<Int8Type>::from_iter(["a", long, "a"])), [1; 3]),
        ]
    }

    #[test]
    fn rows_are_measured() {
        for (array, expected) in arrays() {
            let name = array.data_type().clone();
            let mut bytes = vec![0; 3];
            add_row_bytes(&array, &[0, 1, 2], &mut bytes);
            assert_eq!(bytes, expected, "{name}");
            assert_eq!(widest_row(&array), *expected.iter().max().unwrap(), "{name}");
            assert_eq!(run_bytes(&array, 0..3), expected.iter().sum::<usize>(), "{name}");
            let slice = array.slice(1, 2);
            let mut bytes = vec![1; 3];
            add_row_bytes(&slice, &[1, NO_ROW, 0], &mut bytes);
            assert_eq!(bytes, [expected[2] + 1, 1, expected[1] + 1], "{name}");
        }
    }

    #[test]
    fn at_least_one_row_fits() {
        for (most, rows) in [(0, 1), (5, 1), (6, 2), (10, 2), (11, 3), (usize::MAX, 3)] {
            assert_eq!(first_rows(&[5, 1, 5], most), rows, "{most}");
        }
    }
}
