//! Bytes of shared values as they are read: each value once, and how often rows have it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RunArray, UnionArray, new_null_array};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;
use workahead_join::{fixed_bytes, run_bytes};
use workahead_messages::ITEM_BYTES;

use super::{Texts, is_plain, key_places, places, range, range_of_view};

/// Arrow's own rows are 32 bits wide in more places than not.
pub(super) const ITEMS_MAX: usize = u32::MAX as usize;

/// Keys that are looked at together: they are copied to eight bytes each.
const KEYS: usize = 256;

/// How bytes are counted.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) texts: Texts,
    /// More of them may be an estimate.
    pub(super) most: usize,
}

impl Rule {
    /// For what is counted beside other bytes: once these alone are too many, it may be an estimate
    /// from the start.
    pub(super) fn beside(self, bytes: usize) -> Self {
        let most = if bytes > self.most { 0 } else { self.most };
        Self { most, ..self }
    }
}

/// How often rows are there.
#[derive(Clone, Copy)]
pub(super) enum Times<'t> {
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
pub(super) fn full_bytes(array: &ArrayRef, times: Times<'_>, rule: Rule) -> usize {
    let rows = times.sum(0..array.len());
    if rows > ITEMS_MAX {
        return rows.saturating_mul(ITEM_BYTES);
    }
    let head = |bytes: usize| rows.saturating_mul(bytes);
    let (head, below) = match array.data_type() {
        DataType::Struct(_) => {
            // Child by child: looking at all of them for each row takes as often.
            let columns = array.as_struct().columns().iter();
            let bytes = columns.fold(0_usize, |sum, column| {
                sum.saturating_add(full_bytes(column, times, rule.beside(sum)))
            });
            (0, bytes)
        }
        plain if is_plain(rule.texts, plain) => match fixed_bytes(plain) {
            Some(bytes) => (head(bytes), 0),
            None => (0, sum((0..array.len()).map(|row| (times.of(row), bytes_of(array, row))))),
        },
        DataType::RunEndEncoded(ends, _) => (
            head(ITEM_BYTES),
            match ends.data_type() {
                DataType::Int16 => of_runs(array.as_run::<Int16Type>(), times, rule),
                DataType::Int32 => of_runs(array.as_run::<Int32Type>(), times, rule),
                _ => of_runs(array.as_run::<Int64Type>(), times, rule),
            },
        ),
        DataType::Dictionary(..) => (head(ITEM_BYTES), of_keys(array, times, rule)),
        DataType::List(_) => (head(size_of::<i32>()), of_list::<i32>(array, times, rule)),
        DataType::LargeList(_) => (head(size_of::<i64>()), of_list::<i64>(array, times, rule)),
        DataType::ListView(_) => (head(size_of::<i32>()), of_list_view::<i32>(array, times, rule)),
        DataType::LargeListView(_) => {
            (head(size_of::<i64>()), of_list_view::<i64>(array, times, rule))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let of_row = |row| range(map.offsets(), row);
            (head(size_of::<i32>()), of_items(&entries, array.len(), of_row, times, rule))
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let items = list.value_length() as usize;
            let of_row = |row| row * items..(row + 1) * items;
            (0, of_items(list.values(), array.len(), of_row, times, rule))
        }
        _ => (head(ITEM_BYTES), of_union(array.as_union(), times, rule)),
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
    rule: Rule,
) -> usize {
    if let Some(bytes) = fixed_bytes(values.data_type()) {
        return all.saturating_mul(bytes);
    }
    let null = bytes_of(&new_null_array(values.data_type(), 1), 0);
    let exact = rows.try_fold(0_usize, |sum, (times, place)| {
        let bytes = place.map_or(null, |place| bytes_of(values, place));
        Some(sum.saturating_add(times.saturating_mul(bytes))).filter(|sum| *sum <= rule.most)
    });
    exact.unwrap_or_else(|| {
        let widest = (0..values.len()).map(|row| bytes_of(values, row)).fold(null, usize::max);
        all.saturating_mul(widest)
    })
}

fn of_runs<R: RunEndIndexType>(runs: &RunArray<R>, times: Times<'_>, rule: Rule) -> usize {
    let mut before = 0;
    let of_each = runs.run_ends().sliced_values().map(|end| {
        let rows = before..end.as_usize();
        before = rows.end;
        times.sum(rows)
    });
    let values = runs.values_slice();
    if is_plain(rule.texts, values.data_type()) {
        return sum(of_each.enumerate().map(|(at, times)| (times, bytes_of(&values, at))));
    }
    let of_each: Vec<u32> = of_each.map(|times| times as u32).collect();
    full_bytes(&values, Times::Each(&of_each), rule)
}

fn of_keys(array: &ArrayRef, times: Times<'_>, rule: Rule) -> usize {
    let rows = (0..array.len()).step_by(KEYS).flat_map(|start| {
        let some = array.slice(start, KEYS.min(array.len() - start));
        let places: Vec<_> = key_places(&some).collect();
        places.into_iter().enumerate().map(move |(row, place)| (times.of(start + row), place))
    });
    let values = array.as_any_dictionary().values();
    of_places(values, rows, times.sum(0..array.len()), rule)
}

fn of_union(union: &UnionArray, times: Times<'_>, rule: Rule) -> usize {
    let all = times.sum(0..union.len());
    union.fields().iter().fold(0, |sum: usize, (id, _)| {
        let rule = rule.beside(sum);
        if union.offsets().is_none() {
            return sum.saturating_add(full_bytes(union.child(id), times, rule));
        }
        let rows = places(union, id).enumerate();
        let rows = rows.map(|(row, place)| (times.of(row), place.map(|place| place as usize)));
        sum.saturating_add(of_places(union.child(id), rows, all, rule))
    })
}

fn of_list<O: OffsetSizeTrait>(array: &ArrayRef, times: Times<'_>, rule: Rule) -> usize {
    let list = array.as_list::<O>();
    of_items(list.values(), list.len(), |row| range(list.offsets(), row), times, rule)
}

fn of_list_view<O: OffsetSizeTrait>(array: &ArrayRef, times: Times<'_>, rule: Rule) -> usize {
    let views = array.as_list_view::<O>();
    of_items(views.values(), views.len(), |row| range_of_view(views, row), times, rule)
}

/// Of lists that have a range of the items each.
fn of_items(
    items: &ArrayRef,
    rows: usize,
    of_row: impl Fn(usize) -> Range<usize>,
    times: Times<'_>,
    rule: Rule,
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
    full_bytes(items, Times::Each(&of_item[..items.len()]), rule).max(count * ITEM_BYTES)
}
