//! Arrow's layouts in which rows share values, read as those in which each row has its own.
//!
//! | in the file | read as |
//! |---|---|
//! | list views | lists |
//! | runs | their values |
//! | dense unions | sparse unions |
//! | dictionaries, but of texts and binaries of any length | their values |
//!
//! A few megabytes of values that rows share may stand for any number of them. So they are counted
//! before any is made: each value once, and how often rows have it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, RecordBatch, RecordBatchOptions, RunArray, StructArray, UInt32Array,
    UnionArray, new_null_array,
};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_schema::{
    ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, UnionFields, UnionMode,
};
use arrow_select::take::take;
use workahead_join::{fixed_bytes, run_bytes};

use super::fields::{ITEM_BYTES, shown};
use super::refusal::too_much;

/// Arrow's own rows are 32 bits wide in more places than not.
const ITEMS_MAX: usize = u32::MAX as usize;

/// Keys that are looked at together: they are copied to eight bytes each.
const KEYS: usize = 256;

/// Refuses columns that share values in two ways at once: nobody writes them.
pub(super) fn check(schema: &Schema) -> Result<(), ArrowError> {
    match schema.fields().iter().find(|field| shares_twice(field.data_type())) {
        None => Ok(()),
        Some(field) => Err(ArrowError::NotYetImplemented(format!(
            "column {} has a dictionary or a dense union of values that are shared themselves: \
             write the file without run ends and list views",
            shown(field.name())
        ))),
    }
}

/// A schema as its batches are read.
pub(super) fn schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    if fields.clone().all(|field| is_plain(field.data_type())) {
        return schema.clone();
    }
    let fields: Vec<_> = fields.map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch as it is read; refused if it would take more than it may with what is `beside` it.
pub(super) fn batch(
    batch: RecordBatch,
    beside: usize,
    bytes_max: usize,
) -> Result<RecordBatch, ArrowError> {
    let shared = || batch.columns().iter().filter(|column| !is_plain(column.data_type()));
    if shared().next().is_none() {
        return Ok(batch);
    }
    let bytes = shared().map(|column| full_bytes(column, Times::Once, bytes_max));
    let bytes = bytes.fold(beside, usize::saturating_add);
    if bytes > bytes_max {
        let what = "a batch, with a value of its own in each row,";
        let or = ", or write the file without run ends, list views and dense unions";
        return Err(too_much(what, bytes, bytes_max, or).into());
    }
    let columns = batch.columns().iter().map(plain).collect::<Result<_, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema(batch.schema_ref()), columns, &rows)
}

/// Whether values of a type are read as they are.
fn is_plain(data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(_, UnionMode::Dense) => false,
        // Parquet's readers refuse a file with other dictionaries.
        DataType::Dictionary(_, value) => match value.as_ref() {
            DataType::FixedSizeBinary(_) => false,
            value => value.is_string() || value.is_binary(),
        },
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_plain(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_plain(field.data_type())),
        DataType::Union(fields, _) => fields.iter().all(|(_, field)| is_plain(field.data_type())),
        _ => true,
    }
}

/// Whether keys or places lead to values that are not plain. Such rows may be missing: Arrow's
/// kernels would put another's value there.
fn shares_twice(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => !is_plain(value),
        DataType::Union(fields, UnionMode::Dense) => {
            fields.iter().any(|(_, field)| !is_plain(field.data_type()))
        }
        DataType::Union(fields, UnionMode::Sparse) => {
            fields.iter().any(|(_, field)| shares_twice(field.data_type()))
        }
        DataType::Struct(fields) => fields.iter().any(|field| shares_twice(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => shares_twice(item.data_type()),
        _ => false,
    }
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        plain if is_plain(plain) => plain.clone(),
        DataType::RunEndEncoded(_, value) => plain_type(value.data_type()),
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::List(item) | DataType::ListView(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(plain_field(item))
        }
        DataType::FixedSizeList(item, items) => DataType::FixedSizeList(plain_field(item), *items),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        DataType::Union(fields, _) => DataType::Union(plain_fields(fields), UnionMode::Sparse),
        other => other.clone(),
    }
}

/// What was beside the rows may hold nulls, whatever is said of the rows.
fn plain_field(field: &FieldRef) -> FieldRef {
    let from = field.data_type();
    if is_plain(from) {
        return field.clone();
    }
    let was_beside = matches!(from, DataType::RunEndEncoded(..) | DataType::Dictionary(..));
    let nullable = field.is_nullable() || was_beside;
    Arc::new(Field::clone(field).with_data_type(plain_type(from)).with_nullable(nullable))
}

