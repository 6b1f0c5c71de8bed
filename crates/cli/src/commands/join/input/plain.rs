//! Arrow's layouts in which rows share values, read as those in which each row has its own.
//!
//! | in the file | read as |
//! |---|---|
//! | list views | lists |
//! | runs | their values |
//! | dense unions | sparse unions |
//! | dictionaries, but of texts and binaries of any length | their values |
//! | these too where one takes another's place in the file | their values |
//!
//! A few megabytes of values that rows share may stand for any number of them. So they are counted
//! before any is made: each value once, and how often rows have it.

mod counts;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, RecordBatch, RecordBatchOptions, RunArray, StructArray, UInt32Array,
    UnionArray,
};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_schema::{
    ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, UnionFields, UnionMode,
};
use arrow_select::take::take;
use workahead_messages::shown;

use self::counts::{Rule, Times, full_bytes};
use super::refusal::too_much;

/// How dictionaries of texts and binaries of any length are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// As keys of the one dictionary that the file has for a column.
    Keys,
    /// As values: some rows would keep each of many dictionaries in memory.
    Values,
}

/// Refuses columns that share values in two ways at once: nobody writes them.
pub(super) fn check(texts: Texts, schema: &Schema) -> Result<(), ArrowError> {
    match schema.fields().iter().find(|field| shares_twice(texts, field.data_type())) {
        None => Ok(()),
        Some(field) => Err(ArrowError::NotYetImplemented(format!(
            "column {} has a dictionary or a dense union of values that are shared themselves: \
             write the file without run ends and list views",
            shown(field.name())
        ))),
    }
}

/// A schema as its batches are read.
pub(super) fn schema(texts: Texts, schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    if fields.clone().all(|field| is_plain(texts, field.data_type())) {
        return schema.clone();
    }
    let fields: Vec<_> = fields.map(|field| plain_field(texts, field)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch as it is read; refused if it would take more than it may with what is `beside` it.
pub(super) fn batch(
    texts: Texts,
    batch: RecordBatch,
    beside: usize,
    bytes_max: usize,
) -> Result<RecordBatch, ArrowError> {
    let shared = || batch.columns().iter().filter(|column| !is_plain(texts, column.data_type()));
    if shared().next().is_none() {
        return Ok(batch);
    }
    let rule = Rule { texts, most: bytes_max };
    let bytes = shared().fold(beside, |sum, column| {
        sum.saturating_add(full_bytes(column, Times::Once, rule.beside(sum)))
    });
    if bytes > bytes_max {
        let what = "a batch, with a value of its own in each row,";
        let or = ", or write the file without run ends, list views and dense unions";
        return Err(too_much(what, bytes, bytes_max, or).into());
    }
    let columns =
        batch.columns().iter().map(|column| plain(texts, column)).collect::<Result<_, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema(texts, batch.schema_ref()), columns, &rows)
}

/// Whether values of a type are read as they are.
fn is_plain(texts: Texts, data_type: &DataType) -> bool {
    match data_type {
        DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Union(_, UnionMode::Dense) => false,
        // Parquet's readers refuse a file with other dictionaries.
        DataType::Dictionary(_, value) => match value.as_ref() {
            DataType::FixedSizeBinary(_) => false,
            value => texts == Texts::Keys && (value.is_string() || value.is_binary()),
        },
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_plain(texts, item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_plain(texts, field.data_type())),
        DataType::Union(fields, _) => {
            fields.iter().all(|(_, field)| is_plain(texts, field.data_type()))
        }
        _ => true,
    }
}

/// Whether keys or places lead to values that are not plain. Such rows may be missing: Arrow's
/// kernels would put another's value there.
fn shares_twice(texts: Texts, data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => !is_plain(texts, value),
        DataType::Union(fields, UnionMode::Dense) => {
            fields.iter().any(|(_, field)| !is_plain(texts, field.data_type()))
        }
        DataType::Union(fields, UnionMode::Sparse) => {
            fields.iter().any(|(_, field)| shares_twice(texts, field.data_type()))
        }
        DataType::Struct(fields) => {
            fields.iter().any(|field| shares_twice(texts, field.data_type()))
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => shares_twice(texts, item.data_type()),
        _ => false,
    }
}

fn plain_type(texts: Texts, data_type: &DataType) -> DataType {
    match data_type {
        plain if is_plain(texts, plain) => plain.clone(),
        DataType::RunEndEncoded(_, value) => plain_type(texts, value.data_type()),
        DataType::Dictionary(_, value) => plain_type(texts, value),
        DataType::List(item) | DataType::ListView(item) => DataType::List(plain_field(texts, item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(plain_field(texts, item))
        }
        DataType::FixedSizeList(item, items) => {
            DataType::FixedSizeList(plain_field(texts, item), *items)
        }
        DataType::Map(entries, sorted) => DataType::Map(plain_field(texts, entries), *sorted),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| plain_field(texts, field)).collect())
        }
        DataType::Union(fields, _) => {
            DataType::Union(plain_fields(texts, fields), UnionMode::Sparse)
        }
        other => other.clone(),
    }
}

