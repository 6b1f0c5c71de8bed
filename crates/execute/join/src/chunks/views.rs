//! String views in few buffers.
//!
//! Output batches of another join have views into all strings of that join's build side and carry
//! the list of its buffers. Concatenating many such batches repeats these buffers in the list, and
//! every gather copies the whole list, with a reference count up and, later, down for each. So when
//! the list is long for its rows, the strings still referenced are copied into one buffer.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, ArrayRef, GenericByteViewArray};
use arrow_schema::DataType;

/// Longer lists are noticeable in a gather of some thousand rows.
const BUFFERS_MAX: usize = 64;
/// Arrays with more rows per buffer keep their list: copying the strings would cost more.
const ROWS_MAX: usize = 512;

/// The same values in few buffers.
pub(super) fn in_few_buffers(array: ArrayRef) -> ArrayRef {
    let few = match array.data_type() {
        DataType::Utf8View => few(array.as_string_view()),
        DataType::BinaryView => few(array.as_binary_view()),
        _ => None,
    };
    few.unwrap_or(array)
}

/// A copy in one buffer, if the list of buffers is too long for its rows.
fn few<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Option<ArrayRef> {
    let (buffers, rows) = (array.data_buffers().len(), array.len());
    let long = buffers > BUFFERS_MAX && rows < buffers * ROWS_MAX;
    long.then(|| Arc::new(array.gc()) as _)
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryViewArray, StringViewArray};
    use arrow_select::concat::concat;

    use super::*;

    #[test]
    fn long_buffer_lists_are_compacted_without_changing_values() {
        let text = |row: usize| {
            (!row.is_multiple_of(7)).then(|| format!("text number {row}, long or not"))
        };
        let texts: ArrayRef = Arc::new((0..50).map(text).collect::<StringViewArray>());
        let bytes: ArrayRef = Arc::new((0..50).map(text).collect::<BinaryViewArray>());
        for array in [texts, bytes] {
            for (times, buffers) in [(3, 3), (100, 1)] {
                let slices: Vec<_> = (0..times).map(|at| array.slice(at % 20, 9)).collect();
                let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
                let joined = concat(&slices).unwrap();
                let few = in_few_buffers(Arc::clone(&joined));
                assert_eq!(&few, &joined);
                // One more buffer holds the views.
                assert_eq!(few.to_data().buffers().len(), buffers + 1);
            }
        }
    }
}