/// Each child has nulls where a row is another's.
fn plain_fields(fields: &UnionFields) -> UnionFields {
    let fields = fields
        .iter()
        .map(|(id, field)| (id, Arc::new(Field::clone(&plain_field(field)).with_nullable(true))));
    fields.collect()
}

/// How often rows are there.
#[derive(Clone, Copy)]
enum Times<'t> {
    Once,
    Each(&'t [u32]),
}

impl Times<'_> {
    fn of(self, row: usize) -> usize {
        match self {
            Times::Once => 1,
            Times::Each(times) => times[row] as usize,
        }
    }

    fn sum(self, rows: Range<usize>) -> usize {
        match self {
            Times::Once => rows.len(),
            Times::Each(times) => times[rows].iter().map(|times| *times as usize).sum(),
        }
    }
}

/// Bytes of an array as it is read, if its rows are there as often as `times` says. More than
/// `most` may be an estimate: never less than they are.
fn full_bytes(array: &ArrayRef, times: Times<'_>, most: usize) -> usize {
    let rows = times.sum(0..array.len());
    if rows > ITEMS_MAX {
        return rows.saturating_mul(ITEM_BYTES);
    }
    let head = |bytes: usize| rows.saturating_mul(bytes);
    let (head, below) = match array.data_type() {
        DataType::Struct(_) => {
            // Child by child: looking at all of them for each row takes as often.
            let columns = array.as_struct().columns().iter();
            let bytes = columns.map(|column| full_bytes(column, times, most));
            (0, bytes.fold(0, usize::saturating_add))
        }
        plain if is_plain(plain) => match fixed_bytes(plain) {
            Some(bytes) => (head(bytes), 0),
            None => (0, sum((0..array.len()).map(|row| (times.of(row), bytes_of(array, row))))),
        },
        DataType::RunEndEncoded(ends, _) => (
            head(ITEM_BYTES),
            match ends.data_type() {
                DataType::Int16 => of_runs(array.as_run::<Int16Type>(), times, most),
                DataType::Int32 => of_runs(array.as_run::<Int32Type>(), times, most),
                _ => of_runs(array.as_run::<Int64Type>(), times, most),
            },
        ),
        DataType::Dictionary(..) => (head(ITEM_BYTES), of_keys(array, times, most)),
        DataType::List(_) => (head(size_of::<i32>()), of_list::<i32>(array, times, most)),
        DataType::LargeList(_) => (head(size_of::<i64>()), of_list::<i64>(array, times, most)),
        DataType::ListView(_) => (head(size_of::<i32>()), of_list_view::<i32>(array, times, most)),
        DataType::LargeListView(_) => {
            (head(size_of::<i64>()), of_list_view::<i64>(array, times, most))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let of_row = |row| range(map.offsets(), row);
            (head(size_of::<i32>()), of_items(&entries, array.len(), of_row, times, most))
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let items = list.value_length() as usize;
            let of_row = |row| row * items..(row + 1) * items;
            (0, of_items(list.values(), array.len(), of_row, times, most))
        }
        _ => (head(ITEM_BYTES), of_union(array.as_union(), times, most)),
    };
    below.saturating_add(head)
}

fn bytes_of(array: &ArrayRef, row: usize) -> usize {
    run_bytes(array, row..row + 1)
}

/// Of values by how often each is there, and its bytes.
fn sum(values: impl Iterator<Item = (usize, usize)>) -> usize {
    values.fold(0, |sum: usize, (times, bytes)| sum.saturating_add(times.saturating_mul(bytes)))
}

/// Of rows that may have the same places, each of which is looked at for each of them: up to `most`
/// bytes, and then as if all had the widest value.
fn of_places(
    values: &ArrayRef,
    mut rows: impl Iterator<Item = (usize, Option<usize>)>,
    all: usize,
    most: usize,
) -> usize {
    if let Some(bytes) = fixed_bytes(values.data_type()) {
        return all.saturating_mul(bytes);
    }
    let null = bytes_of(&new_null_array(values.data_type(), 1), 0);
    let exact = rows.try_fold(0_usize, |sum, (times, place)| {
        let bytes = place.map_or(null, |place| bytes_of(values, place));
        Some(sum.saturating_add(times.saturating_mul(bytes))).filter(|sum| *sum <= most)
    });
    exact.unwrap_or_else(|| {
        let widest = (0..values.len()).map(|row| bytes_of(values, row)).fold(null, usize::max);
        all.saturating_mul(widest)
    })
}

