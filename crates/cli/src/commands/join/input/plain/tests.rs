//! Rows before and after, by their text; and how much they take.

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    DictionaryArray, Int8Array, Int32Array, Int64Array, LargeListViewArray, ListArray,
    ListViewArray, NullArray, StringArray, StringViewArray, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use proptest::prelude::*;
use workahead_join::run_bytes;
use workahead_messages::ITEM_BYTES;

use super::counts::ITEMS_MAX;
use super::*;

const KEYS: Texts = Texts::Keys;
const RULE: Rule = Rule { texts: KEYS, most: usize::MAX };

fn field(of: &ArrayRef) -> FieldRef {
    Arc::new(Field::new("value", of.data_type().clone(), true))
}

fn texts() -> ArrayRef {
    let long = "t".repeat(100);
    Arc::new(StringArray::from(vec![Some("a"), None, Some(&long), Some("bc"), Some("")]))
}

/// Lists by where they begin and how many items they have.
fn views(items: ArrayRef, lists: &[(i32, i32)], nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, sizes): (Vec<i32>, Vec<i32>) = lists.iter().copied().unzip();
    let (offsets, sizes) = (offsets.into(), sizes.into());
    Arc::new(ListViewArray::new(field(&items), offsets, sizes, items, nulls))
}

fn runs(values: &ArrayRef, ends: &[i32]) -> ArrayRef {
    Arc::new(RunArray::<Int32Type>::try_new(&Int32Array::from(ends.to_vec()), values).unwrap())
}

fn union(values: ArrayRef, rows: &[(i8, i32)]) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let fields = [("value", &values), ("number", &numbers)];
    let fields = fields.map(|(name, of)| Field::new(name, of.data_type().clone(), false));
    let (ids, places): (Vec<i8>, Vec<i32>) = rows.iter().copied().unzip();
    let fields = UnionFields::from_fields(fields);
    let places = Some(places.into());
    Arc::new(UnionArray::try_new(fields, ids.into(), places, vec![values, numbers]).unwrap())
}

fn keys(values: ArrayRef, keys: &[Option<i8>]) -> ArrayRef {
    Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(keys.to_vec()), values))
}

fn list(items: ArrayRef, lengths: &[usize]) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(ListArray::new(field(&items), offsets, items, None))
}

fn structs(column: ArrayRef) -> ArrayRef {
    Arc::new(StructArray::from(vec![(field(&column), column)]))
}

fn fixed(items: ArrayRef, of_each: i32) -> ArrayRef {
    let items = items.slice(0, items.len() / of_each as usize * of_each as usize);
    Arc::new(FixedSizeListArray::new(field(&items), of_each, items, None))
}

fn shown(array: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let formatter = ArrayFormatter::try_new(array, &options).unwrap();
    (0..array.len()).map(|row| formatter.value(row).to_string()).collect()
}

/// Reads an array, and looks whether its rows are the same and take what was counted.
fn check_rows(array: &ArrayRef) {
    let name = array.data_type();
    let schema = Schema::new(vec![Field::new("w", name.clone(), true)]);
    if check(KEYS, &schema).is_err() {
        return;
    }
    let read = plain(KEYS, array).unwrap();
    assert!(is_plain(KEYS, read.data_type()), "{name}");
    assert_eq!(read.data_type(), &plain_type(KEYS, name));
    assert_eq!(shown(&read), shown(array), "{name}");
    let (bytes, takes) = (full_bytes(array, Times::Once, RULE), run_bytes(&read, 0..read.len()));
    // Places have bytes too.
    assert!(bytes >= takes, "{name}: {bytes} of {takes}");
    assert!(bytes <= takes + 4 * ITEM_BYTES * (array.len() + takes), "{name}: {bytes} of {takes}");
}

/// A layout around another, by numbers: each row has some of the rows within.
fn around(inner: ArrayRef, (layout, numbers): &(u8, Vec<u16>)) -> ArrayRef {
    let rows = inner.len().max(1);
    let within = |number: &u16| usize::from(*number) % rows;
    let inner = if inner.is_empty() { new_null_array(inner.data_type(), 1) } else { inner };
    match layout % 7 {
        0 => {
            let lists = numbers.iter().map(|number| {
                let start = within(number);
                (start as i32, ((usize::from(*number) / 7) % (rows - start + 1)) as i32)
            });
            let nulls = NullBuffer::from_iter(numbers.iter().map(|number| number % 5 != 1));
            views(inner, &lists.collect::<Vec<_>>(), Some(nulls))
        }
        1 => {
            let ends: Vec<_> = (1..=rows).map(|run| (3 * run) as i32).collect();
            runs(&inner, &ends)
        }
        2 => {
            let of_row = |number: &u16| (i8::from(number.is_multiple_of(3)), within(number) as i32);
            union(inner, &numbers.iter().map(of_row).collect::<Vec<_>>())
        }
        3 => {
            let key = |number: &u16| (number % 4 != 3).then(|| within(number).min(127) as i8);
            keys(inner, &numbers.iter().map(key).collect::<Vec<_>>())
        }
        4 => list(inner, &[rows / 2, 0, rows - rows / 2]),
        5 => fixed(inner, 2.min(rows as i32)),
        _ => structs(inner),
    }
}

