//! Texts by views, in few buffers.
//!
//! A batch that another join put out has views into all texts of that join's build side, and brings
//! the list of their buffers. The lists of many such batches, joined, name the same buffers again
//! and again; and every gather copies the whole list, counting each buffer up and, later, down. So
//! a list that is long for so few rows is given up for one buffer of the texts that are left.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_schema::DataType;

/// Beyond, copying the list is felt in a gather of some thousand rows.
const BUFFERS_MAX: usize = 64;
/// A list of own buffers has more rows than these for each: copying the texts would be felt more.
const ROWS_MAX: usize = 512;

/// The same values in few buffers.
pub(super) fn in_few_buffers(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => {
            let texts = array.as_string_view();
            if is_long(texts) { Arc::new(texts.gc()) } else { array }
        }
        DataType::BinaryView => {
            let bytes = array.as_binary_view();
            if is_long(bytes) { Arc::new(bytes.gc()) } else { array }
        }
        _ => array,
    }
}

/// Whether a list is long for its rows, and the texts alone are no more bytes than what it names:
/// many views of one text share it.
fn is_long<T: ByteViewType>(array: &GenericByteViewArray<T>) -> bool {
    let buffers = array.data_buffers();
    if buffers.len() <= BUFFERS_MAX || array.len() >= buffers.len() * ROWS_MAX {
        return false;
    }
    let named: HashMap<_, _> = buffers.iter().map(|of| (of.as_ptr(), of.len())).collect();
    array.total_buffer_bytes_used() <= named.values().sum()
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryViewArray, StringViewArray};
    use arrow_select::concat::concat;

    use super::*;

    #[test]
    fn a_text_that_many_rows_share_is_not_copied_for_each() {
        let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(["a text of many rows"]));
        let slices: Vec<&dyn Array> = std::iter::repeat_n(text.as_ref(), 100).collect();
        let joined = concat(&slices).unwrap();
        let kept = in_few_buffers(Arc::clone(&joined));
        assert_eq!(kept.to_data().buffers().len(), joined.to_data().buffers().len());
    }

    #[test]
    fn long_lists_are_given_up_and_values_are_not() {
        let text = |row: usize| {
            (!row.is_multiple_of(7)).then(|| format!("text number {row}, long or not"))
        };
        let texts: ArrayRef = Arc::new((0..2000).map(text).collect::<StringViewArray>());
        let bytes: ArrayRef = Arc::new((0..2000).map(text).collect::<BinaryViewArray>());
        for array in [texts, bytes] {
            for (times, given_up) in [(3, false), (100, true)] {
                let slices: Vec<_> = (0..times).map(|at| array.slice(at % 20, 9)).collect();
                let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
                let joined = concat(&slices).unwrap();
                let few = in_few_buffers(Arc::clone(&joined));
                assert_eq!(&few, &joined);
                let buffers = |array: &ArrayRef| array.to_data().buffers().len();
                // One is that of the views.
                assert_eq!(buffers(&few), if given_up { 2 } else { buffers(&joined) });
            }
        }
    }
}
