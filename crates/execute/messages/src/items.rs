//! Items of lists, which a message may have in any number: they may have a bit each, or none as
//! nulls, structs without fields, values of no width, and rows of runs have.

use std::collections::HashMap;

use arrow_ipc::RecordBatch as BatchMessage;
use arrow_schema::{DataType, Schema};

use crate::{ITEM_BYTES, MessageError, fits};

/// Refuses a batch whose items take too much once each has a number, as while they are gathered.
/// `counted` says of the nodes of its columns which are items.
///
/// # Errors
/// When they do.
pub(crate) fn check(
    batch: &BatchMessage<'_>,
    counted: &[bool],
    bytes_max: usize,
) -> Result<(), MessageError> {
    // Rows have numbers, too.
    fits(usize::try_from(batch.length()).unwrap_or(0).saturating_mul(ITEM_BYTES), bytes_max)?;
    let nodes = batch.nodes().into_iter().flatten().zip(counted);
    let items = nodes.filter(|(_, is_counted)| **is_counted);
    let items = items.map(|(node, _)| (node.length() - batch.length()).max(0) as usize);
    fits(items.fold(0, usize::saturating_add).saturating_mul(ITEM_BYTES), bytes_max)
}

/// Whether each of the nodes of these columns is counted. Found once for a file: it may have any
/// number of columns, and of batches without a node.
pub(crate) fn counted<'t>(columns: impl Iterator<Item = &'t DataType>) -> Vec<bool> {
    let mut counted = Vec::new();
    columns.for_each(|column| add_nodes(column, false, &mut counted));
    counted
}

/// The types of dictionaries' values by the number of each, which are not in its messages.
#[must_use]
#[expect(deprecated, reason = "Arrow's decoder finds them by these numbers too")]
pub fn values_of(schema: &Schema) -> HashMap<i64, DataType> {
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