proptest! {
    #[test]
    fn rows_stay_the_same(
        layouts in
            prop::collection::vec((0_u8..7, prop::collection::vec(any::<u16>(), 1..9)), 1..4),
        first in 0_usize..4,
        wide in any::<bool>(),
    ) {
        let leaf: ArrayRef = if wide { texts() } else { Arc::new(Int32Array::from(vec![7; 5])) };
        let array = layouts.iter().fold(leaf, around);
        check_rows(&array);
        let first = first.min(array.len());
        check_rows(&array.slice(first, array.len() - first));
    }
}

#[test]
fn each_layout_has_its_plain_one() {
    let text = DataType::Utf8;
    let lists = views(texts(), &[(0, 2), (3, 2), (0, 5)], None);
    assert_eq!(plain_type(KEYS, lists.data_type()), DataType::List(field(&texts())));
    assert_eq!(plain_type(KEYS, runs(&texts(), &[1, 2, 3, 4, 5]).data_type()), text);
    let of_lists = keys(list(texts(), &[2, 3]), &[Some(1), None]);
    assert_eq!(plain_type(KEYS, of_lists.data_type()), DataType::List(field(&texts())));
    let DataType::Union(fields, UnionMode::Sparse) =
        plain_type(KEYS, union(texts(), &[]).data_type())
    else {
        panic!("no sparse union");
    };
    assert!(fields.iter().all(|(_, field)| field.is_nullable()));
    // Keys of texts stay.
    let of_texts = keys(texts(), &[Some(1), None]);
    assert!(is_plain(KEYS, of_texts.data_type()));
    let of_numbers = keys(Arc::new(Int8Array::from(vec![1, 2])), &[Some(1), None]);
    assert_eq!(plain_type(KEYS, of_numbers.data_type()), DataType::Int8);
}

#[test]
fn missing_rows_of_shared_values_are_refused() {
    let refused = |column: ArrayRef| {
        let schema = Schema::new(vec![Field::new("w", column.data_type().clone(), true)]);
        check(KEYS, &schema).err().map(|error| error.to_string())
    };
    let of_runs = || runs(&texts(), &[1, 2, 3, 4, 5]);
    for column in [keys(of_runs(), &[Some(1), None]), list(union(of_runs(), &[(0, 1)]), &[1])] {
        let said = refused(column).unwrap();
        assert!(
            said.contains("column \"w\" has a dictionary or a dense union of values"),
            "{said}"
        );
    }
    assert_eq!(refused(keys(list(texts(), &[2, 3]), &[Some(1), None])), None);
    assert_eq!(refused(views(of_runs(), &[(0, 2), (1, 3)], None)), None);
}

#[test]
fn a_column_without_nulls_may_have_them_beside() {
    let runs = runs(&texts(), &[1, 2, 3, 4, 5]);
    let fields = vec![Field::new("runs", runs.data_type().clone(), false)];
    let shared = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![runs]).unwrap();
    let read = batch(KEYS, shared, 0, usize::MAX).unwrap();
    assert_eq!(read.column(0), &texts());
    assert!(read.schema().field(0).is_nullable());
}

#[test]
fn the_size_of_a_batch_is_exact() {
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![7; 1_000]));
    let lists = views(numbers, &[(0, 1_000); 1_000], None);
    let shared = RecordBatch::try_from_iter([("w", lists)]).unwrap();
    // A number is counted as what it takes while it is gathered.
    let bytes = 1_000 * (4 + 1_000 * ITEM_BYTES);
    assert!(batch(KEYS, shared.clone(), 7, bytes + 7).is_ok());
    let says = batch(KEYS, shared, 1, bytes).unwrap_err().to_string();
    assert!(says.contains("in each row, takes 4 MiB"), "{says}");
    assert!(says.contains("or write the file without"), "{says}");
}

#[test]
fn columns_without_bytes_are_counted_at_once() {
    const ROWS: usize = 4_000_000;
    let column = |of: ArrayRef| (field(&of), of);
    let nulls: ArrayRef = Arc::new(NullArray::new(ROWS));
    let shared = runs(&(Arc::new(Int8Array::from(vec![7])) as _), &[ROWS as i32]);
    let columns = [vec![column(nulls); 2_000], vec![column(shared)]].concat();
    let structs: ArrayRef = Arc::new(StructArray::from(columns));
    assert_eq!(full_bytes(&structs, Times::Once, RULE), ROWS * (ITEM_BYTES + 1));
}

#[test]
fn rows_that_fit_no_memory_are_counted_in_no_time() {
    // Lists of lists of lists, each of which has all: 10¹⁸ numbers, and 10²⁴.
    const ROWS: usize = 100_000;
    let all = |items: ArrayRef| {
        let count = items.len() as i64;
        let (offsets, sizes) = (vec![0_i64; ROWS], vec![count; ROWS]);
        let lists =
            LargeListViewArray::new(field(&items), offsets.into(), sizes.into(), items, None);
        Arc::new(lists) as ArrayRef
    };
    let items: [ArrayRef; 2] =
        [Arc::new(StringViewArray::from(vec![""; ROWS])), Arc::new(NullArray::new(ROWS))];
    for items in items {
        let mut lists = all(items);
        for _ in 0..4 {
            assert!(full_bytes(&lists, Times::Once, RULE) >= ITEMS_MAX.min(ROWS * ROWS * 4));
            lists = all(lists);
        }
    }
}
