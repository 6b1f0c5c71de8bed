//! Arrow's layouts in which rows share values, read as those in which each row has its own.
//!
//! | in the file | read as |
//! |---|---|
//! | list views | lists |
//! | runs | their values |
//! | dense unions | sparse unions |
//! | dictionaries, but of texts and binaries | their values |
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
use arrow_select::concat::concat;
use arrow_select::take::take;
use workahead_join::run_bytes;

use super::fields::ITEM_BYTES;
use super::refusal::too_much;

/// No memory has room for more items.
const ITEMS_MAX: usize = 1 << 40;

/// A schema as its batches are read.
pub(super) fn schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    if fields.clone().all(|field| is_plain(field.data_type())) {
        return schema.clone();
    }
    let fields: Vec<_> = fields.map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch as it is read; refused if it would take more than it may.
pub(super) fn batch(batch: RecordBatch, bytes_max: usize) -> Result<RecordBatch, ArrowError> {
    let shared = || batch.columns().iter().filter(|column| !is_plain(column.data_type()));
    if shared().next().is_none() {
        return Ok(batch);
    }
    let once = vec![1; batch.num_rows()];
    let bytes = shared().map(|column| full_bytes(column, &once)).fold(0, usize::saturating_add);
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
        DataType::Dictionary(_, value) => value.is_string() || value.is_binary(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_plain(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_plain(field.data_type())),
        DataType::Union(fields, _) => fields.iter().all(|(_, field)| is_plain(field.data_type())),
        _ => true,
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

/// Bytes of an array as it is read, if its rows are there as often as `times` says.
fn full_bytes(array: &ArrayRef, times: &[usize]) -> usize {
    let of_each = |bytes: usize| sum(times).saturating_mul(bytes);
    match array.data_type() {
        plain if is_plain(plain) => {
            let rows = times.iter().enumerate();
            let bytes = rows.map(|(row, times)| times.saturating_mul(row_bytes(array, row)));
            bytes.fold(0, usize::saturating_add)
        }
        DataType::RunEndEncoded(..) => {
            let places = run_places(array).into_iter().map(Some);
            of_places(array.as_any_ree().values(), places, times)
        }
        DataType::Dictionary(..) => {
            of_places(array.as_any_dictionary().values(), key_places(array), times)
        }
        DataType::List(_) => of_list::<i32>(array, times),
        DataType::LargeList(_) => of_list::<i64>(array, times),
        DataType::ListView(_) => of_list_view::<i32>(array, times),
        DataType::LargeListView(_) => of_list_view::<i64>(array, times),
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let bytes = of_items(&entries, |row| range(map.offsets(), row), times);
            bytes.saturating_add(of_each(size_of::<i32>()))
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let items = list.value_length() as usize;
            of_items(list.values(), |row| row * items..(row + 1) * items, times)
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| full_bytes(column, times)).fold(0, usize::saturating_add)
        }
        _ => {
            let union = array.as_union();
            let children = union.fields().iter().map(|(id, _)| match union.offsets() {
                Some(_) => of_places(union.child(id), places(union, id), times),
                None => full_bytes(union.child(id), times),
            });
            children.fold(of_each(size_of::<i8>()), usize::saturating_add)
        }
    }
}

fn row_bytes(array: &ArrayRef, row: usize) -> usize {
    run_bytes(array, row..row + 1)
}

fn sum(times: &[usize]) -> usize {
    times.iter().copied().fold(0, usize::saturating_add)
}

/// Of rows that have their values in `places`, or none, which are nulls.
fn of_places(
    values: &ArrayRef,
    places: impl Iterator<Item = Option<u32>>,
    times: &[usize],
) -> usize {
    let (mut of_value, mut nulls) = (vec![0_usize; values.len()], 0_usize);
    for (place, times) in places.zip(times) {
        let to = place.map_or(&mut nulls, |place| &mut of_value[place as usize]);
        *to = to.saturating_add(*times);
    }
    let null = row_bytes(&new_null_array(&plain_type(values.data_type()), 1), 0);
    full_bytes(values, &of_value).saturating_add(nulls.saturating_mul(null))
}

fn of_list<O: OffsetSizeTrait>(array: &ArrayRef, times: &[usize]) -> usize {
    let list = array.as_list::<O>();
    let bytes = of_items(list.values(), |row| range(list.offsets(), row), times);
    bytes.saturating_add(sum(times).saturating_mul(size_of::<O>()))
}

fn of_list_view<O: OffsetSizeTrait>(array: &ArrayRef, times: &[usize]) -> usize {
    let views = array.as_list_view::<O>();
    let bytes = of_items(views.values(), |row| range_of_view(views, row), times);
    bytes.saturating_add(sum(times).saturating_mul(size_of::<O>()))
}

/// Of lists that have a range of the items each.
fn of_items(items: &ArrayRef, of_row: impl Fn(usize) -> Range<usize>, times: &[usize]) -> usize {
    // How much more often an item is there than the one before it.
    let mut changes = vec![0_usize; items.len() + 1];
    let mut count = 0_usize;
    for (row, times) in times.iter().enumerate() {
        let range = of_row(row);
        count = count.saturating_add(times.saturating_mul(range.len()));
        changes[range.start] = changes[range.start].wrapping_add(*times);
        changes[range.end] = changes[range.end].wrapping_sub(*times);
    }
    let bytes = count.saturating_mul(ITEM_BYTES);
    if count > ITEMS_MAX {
        return bytes;
    }
    let of_item: Vec<usize> = changes[..items.len()]
        .iter()
        .scan(0_usize, |times, change| {
            *times = times.wrapping_add(*change);
            Some(*times)
        })
        .collect();
    bytes.max(full_bytes(items, &of_item))
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
fn key_places(array: &ArrayRef) -> impl Iterator<Item = Option<u32>> {
    let dictionary = array.as_any_dictionary();
    let places = match dictionary.values().is_empty() {
        // Then all keys are null.
        true => vec![0; array.len()],
        false => dictionary.normalized_keys(),
    };
    places.into_iter().enumerate().map(|(row, place)| array.is_valid(row).then_some(place as u32))
}

/// The places of a dense union's rows in one of its children.
fn places(union: &UnionArray, child: i8) -> impl Iterator<Item = Option<u32>> {
    let offsets = union.offsets().into_iter().flatten();
    let rows = union.type_ids().iter().zip(offsets);
    rows.map(move |(id, place)| (*id == child).then_some(*place as u32))
}

/// Rows that have their values in `places`, or none: a null of its own, as a missing place would
/// leave values of others below it.
fn at_places(
    values: &ArrayRef,
    places: impl Iterator<Item = Option<u32>>,
) -> Result<ArrayRef, ArrowError> {
    let none = values.len() as u32;
    let places: Vec<u32> = places.map(|place| place.unwrap_or(none)).collect();
    let values = if places.contains(&none) {
        concat(&[values, &new_null_array(values.data_type(), 1)])?
    } else {
        values.clone()
    };
    take(&values, &UInt32Array::from(places), None)
}

/// The same rows, each with a value of its own.
fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let to = plain_type(array.data_type());
    let made: ArrayRef = match (array.data_type(), &to) {
        (from, to) if from == to => return Ok(array.clone()),
        (DataType::RunEndEncoded(..), _) => {
            let places = run_places(array).into_iter().map(Some);
            return plain(&at_places(array.as_any_ree().values(), places)?);
        }
        (DataType::Dictionary(..), _) => {
            return plain(&at_places(array.as_any_dictionary().values(), key_places(array))?);
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
                Some(_) => plain(&at_places(union.child(id), places(union, id))?),
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
