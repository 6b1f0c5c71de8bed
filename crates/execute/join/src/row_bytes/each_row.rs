//! Bytes of rows one by one, also where rows share what they are made of: by runs, by list views,
//! in dense unions.
//!
//! Some megabytes of a file may be lists of 10¹² items in all, as each of a million lists may have
//! the same million. Such items are looked at once, and all count as the widest of them: never less
//! than they are, though it may be more.

use std::iter::repeat_n;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RunArray, UnionArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::{Measure, in_list, of_items};

/// Items of list views are looked at this often on average, and no more often: then as the widest.
const LOOKS_MAX: usize = 8;

/// Children of a union, by their ids, which have seven bits.
const IDS: usize = 128;

/// Whether a row of a type is measured without a look at each item in it; or, if `run` is set, any
/// run of rows without a look at each row.
pub fn is_quick(data_type: &DataType, run: bool) -> bool {
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
        DataType::Dictionary(_, value) => !run && is_quick(value, false),
        DataType::Utf8View | DataType::BinaryView => !run,
        _ => true,
    }
}

/// Whether keys refer to values that are looked at item by item: all of them for each run of keys.
fn has_slow_keys(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => !is_quick(value, false) || has_slow_keys(value),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => has_slow_keys(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_slow_keys(field.data_type())),
        DataType::Union(fields, _) => {
            fields.iter().any(|(_, field)| has_slow_keys(field.data_type()))
        }
        _ => false,
    }
}

/// Most bytes of a row that has others within.
pub(crate) fn widest_nested(array: &dyn Array, of: Measure) -> usize {
    let rows = 0..array.len();
    let widest = match array.data_type() {
        DataType::RunEndEncoded(..) => runs(array, rows, of).map(|(_, bytes)| bytes).max(),
        _ => each_row(array, rows, of).max(),
    };
    widest.unwrap_or(0)
}

/// Bytes of each row.
pub(super) fn each_row<'a>(
    array: &'a dyn Array,
    rows: Range<usize>,
    of: Measure,
) -> Box<dyn Iterator<Item = usize> + 'a> {
    match array.data_type() {
        DataType::ListView(_) => Box::new(list_views::<i32>(array, rows, of)),
        DataType::LargeListView(_) => Box::new(list_views::<i64>(array, rows, of)),
        DataType::Struct(_) => {
            Box::new(side_by_side(array.as_struct().columns().iter().collect(), rows, of))
        }
        DataType::Union(fields, _) => {
            let union = array.as_union();
            if let Some(places) = union.offsets() {
                return Box::new(dense_rows(union, places, rows, of));
            }
            let children = fields.iter().map(|(id, _)| union.child(id)).collect();
            let bytes = side_by_side(children, rows, of);
            Box::new(bytes.map(|bytes| bytes.saturating_add(size_of::<i8>())))
        }
        DataType::RunEndEncoded(..) => {
            Box::new(runs(array, rows, of).flat_map(|(rows, bytes)| repeat_n(bytes, rows)))
        }
        DataType::Dictionary(_, value) if !is_quick(value, false) => {
            Box::new(repeat_n((of.widest_row)(array), rows.len()))
        }
        _ => Box::new(rows.map(move |row| (of.run_bytes)(array, row..row + 1))),
    }
}

/// Rows that have a value of each column.
fn side_by_side<'a>(
    columns: Vec<&'a ArrayRef>,
    rows: Range<usize>,
    of: Measure,
) -> impl Iterator<Item = usize> + 'a {
    let columns = columns.into_iter().map(|column| each_row(column, rows.clone(), of));
    let mut columns: Vec<_> = columns.collect();
    rows.map(move |_| columns.iter_mut().filter_map(Iterator::next).fold(0, usize::saturating_add))
}