fn of_runs<R: RunEndIndexType>(runs: &RunArray<R>, times: Times<'_>, most: usize) -> usize {
    let mut before = 0;
    let of_each = runs.run_ends().sliced_values().map(|end| {
        let rows = before..end.as_usize();
        before = rows.end;
        times.sum(rows)
    });
    let values = runs.values_slice();
    if is_plain(values.data_type()) {
        return sum(of_each.enumerate().map(|(at, times)| (times, bytes_of(&values, at))));
    }
    let of_each: Vec<u32> = of_each.map(|times| times as u32).collect();
    full_bytes(&values, Times::Each(&of_each), most)
}

fn of_keys(array: &ArrayRef, times: Times<'_>, most: usize) -> usize {
    let rows = (0..array.len()).step_by(KEYS).flat_map(|start| {
        let some = array.slice(start, KEYS.min(array.len() - start));
        let places: Vec<_> = key_places(&some).collect();
        places.into_iter().enumerate().map(move |(row, place)| (times.of(start + row), place))
    });
    let values = array.as_any_dictionary().values();
    of_places(values, rows, times.sum(0..array.len()), most)
}

fn of_union(union: &UnionArray, times: Times<'_>, most: usize) -> usize {
    let all = times.sum(0..union.len());
    let children = union.fields().iter().map(|(id, _)| {
        if union.offsets().is_none() {
            return full_bytes(union.child(id), times, most);
        }
        let rows = places(union, id).enumerate();
        let rows = rows.map(|(row, place)| (times.of(row), place.map(|place| place as usize)));
        of_places(union.child(id), rows, all, most)
    });
    children.fold(0, usize::saturating_add)
}

fn of_list<O: OffsetSizeTrait>(array: &ArrayRef, times: Times<'_>, most: usize) -> usize {
    let list = array.as_list::<O>();
    of_items(list.values(), list.len(), |row| range(list.offsets(), row), times, most)
}

fn of_list_view<O: OffsetSizeTrait>(array: &ArrayRef, times: Times<'_>, most: usize) -> usize {
    let views = array.as_list_view::<O>();
    of_items(views.values(), views.len(), |row| range_of_view(views, row), times, most)
}

/// Of lists that have a range of the items each.
fn of_items(
    items: &ArrayRef,
    rows: usize,
    of_row: impl Fn(usize) -> Range<usize>,
    times: Times<'_>,
    most: usize,
) -> usize {
    let counts = (0..rows).map(|row| (times.of(row), of_row(row).len()));
    let count = sum(counts);
    if count > ITEMS_MAX {
        return count.saturating_mul(ITEM_BYTES);
    }
    // How much more often an item is there than the one before it; then how often it is.
    let mut of_item = vec![0_u32; items.len() + 1];
    for row in 0..rows {
        let (range, times) = (of_row(row), times.of(row) as u32);
        of_item[range.start] = of_item[range.start].wrapping_add(times);
        of_item[range.end] = of_item[range.end].wrapping_sub(times);
    }
    let mut times = 0_u32;
    for of_item in &mut of_item {
        times = times.wrapping_add(*of_item);
        *of_item = times;
    }
    full_bytes(items, Times::Each(&of_item[..items.len()]), most).max(count * ITEM_BYTES)
}

fn range<O: ArrowNativeType>(offsets: &OffsetBuffer<O>, row: usize) -> Range<usize> {
    offsets[row].as_usize()..offsets[row + 1].as_usize()
}

/// A null may have any range, of which nothing is read.
fn range_of_view<O: OffsetSizeTrait>(views: &GenericListViewArray<O>, row: usize) -> Range<usize> {
    let start = views.offsets()[row].as_usize();
    let items = if views.is_null(row) { 0 } else { views.sizes()[row].as_usize() };
    start..start + items
}

/// The place of each row's value.
fn run_places(array: &ArrayRef) -> Vec<u32> {
    match array.data_type() {
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int16 => {
            places_of(array.as_run::<Int16Type>())
        }
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int32 => {
            places_of(array.as_run::<Int32Type>())
        }
        _ => places_of(array.as_run::<Int64Type>()),
    }
}

fn places_of<R: RunEndIndexType>(runs: &RunArray<R>) -> Vec<u32> {
    let mut places = Vec::with_capacity(runs.len());
    let first = runs.get_start_physical_index();
    for (place, end) in (first as u32..).zip(runs.run_ends().sliced_values()) {
        places.resize(end.as_usize(), place);
    }
    places
}

