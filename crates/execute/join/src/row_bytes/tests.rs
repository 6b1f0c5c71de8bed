//! Arrays of every kind, whose rows are measured one by one, together, and sliced.

use std::sync::Arc;

use arrow_array::builder::{MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    BinaryArray, DictionaryArray, FixedSizeListArray, Int16Array, Int32Array, Int64Array,
    LargeStringArray, ListArray, ListViewArray, NullArray, RunArray, StringArray, StringViewArray,
    StructArray, UnionArray,
};
use arrow_schema::{Field, UnionFields};

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

/// Arrays that share a value, or whose items have no bytes.
fn repeated() -> Vec<(ArrayRef, [usize; 3])> {
    let runs = (Int32Array::from(vec![2, 3]), StringArray::from(vec!["ab", "c"]));
    let runs = RunArray::<Int32Type>::try_new(&runs.0, &runs.1).unwrap();
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let (offsets, sizes) = (vec![0_i32, 0, 1], vec![2_i32, 0, 2]);
    let items: ArrayRef = Arc::new(Int16Array::from(vec![1, 2, 3]));
    let views = ListViewArray::new(
        item(DataType::Int16),
        offsets.clone().into(),
        sizes.clone().into(),
        items,
        None,
    );
    let nulls: ArrayRef = Arc::new(NullArray::new(6));
    let null_views =
        ListViewArray::new(item(DataType::Null), offsets.into(), sizes.into(), nulls.clone(), None);
    let null_lists = FixedSizeListArray::new(item(DataType::Null), 2, nulls, None);
    let fields = || {
        let fields = [("text", DataType::Utf8), ("number", DataType::Int64)];
        UnionFields::from_fields(fields.map(|(name, of)| Field::new(name, of, true)))
    };
    let children = |texts: Vec<&str>, numbers: Vec<i64>| -> Vec<ArrayRef> {
        vec![Arc::new(StringArray::from(texts)), Arc::new(Int64Array::from(numbers))]
    };
    let ids = vec![0_i8, 1, 0];
    let dense = UnionArray::try_new(
        fields(),
        ids.clone().into(),
        Some(vec![0_i32; 3].into()),
        children(vec!["ab"], vec![1]),
    );
    let sparse = children(vec!["ab", "", "c"], vec![1, 2, 3]);
    let sparse = UnionArray::try_new(fields(), ids.into(), None, sparse);
    vec![
        (Arc::new(runs), [6, 6, 5]),
        (Arc::new(views), [12, 8, 12]),
        (Arc::new(null_views), [16, 8, 16]),
        (Arc::new(null_lists), [8; 3]),
        (Arc::new(dense.unwrap()), [5 + 6, 5 + 8, 5 + 6]),
        (Arc::new(sparse.unwrap()), [1 + 6 + 8, 1 + 4 + 8, 1 + 5 + 8]),
    ]
}

#[test]
fn a_width_is_a_number_whatever_the_type() {
    let list = |item: DataType, items| {
        DataType::FixedSizeList(Arc::new(Field::new("item", item, true)), items)
    };
    let text = Field::new("text", DataType::Utf8, true);
    let binary = Field::new("binary", DataType::FixedSizeBinary(1_000), true);
    let mixed = DataType::Struct(vec![text, binary].into());
    let huge = list(list(DataType::Decimal128(38, 0), 1 << 30), 1 << 30);
    let types = [
        (list(DataType::Float32, 1_024), Some(4_096), 4_096),
        (list(DataType::Null, 1_000), Some(4_000), 4_000),
        (list(DataType::Struct(Vec::<Field>::new().into()), 1_000), Some(4_000), 4_000),
        (list(DataType::Utf8, 1_000), None, 4_000),
        (list(mixed.clone(), 10), None, 10_000),
        (mixed, None, 1_000),
        (huge, Some(BYTES_MAX), BYTES_MAX),
        (list(DataType::Int8, -1), None, 0),
        (DataType::FixedSizeBinary(-1), None, 0),
        (DataType::Null, Some(0), 0),
        (DataType::Utf8, None, 0),
    ];
    for (data_type, fixed, null) in types {
        assert_eq!(fixed_bytes(&data_type), fixed, "{data_type}");
        assert_eq!(null_bytes(&data_type), null, "{data_type}");
    }
}

#[test]
fn rows_are_measured() {
    for (array, expected) in arrays().into_iter().chain(repeated()) {
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
fn columns_without_bytes_are_looked_at_once() {
    const ROWS: usize = 1_000_000;
    let column = |of: ArrayRef| (Arc::new(Field::new("c", of.data_type().clone(), true)), of);
    let nulls: ArrayRef = Arc::new(NullArray::new(ROWS));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"; ROWS]));
    let mut columns = vec![column(nulls); 5_000];
    columns.extend([column(texts.clone()), column(texts)]);
    let structs: ArrayRef = Arc::new(StructArray::from(columns));
    assert_eq!(widest_row(&structs), 2 * 5);
    let (rows, mut bytes) = ((0..ROWS as Row).collect::<Vec<_>>(), vec![1; ROWS]);
    add_row_bytes(&structs, &rows, &mut bytes);
    assert!(bytes.iter().all(|bytes| *bytes == 1 + 2 * 5));
}

#[test]
fn at_least_one_row_fits() {
    for (most, rows) in [(0, 1), (5, 1), (6, 2), (10, 2), (11, 3), (usize::MAX, 3)] {
        assert_eq!(first_rows(&[5, 1, 5], most), rows, "{most}");
    }
}