/// Lists may share their items, which count in each of them.
fn list_views<'a, O: OffsetSizeTrait>(
    array: &'a dyn Array,
    rows: Range<usize>,
    of: Measure,
) -> impl Iterator<Item = usize> + 'a {
    let lists = array.as_list_view::<O>();
    let values = lists.values();
    let range = move |row: usize| {
        let start = lists.offsets()[row].as_usize();
        start..start + lists.sizes()[row].as_usize()
    };
    let in_order = || {
        let mut end = 0;
        rows.clone().map(range).filter(|items| !items.is_empty()).all(|items| {
            let is_next = items.start >= end;
            end = items.end;
            is_next
        })
    };
    let are_few = || {
        let looks = rows.clone().map(|row| range(row).len()).fold(0, usize::saturating_add);
        looks <= LOOKS_MAX.saturating_mul(values.len())
    };
    let of_type = values.data_type();
    let exact = is_quick(of_type, true)
        || (in_order() && !has_slow_keys(of_type))
        || (is_quick(of_type, false) && are_few());
    let widest = (!exact).then(|| (of.widest_row)(values));
    rows.map(move |row| {
        let items = range(row);
        let count = items.len();
        let bytes = match widest {
            Some(widest) => in_list(count.saturating_mul(widest), count, of),
            None => of_items(values, items, of),
        };
        bytes.saturating_add(2 * size_of::<O>())
    })
}

/// Rows of a dense union have a place in one child each, which others may have too.
fn dense_rows<'a>(
    union: &'a UnionArray,
    places: &'a [i32],
    rows: Range<usize>,
    of: Measure,
) -> impl Iterator<Item = usize> + 'a {
    let ids = union.type_ids();
    let in_order = || {
        let mut next = [0; IDS];
        rows.clone().all(|row| {
            let next = &mut next[ids[row] as usize];
            let is_next = places[row] >= *next;
            *next = places[row].saturating_add(1);
            is_next
        })
    };
    let slow = union.fields().iter().filter(|(_, field)| !is_quick(field.data_type(), false));
    let slow: Vec<i8> = slow.map(|(id, _)| id).collect();
    let mut widest = [None; IDS];
    let has_slow_keys = union.fields().iter().any(|(_, field)| has_slow_keys(field.data_type()));
    if !slow.is_empty() && (has_slow_keys || !in_order()) {
        slow.iter().for_each(|id| widest[*id as usize] = Some((of.widest_row)(union.child(*id))));
    }
    rows.map(move |row| {
        let (id, place) = (ids[row], places[row] as usize);
        let value = widest[id as usize];
        let value = value.unwrap_or_else(|| (of.run_bytes)(union.child(id), place..place + 1));
        value.saturating_add(size_of::<i8>() + size_of::<i32>())
    })
}

/// How many rows each run has of these, and the bytes of its value, which counts in each of them.
pub(super) fn runs<'a>(
    array: &'a dyn Array,
    rows: Range<usize>,
    of: Measure,
) -> Box<dyn Iterator<Item = (usize, usize)> + 'a> {
    match array.data_type() {
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int16 => {
            Box::new(runs_of(array.as_run::<Int16Type>(), rows, of))
        }
        DataType::RunEndEncoded(ends, _) if *ends.data_type() == DataType::Int32 => {
            Box::new(runs_of(array.as_run::<Int32Type>(), rows, of))
        }
        _ => Box::new(runs_of(array.as_run::<Int64Type>(), rows, of)),
    }
}