/// The places of a dictionary's values.
fn key_places(array: &ArrayRef) -> impl Iterator<Item = Option<usize>> {
    let dictionary = array.as_any_dictionary();
    let places = match dictionary.values().is_empty() {
        // Then all keys are null.
        true => vec![0; array.len()],
        false => dictionary.normalized_keys(),
    };
    places.into_iter().enumerate().map(|(row, place)| array.is_valid(row).then_some(place))
}

/// The places of a dense union's rows in one of its children.
fn places(union: &UnionArray, child: i8) -> impl Iterator<Item = Option<u32>> {
    let offsets = union.offsets().into_iter().flatten();
    let rows = union.type_ids().iter().zip(offsets);
    rows.map(move |(id, place)| (*id == child).then_some(*place as u32))
}

/// The same rows, each with a value of its own.
fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let to = plain_type(array.data_type());
    let made: ArrayRef = match (array.data_type(), &to) {
        (from, to) if from == to => return Ok(array.clone()),
        (DataType::RunEndEncoded(..), _) => {
            let places = UInt32Array::from(run_places(array));
            return plain(&take(array.as_any_ree().values(), &places, None)?);
        }
        (DataType::Dictionary(..), _) => {
            let dictionary = array.as_any_dictionary();
            take(dictionary.values(), dictionary.keys(), None)?
        }
        (DataType::List(_), DataType::List(item)) => plain_list::<i32>(array, item)?,
        (DataType::LargeList(_), DataType::LargeList(item)) => plain_list::<i64>(array, item)?,
        (DataType::ListView(_), DataType::List(item)) => list_of_views::<i32>(array, item)?,
        (DataType::LargeListView(_), DataType::LargeList(item)) => {
            list_of_views::<i64>(array, item)?
        }
        (DataType::Map(..), DataType::Map(field, sorted)) => {
            let map = array.as_map();
            let (entries, offsets) = used(&(Arc::new(map.entries().clone()) as _), map.offsets());
            let entries = plain(&entries)?.as_struct().clone();
            let nulls = map.nulls().cloned();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted)?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, items)) => {
            let list = array.as_fixed_size_list();
            let (values, nulls) = (plain(list.values())?, list.nulls().cloned());
            let (item, rows) = (item.clone(), list.len());
            Arc::new(FixedSizeListArray::try_new_with_length(item, *items, values, nulls, rows)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let columns = array.as_struct().columns().iter().map(plain);
            let (columns, nulls) = (columns.collect::<Result<_, _>>()?, array.nulls().cloned());
            let (fields, rows) = (fields.clone(), array.len());
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, rows)?)
        }
        (DataType::Union(from, _), DataType::Union(fields, _)) => {
            let union = array.as_union();
            let children = from.iter().map(|(id, _)| match union.offsets() {
                Some(_) => {
                    let places: UInt32Array = places(union, id).collect();
                    take(union.child(id), &places, None)
                }
                None => plain(union.child(id)),
            });
            let children = children.collect::<Result<_, _>>()?;
            let ids = union.type_ids().clone();
            Arc::new(UnionArray::try_new(fields.clone(), ids, None, children)?)
        }
        (from, _) => return Err(ArrowError::NotYetImplemented(format!("{from} as {to}"))),
    };
    Ok(made)
}

fn plain_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let list = array.as_list::<O>();
    let (values, offsets) = used(list.values(), list.offsets());
    let (values, nulls) = (plain(&values)?, list.nulls().cloned());
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls)?))
}

/// The items that lists have, and where each list begins.
fn used<O: OffsetSizeTrait>(
    items: &ArrayRef,
    offsets: &OffsetBuffer<O>,
) -> (ArrayRef, OffsetBuffer<O>) {
    let first = offsets[0];
    let count = (offsets[offsets.len() - 1] - first).as_usize();
    let offsets = OffsetBuffer::new(offsets.iter().map(|offset| *offset - first).collect());
    (items.slice(first.as_usize(), count), offsets)
}

fn list_of_views<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let views = array.as_list_view::<O>();
    let ranges = || (0..views.len()).map(|row| range_of_view(views, row));
    let items = ranges().map(|range| range.len()).fold(0, usize::saturating_add);
    if O::from_usize(items).is_none() {
        let says = "the list views of a batch have more items than lists can have: write it as \
                    large list views, or smaller batches";
        return Err(ArrowError::InvalidArgumentError(says.to_owned()));
    }
    let places = ranges().flatten().map(|place| place as u32);
    let values = take(views.values(), &UInt32Array::from_iter_values(places), None)?;
    let offsets = OffsetBuffer::from_lengths(ranges().map(|range| range.len()));
    let nulls = views.nulls().cloned();
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, plain(&values)?, nulls)?))
}

#[cfg(test)]
mod tests;
