//! Items of lists, as they are counted when a stream is read.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int8Array, Int32Array, ListArray, NullArray,
    RecordBatch, RunArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Field;

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

const ITEMS: usize = 300_000;

/// One list of all items.
fn list(items: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new("item", items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([items.len()]);
    Arc::new(ListArray::new(field, offsets, items, None))
}

/// What is said of a stream of one batch, of which a batch may take a megabyte.
fn says(column: ArrayRef) -> Option<String> {
    let batch = RecordBatch::try_from_iter_with_nullable([("w", column, true)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let read = IpcReader::stream(Cursor::new(bytes), 1 << 20, &NEVER).unwrap();
    let batches: Result<Vec<_>, _> = read.collect();
    match batches {
        Ok(batches) => {
            assert_eq!(batches, [batch]);
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn items_without_bytes_have_numbers() {
    let nulls = || -> ArrayRef { Arc::new(NullArray::new(ITEMS)) };
    let ends = Int32Array::from(vec![ITEMS as i32]);
    let runs = RunArray::<Int32Type>::try_new(&ends, &Int8Array::from(vec![7])).unwrap();
    let keys = Int8Array::from(vec![0]);
    let columns: [ArrayRef; 4] = [
        list(nulls()),
        list(Arc::new(StructArray::new_empty_fields(ITEMS, None))),
        list(Arc::new(runs)),
        Arc::new(DictionaryArray::<Int8Type>::new(keys, list(nulls()))),
    ];
    for column in columns {
        let name = column.data_type().clone();
        let said = says(column).unwrap_or_default();
        assert!(said.contains("a batch takes 2 MiB, more than the 1 MiB"), "{name}: {said}");
    }
    // Rows are numbered, too.
    assert!(says(nulls()).is_some());
    assert_eq!(says(Arc::new(NullArray::new(ITEMS / 2))), None);
}

#[test]
fn items_of_few_bits_are_counted_as_such() {
    let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true; ITEMS / 10]));
    let field = |at: usize| Arc::new(Field::new(format!("b{at}"), DataType::Boolean, true));
    let fields: Vec<_> = (0..20).map(|at| (field(at), bits.clone())).collect();
    assert_eq!(says(list(Arc::new(StructArray::from(fields)))), None);
    assert_eq!(says(list(Arc::new(Int8Array::from(vec![7; ITEMS / 2])))), None);
    assert_eq!(says(list(Arc::new(BooleanArray::from(vec![true; ITEMS / 2])))), None);
    // Each has a number while they are gathered, or written.
    assert!(says(list(Arc::new(BooleanArray::from(vec![true; ITEMS])))).is_some());
}