fn runs_of<'a, R: RunEndIndexType>(
    runs: &'a RunArray<R>,
    rows: Range<usize>,
    of: Measure,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let ends = runs.run_ends();
    let first = runs.get_physical_index(rows.start);
    let lengths = ends.values()[first..].iter().scan(rows.start, move |row, end| {
        if *row >= rows.end {
            return None;
        }
        // The ends are those of the whole array, of which this may be a slice.
        let end = (ArrowNativeType::as_usize(*end) - ends.offset()).min(rows.end);
        let length = end - *row;
        *row = end;
        Some(length)
    });
    let last = first + lengths.clone().count();
    lengths.zip(each_row(runs.values(), first..last, of))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, ListArray, ListViewArray, StringViewArray, StructArray};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{Field, UnionFields};

    use super::super::{BYTES_MAX, IN_MEMORY, run_bytes, widest_row};
    use super::*;

    /// Bytes of views, of which one has a text of its own.
    const VIEWS: [usize; 3] = [38, 16, 16];

    fn views() -> ArrayRef {
        Arc::new(StringViewArray::from(vec!["twenty-two characters.", "a", ""]))
    }

    fn item(items: &ArrayRef) -> Arc<Field> {
        Arc::new(Field::new("item", items.data_type().clone(), true))
    }

    fn list_views(items: ArrayRef, lists: &[(i32, i32)]) -> ArrayRef {
        let (offsets, sizes): (Vec<i32>, Vec<i32>) = lists.iter().copied().unzip();
        let (offsets, sizes) = (offsets.into(), sizes.into());
        Arc::new(ListViewArray::new(item(&items), offsets, sizes, items, None))
    }

    fn list(items: ArrayRef) -> ArrayRef {
        let offsets = OffsetBuffer::from_lengths([items.len()]);
        Arc::new(ListArray::new(item(&items), offsets, items, None))
    }

    fn union(places: Vec<i32>, child: ArrayRef) -> ArrayRef {
        let field = Field::new("child", child.data_type().clone(), true);
        let ids = vec![0_i8; places.len()].into();
        let fields = UnionFields::from_fields([field]);
        Arc::new(UnionArray::try_new(fields, ids, Some(places.into()), vec![child]).unwrap())
    }

    fn rows(array: &ArrayRef) -> Vec<usize> {
        each_row(array, 0..array.len(), IN_MEMORY).collect()
    }

    #[test]
    fn items_that_all_rows_share_are_looked_at_once() {
        const ROWS: usize = 1_000_000;
        // One by one these are 10¹² looks.
        let items: ArrayRef = Arc::new(StringViewArray::from(vec![""; ROWS]));
        let ends = Int32Array::from(vec![ROWS as i32]);
        let runs = RunArray::<Int32Type>::try_new(&ends, &list(items.clone())).unwrap();
        let shared: [(ArrayRef, usize); 3] = [
            (list_views(items.clone(), &vec![(0, ROWS as i32); ROWS]), 8),
            (union(vec![0; ROWS], list(items)), 5 + 4),
            (Arc::new(runs), 4),
        ];
        for (array, head) in shared {
            let name = array.data_type().clone();
            assert_eq!(run_bytes(&array, 0..ROWS), BYTES_MAX, "{name}");
            assert_eq!(widest_row(&array), 16 * ROWS + head, "{name}");
            assert_eq!(run_bytes(&array, 7..8), 16 * ROWS + head, "{name}");
            let field = Arc::new(Field::new("field", name.clone(), true));
            let within: ArrayRef = Arc::new(StructArray::from(vec![(field, array)]));
            assert_eq!(widest_row(&within), 16 * ROWS + head, "{name}");
        }
    }

    #[test]
    fn items_that_rows_share_a_little_are_looked_at_one_by_one() {
        let [wide, one, other] = VIEWS;
        let all = wide + one + other;
        let in_order = list_views(views(), &[(0, 1), (0, 0), (1, 2)]);
        assert_eq!(rows(&in_order), [8 + wide, 8, 8 + one + other]);
        let a_little = list_views(views(), &[(1, 2), (0, 3), (2, 1)]);
        assert_eq!(rows(&a_little), [8 + one + other, 8 + all, 8 + other]);
        assert_eq!(run_bytes(&a_little.slice(1, 2), 0..1), 8 + all);
        let often = list_views(views(), &[(0, 3); 9]);
        assert_eq!(rows(&often), [8 + 3 * wide; 9]);
        assert_eq!(rows(&often.slice(3, 4)), [8 + all; 4]);
    }

    #[test]
    fn places_of_a_union_are_looked_at_in_their_order() {
        let [wide, one, other] = VIEWS;
        let lists = || list_views(views(), &[(0, 1), (1, 2)]);
        let in_order = union(vec![0, 1], lists());
        assert_eq!(rows(&in_order), [5 + 8 + wide, 5 + 8 + one + other]);
        let shared = union(vec![1, 1], lists());
        assert_eq!(rows(&shared), [5 + 8 + wide; 2]);
        assert_eq!(rows(&shared.slice(1, 1)), [5 + 8 + one + other]);
    }
}