/// Values outside of the rows may be null, whatever is said of the rows.
fn plain_field(texts: Texts, field: &FieldRef) -> FieldRef {
    let from = field.data_type();
    if is_plain(texts, from) {
        return field.clone();
    }
    let was_beside = matches!(from, DataType::RunEndEncoded(..) | DataType::Dictionary(..));
    let nullable = field.is_nullable() || was_beside;
    Arc::new(Field::clone(field).with_data_type(plain_type(texts, from)).with_nullable(nullable))
}

/// Each child has nulls where a row is another's.
fn plain_fields(texts: Texts, fields: &UnionFields) -> UnionFields {
    let fields = fields.iter().map(|(id, field)| {
        (id, Arc::new(Field::clone(&plain_field(texts, field)).with_nullable(true)))
    });
    fields.collect()
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
fn plain(texts: Texts, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let to = plain_type(texts, array.data_type());
    let made: ArrayRef = match (array.data_type(), &to) {
        (from, to) if from == to => return Ok(array.clone()),
        (DataType::RunEndEncoded(..), _) => {
            let places = UInt32Array::from(run_places(array));
            return plain(texts, &take(array.as_any_ree().values(), &places, None)?);
        }
        (DataType::Dictionary(..), _) => {
            let dictionary = array.as_any_dictionary();
            take(dictionary.values(), dictionary.keys(), None)?
        }
        (DataType::List(_), DataType::List(item)) => plain_list::<i32>(texts, array, item)?,
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            plain_list::<i64>(texts, array, item)?
        }
        (DataType::ListView(_), DataType::List(item)) => list_of_views::<i32>(texts, array, item)?,
        (DataType::LargeListView(_), DataType::LargeList(item)) => {
            list_of_views::<i64>(texts, array, item)?
        }
        (DataType::Map(..), DataType::Map(field, sorted)) => {
            let map = array.as_map();
            let (entries, offsets) = used(&(Arc::new(map.entries().clone()) as _), map.offsets());
            let entries = plain(texts, &entries)?.as_struct().clone();
            let nulls = map.nulls().cloned();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted)?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, items)) => {
            let list = array.as_fixed_size_list();
            let (values, nulls) = (plain(texts, list.values())?, list.nulls().cloned());
            let (item, rows) = (item.clone(), list.len());
            Arc::new(FixedSizeListArray::try_new_with_length(item, *items, values, nulls, rows)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let columns = array.as_struct().columns().iter().map(|column| plain(texts, column));
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
                None => plain(texts, union.child(id)),
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
    texts: Texts,
    array: &ArrayRef,
    item: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let list = array.as_list::<O>();
    let (values, offsets) = used(list.values(), list.offsets());
    let (values, nulls) = (plain(texts, &values)?, list.nulls().cloned());
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
    texts: Texts,
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
    Ok(Arc::new(GenericListArray::<O>::try_new(
        item.clone(),
        offsets,
        plain(texts, &values)?,
        nulls,
    )?))
}

#[cfg(test)]
mod tests;
