//! Bytes of single rows: a value may have one byte or a million, so batches of such values are
//! bounded by what is measured, not by the number of rows.
//!
//! Rows may share a value: by runs, by list views, in dense unions. It counts in each of them, as
//! gathering and writing make it anew for each, and is looked at as often.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteViewType, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, GenericByteViewArray, OffsetSizeTrait, RecordBatch};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_data::MAX_INLINE_VIEW_LEN;
use arrow_schema::{DataType, UnionMode};
use workahead_walks::walk::Row;

use crate::chunks::NO_ROW;

/// More is measured as this, which fits no memory: sums of it over rows and columns don't overflow.
const BYTES_MAX: usize = 1 << 40;

/// An item of a list of fixed size takes a number while it is gathered, also where its type has no
/// bytes.
const ITEM_BYTES_MIN: usize = size_of::<u32>();

/// Bytes of a value of fixed width; what a dictionary's key refers to is shared. None if values
/// differ in their bytes.
pub fn fixed_bytes(data_type: &DataType) -> Option<usize> {
    let bytes = match data_type {
        DataType::Null => 0,
        DataType::Boolean => 1,
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).ok()?,
        DataType::Dictionary(key, _) => fixed_bytes(key)?,
        DataType::FixedSizeList(item, items) => {
            fixed_list_bytes(fixed_bytes(item.data_type())?, *items)?
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| fixed_bytes(field.data_type())).sum::<Option<usize>>()?
        }
        other => other.primitive_width()?,
    };
    Some(bytes.min(BYTES_MAX))
}

/// Bytes of a list of fixed size, by those of an item; none if it has less than no items.
fn fixed_list_bytes(item_bytes: usize, items: i32) -> Option<usize> {
    Some(item_bytes.max(ITEM_BYTES_MIN).saturating_mul(usize::try_from(items).ok()?))
}

/// Bytes of a null: lists and binaries of fixed size are as wide without a value, whatever they are
/// in. Other nulls of variable width take next to nothing.
pub(crate) fn null_bytes(data_type: &DataType) -> usize {
    let bytes = match data_type {
        DataType::FixedSizeList(item, items) => {
            fixed_list_bytes(null_bytes(item.data_type()), *items).unwrap_or(0)
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| null_bytes(field.data_type())).sum::<usize>()
        }
        DataType::Union(fields, _) => {
            fields.iter().map(|(_, field)| null_bytes(field.data_type())).sum::<usize>()
        }
        DataType::RunEndEncoded(_, value) => null_bytes(value.data_type()),
        other => fixed_bytes(other).unwrap_or(0),
    };
    bytes.min(BYTES_MAX)
}

/// Bytes of a run of rows in memory; of most types without a look at each of them. What keys of a
/// dictionary refer to is shared and does not count.
pub fn run_bytes(array: &dyn Array, rows: Range<usize>) -> usize {
    let count = rows.len();
    if let Some(bytes) = fixed_bytes(array.data_type()) {
        return count.saturating_mul(bytes).min(BYTES_MAX);
    }
    match array.data_type() {
        DataType::Utf8 => of_offsets(array.as_string::<i32>().offsets(), &rows),
        DataType::LargeUtf8 => of_offsets(array.as_string::<i64>().offsets(), &rows),
        DataType::Binary => of_offsets(array.as_binary::<i32>().offsets(), &rows),
        DataType::LargeBinary => of_offsets(array.as_binary::<i64>().offsets(), &rows),
        DataType::Utf8View => of_views(array.as_string_view(), rows),
        DataType::BinaryView => of_views(array.as_binary_view(), rows),
        // Of a type that is not among these an average.
        _ => nested_bytes(array, rows, IN_MEMORY)
            .unwrap_or_else(|| count * array.get_array_memory_size().div_ceil(array.len().max(1))),
    }
}

/// Bytes of a run of an array.
pub(crate) type RunBytes = fn(&dyn Array, Range<usize>) -> usize;

/// How what is in rows is measured.
#[derive(Clone, Copy)]
pub(crate) struct Measure {
    pub(crate) run_bytes: RunBytes,
    /// Bytes of an item of a list beside its value.
    pub(crate) item_bytes: usize,
}

/// Of arrays in memory.
const IN_MEMORY: Measure = Measure { run_bytes, item_bytes: 0 };

/// Bytes of a run of rows that have others within; none if they are of another kind.
pub(crate) fn nested_bytes(
    array: &dyn Array,
    rows: Range<usize>,
    measure: Measure,
) -> Option<usize> {
    let run_bytes = measure.run_bytes;
    let bytes = match array.data_type() {
        DataType::List(_) => of_list::<i32>(array, rows, measure),
        DataType::LargeList(_) => of_list::<i64>(array, rows, measure),
        DataType::ListView(_) => of_list_view::<i32>(array, rows, measure),
        DataType::LargeListView(_) => of_list_view::<i64>(array, rows, measure),
        DataType::Map(..) => {
            let map = array.as_map();
            let items = items(map.offsets(), &rows);
            rows.len() * size_of::<i32>() + of_items(map.entries(), items, measure)
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let items = list.value_length() as usize;
            of_items(list.values(), rows.start * items..rows.end * items, measure)
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            sum(columns.map(|column| run_bytes(column, rows.clone())))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => of_runs::<Int16Type>(array, rows, run_bytes),
            DataType::Int32 => of_runs::<Int32Type>(array, rows, run_bytes),
            _ => of_runs::<Int64Type>(array, rows, run_bytes),
        },
        DataType::Union(fields, UnionMode::Sparse) => {
            let (union, ids) = (array.as_union(), rows.len() * size_of::<i8>());
            let children = fields.iter();
            let children = children.map(|(id, _)| run_bytes(union.child(id), rows.clone()));
            children.fold(ids, usize::saturating_add)
        }
        DataType::Union(_, UnionMode::Dense) => {
            let union = array.as_union();
            let head = rows.len() * (size_of::<i8>() + size_of::<i32>());
            let values = rows.map(|row| {
                let place = union.value_offset(row);
                run_bytes(union.child(union.type_id(row)), place..place + 1)
            });
            values.fold(head, usize::saturating_add)
        }
        _ => return None,
    };
    Some(bytes.min(BYTES_MAX))
}

