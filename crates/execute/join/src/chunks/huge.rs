//! Columns of fixed width on huge pages.
//!
//! Gathers read a column at random: if it is larger than the TLB covers with small pages, every
//! value costs a page walk besides its cache miss.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder};
use arrow_data::ArrayDataBuilder;
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use bytes::Bytes;
use workahead_machine::pages::{AllocationError, PageBuffer, Pages, Supply};

/// Smaller columns stay where the allocator puts them: a huge page has 2 MiB.
const BYTES_MIN: usize = 2 << 20;

/// Concatenates arrays of one type, on huge pages if that may pay.
pub(super) fn joined(pieces: &[&dyn Array], pages: &Supply) -> Result<ArrayRef, ArrowError> {
    let Some(width) = pieces.first().and_then(|piece| piece.data_type().primitive_width()) else {
        return concat(pieces);
    };
    let rows = pieces.iter().map(|piece| piece.len()).sum::<usize>();
    if pages.pages() == Pages::Small || rows * width < BYTES_MIN {
        return concat(pieces);
    }
    let values = values(pieces, rows * width, width, pages);
    let values = values.map_err(|error| ArrowError::MemoryError(error.to_string()))?;
    let data = ArrayDataBuilder::new(pieces[0].data_type().clone())
        .len(rows)
        .add_buffer(values)
        .nulls(nulls(pieces, rows));
    Ok(make_array(data.build()?))
}

/// Page memory owned by an Arrow buffer.
struct OwnedPages(PageBuffer<u8>);

impl AsRef<[u8]> for OwnedPages {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn values(
    pieces: &[&dyn Array],
    bytes: usize,
    width: usize,
    pages: &Supply,
) -> Result<Buffer, AllocationError> {
    let mut all = pages.any(bytes)?;
    let mut start = 0;
    for piece in pieces {
        let data = piece.to_data();
        let values = &data.buffers()[0][data.offset() * width..][..data.len() * width];
        all[start..start + values.len()].copy_from_slice(values);
        start += values.len();
    }
    Ok(Bytes::from_owner(OwnedPages(all)).into())
}

fn nulls(pieces: &[&dyn Array], rows: usize) -> Option<NullBuffer> {
    if pieces.iter().all(|piece| piece.null_count() == 0) {
        return None;
    }
    let mut nulls = NullBufferBuilder::new(rows);
    for piece in pieces {
        match piece.nulls() {
            Some(of_piece) => nulls.append_buffer(of_piece),
            None => nulls.append_n_non_nulls(piece.len()),
        }
    }
    nulls.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Decimal128Array, Float64Array, Int16Array, StringArray};

    use super::*;

    #[test]
    fn joined_arrays_equal_those_of_concat() {
        let floats = |rows: usize, nulls: bool| -> ArrayRef {
            let value = |row: usize| (!nulls || row % 3 != 1).then_some(row as f64 / 7.0);
            Arc::new((0..rows).map(value).collect::<Float64Array>())
        };
        let long = floats(400_000, true);
        let decimals = Decimal128Array::from_iter_values((0..200_000).map(|i| i128::from(i) << 70));
        let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(38, 3).unwrap());
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["some text"; 300_000]));
        let short: ArrayRef = Arc::new(Int16Array::from(vec![Some(1), None]));
        let cases = [
            vec![long.slice(5, 300_000), floats(3, false), long.slice(1, 1), floats(7, true)],
            vec![floats(500_000, false), floats(1, false)],
            vec![decimals.slice(3, 150_000), decimals],
            vec![texts.slice(1, 200_000), texts],
            vec![short.clone(), short.slice(1, 1)],
        ];
        for pieces in cases {
            let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            for pages in [Pages::Huge, Pages::Small] {
                assert_eq!(&joined(&pieces, &pages.into()).unwrap(), &concat(&pieces).unwrap());
            }
        }
    }
}
