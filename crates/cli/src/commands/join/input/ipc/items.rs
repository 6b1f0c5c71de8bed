//! Items of lists, which a message may have in any number: they may have a bit each, or none as
//! nulls, structs without fields, values of no width, and rows of runs have.

use std::collections::HashMap;

use arrow_ipc::RecordBatch as BatchMessage;
use arrow_schema::{ArrowError, DataType, Schema};

use super::super::fields::ITEM_BYTES;
use super::messages::fits;

/// Refuses a batch whose items take too much once each has a number, as while they are gathered.
pub(super) fn check<'t>(
    batch: &BatchMessage<'_>,
    columns: impl Iterator<Item = &'t DataType>,
    bytes_max: usize,
) -> Result<(), ArrowError> {
    // Rows have numbers, too.
    fits(usize::try_from(batch.length()).unwrap_or(0).saturating_mul(ITEM_BYTES), bytes_max)?;
    let mut types = Vec::new();
    columns.for_each(|column| add_nodes(column, false, &mut types));
    let nodes = batch.nodes().into_iter().flatten().zip(types);
    let items = nodes.filter(|(_, is_counted)| *is_counted);
    let items = items.map(|(node, _)| (node.length() - batch.length()).max(0) as usize);
    fits(items.fold(0, usize::saturating_add).saturating_mul(ITEM_BYTES), bytes_max)
}

/// The types of dictionaries' values by the number of each, which are not in its messages.
#[expect(deprecated, reason = "Arrow's decoder finds them by these numbers too")]
pub(super) fn values_of(schema: &Schema) -> HashMap<i64, DataType> {
    let fields = schema.flattened_fields().into_iter().rev();
    let values = fields.filter_map(|field| match field.data_type() {
        DataType::Dictionary(_, values) => Some((field.dict_id()?, DataType::clone(values))),
        _ => None,
    });
    // Of one number, the first field counts.
    values.collect()
}

/// Adds whether each of a batch's nodes is counted: each before what is in it. A dictionary's
/// values are in another message.
fn add_nodes(data_type: &DataType, is_item: bool, to: &mut Vec<bool>) {
    to.push(is_item || has_no_bytes(data_type));
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => add_nodes(item.data_type(), true, to),
        DataType::RunEndEncoded(ends, values) => {
            add_nodes(ends.data_type(), false, to);
            add_nodes(values.data_type(), false, to);
        }
        DataType::Struct(fields) => fields.iter().for_each(|f| add_nodes(f.data_type(), false, to)),
        DataType::Union(fields, _) => {
            fields.iter().for_each(|(_, field)| add_nodes(field.data_type(), false, to));
        }
        _ => {}
    }
}

fn has_no_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null
        | DataType::FixedSizeBinary(0)
        | DataType::FixedSizeList(_, 0)
        | DataType::RunEndEncoded(..) => true,
        DataType::Struct(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{
        Array, ArrayRef, BooleanArray, DictionaryArray, Int8Array, Int32Array, ListArray,
        NullArray, RecordBatch, RunArray, StructArray,
    };
    use arrow_buffer::OffsetBuffer;
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::Field;

    use super::super::IpcReader;
    use super::*;

    const ITEMS: usize = 300_000;

    /// One list of all items.
    fn list(items: ArrayRef) -> ArrayRef {
        let field = Arc::new(Field::new("item", items.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([items.len()]);
        Arc::new(ListArray::new(field, offsets, items, None))
    }

    /// The error for a stream of one batch, of which a batch may take a megabyte.
    fn says(column: ArrayRef) -> Option<String> {
        let batch = RecordBatch::try_from_iter_with_nullable([("w", column, true)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let read = IpcReader::stream(Cursor::new(bytes), 1 << 20).unwrap();
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
}