fn of_list<O: OffsetSizeTrait>(array: &dyn Array, rows: Range<usize>, of: Measure) -> usize {
    let list = array.as_list::<O>();
    let items = items(list.offsets(), &rows);
    rows.len() * size_of::<O>() + of_items(list.values(), items, of)
}

fn of_list_view<O: OffsetSizeTrait>(array: &dyn Array, rows: Range<usize>, of: Measure) -> usize {
    let lists = array.as_list_view::<O>();
    let head = 2 * rows.len() * size_of::<O>();
    let items = rows.map(|row| {
        let start = lists.offsets()[row].as_usize();
        of_items(lists.values(), start..start + lists.sizes()[row].as_usize(), of)
    });
    items.fold(head, usize::saturating_add)
}

/// A run's value counts in each of its rows.
fn of_runs<R: RunEndIndexType>(array: &dyn Array, rows: Range<usize>, of: RunBytes) -> usize {
    let runs = array.as_run::<R>().slice(rows.start, rows.len());
    let first = runs.get_start_physical_index();
    let mut before = 0;
    sum(runs.run_ends().sliced_values().zip(first..).map(|(end, at)| {
        let rows = end.as_usize() - before;
        before = end.as_usize();
        of(runs.values(), at..at + 1).saturating_mul(rows)
    }))
}

fn of_items(values: &dyn Array, items: Range<usize>, of: Measure) -> usize {
    match items.len() {
        0 => 0,
        count => in_list((of.run_bytes)(values, items), count, of),
    }
}

/// Items of a list take some bytes even if their type has none.
fn in_list(bytes: usize, items: usize, of: Measure) -> usize {
    let bytes = if bytes == 0 { items.saturating_mul(ITEM_BYTES_MIN) } else { bytes };
    bytes.saturating_add(items.saturating_mul(of.item_bytes)).min(BYTES_MAX)
}

fn sum(bytes: impl Iterator<Item = usize>) -> usize {
    bytes.fold(0, usize::saturating_add)
}

fn items<O: ArrowNativeType>(offsets: &OffsetBuffer<O>, rows: &Range<usize>) -> Range<usize> {
    offsets[rows.start].as_usize()..offsets[rows.end].as_usize()
}

fn of_offsets<O: ArrowNativeType>(offsets: &OffsetBuffer<O>, rows: &Range<usize>) -> usize {
    rows.len() * size_of::<O>() + items(offsets, rows).len()
}

/// Without a look at any of them if all lie in their views.
fn of_views<T: ByteViewType>(array: &GenericByteViewArray<T>, rows: Range<usize>) -> usize {
    match array.data_buffers() {
        [] => rows.len() * size_of::<u128>(),
        _ => array.views()[rows].iter().map(view_bytes).sum(),
    }
}

/// The low half of a view is its length.
fn view_bytes(view: &u128) -> usize {
    let length = *view as u32;
    size_of::<u128>() + if length > MAX_INLINE_VIEW_LEN { length as usize } else { 0 }
}

/// Whether a row of a type is measured without a look at each item in it; or, if `run` is set, any
/// run of rows without a look at each row.
pub(crate) fn is_quick(data_type: &DataType, run: bool) -> bool {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_quick(item.data_type(), true),
        DataType::ListView(item) | DataType::LargeListView(item) => {
            !run && is_quick(item.data_type(), true)
        }
        DataType::Struct(fields) => fields.iter().all(|field| is_quick(field.data_type(), run)),
        DataType::Union(fields, _) => {
            !run && fields.iter().all(|(_, field)| is_quick(field.data_type(), false))
        }
        DataType::RunEndEncoded(_, value) => !run && is_quick(value.data_type(), false),
        DataType::Utf8View | DataType::BinaryView => !run,
        _ => true,
    }
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
        _ => widest_nested(array, run_bytes, widest_row),
    }
}

/// Most bytes of a row that has others within; of structs what their widest columns have, in
/// whichever rows: looking at all of them for each row would take as often.
pub(crate) fn widest_nested(
    array: &dyn Array,
    run_bytes: RunBytes,
    widest_row: fn(&dyn Array) -> usize,
) -> usize {
    if let DataType::Struct(_) = array.data_type() {
        return sum(array.as_struct().columns().iter().map(|column| widest_row(column)));
    }
    (0..array.len()).map(|row| run_bytes(array, row..row + 1)).max().unwrap_or(0)
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
    if let DataType::Struct(_) = array.data_type() {
        return add_struct_bytes(array.as_struct().columns(), rows, to);
    }
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

/// Column by column, those of fixed width all at once.
fn add_struct_bytes(columns: &[ArrayRef], rows: &[Row], to: &mut [usize]) {
    let fixed = sum(columns.iter().filter_map(|column| fixed_bytes(column.data_type())));
    if fixed > 0 {
        let rows = rows.iter().zip(&mut *to).filter(|(row, _)| **row != NO_ROW);
        rows.for_each(|(_, to)| *to += fixed);
    }
    for column in columns.iter().filter(|column| fixed_bytes(column.data_type()).is_none()) {
        add_row_bytes(column, rows, to);
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
mod tests;
