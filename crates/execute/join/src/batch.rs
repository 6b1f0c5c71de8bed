//! Default batch length: as many rows as about stay in the second-level cache while they are
//! joined.
//!
//! ```text
//! rows = 2 × L2 ÷ CPUs that share it ÷ (bytes of a row + intermediate bytes per row)
//! ```
//!
//! Each step writes its result for all rows of a batch (keys, selection vectors, matches, columns),
//! and the next step reads it: longer batches send it through the outer caches, shorter ones raise
//! the overhead per batch. Twice the cache, because a step holds only some of it, and streams: half
//! the length cost up to a third of the speed, eight times the length half of it. In bytes rather
//! than rows, because an output row may have eight bytes or eight hundred; `benches/batches.rs` has
//! the curve. (Boncz, Zukowski, Nes, *MonetDB/X100*, CIDR 2005, fig. 10.)

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};

use crate::Caches;
use crate::row_bytes::run_bytes;

/// Bytes of a batch as a multiple of L2.
const TIMES_L2: usize = 2;

/// Intermediate bytes of a row: key, selection, match, bits.
const KNOWN_BYTES: usize = 24;

/// Shorter batches cost too much overhead each; longer ones gain nothing.
const ROWS_MIN: usize = 1024;
const ROWS_MAX: usize = 16 << 10;

/// Bytes of the limit for each row of a batch: see [`limited_batch_rows`].
const LIMITED_ROW_BYTES: usize = 16 << 10;

/// Bytes of a batch in progress: at most, however much memory there is (an array of texts has
/// offsets of 32 bits, and nothing is gained by more), and at least, however little.
const BYTES_MAX: usize = 256 << 20;
const BYTES_MIN: usize = 64 << 10;
/// The batches in progress of all threads together get this share of limited memory.
const BYTES_SHARE: usize = 16;

/// Assumed bytes of a text or a list.
const GUESSED_BYTES: usize = 16;

impl Caches {
    /// Rows of batches with these columns that about fit in the second-level cache: at least 1024,
    /// at most 16384, a multiple of 64.
    #[must_use]
    pub fn batch_rows(&self, schema: &Schema) -> usize {
        let bytes = self.l2_bytes.saturating_mul(TIMES_L2) / self.l2_sharers.max(1);
        let row_bytes = KNOWN_BYTES + row_bytes(schema);
        (bytes / row_bytes / 64 * 64).clamp(ROWS_MIN, ROWS_MAX)
    }
}

/// Approximate bytes of a row.
pub(crate) fn row_bytes(schema: &Schema) -> usize {
    schema.fields().iter().map(|field| bytes_of(field.data_type())).sum()
}

fn bytes_of(data_type: &DataType) -> usize {
    match data_type {
        DataType::Null => 0,
        DataType::Utf8 | DataType::Binary => size_of::<i32>() + GUESSED_BYTES,
        DataType::LargeUtf8 | DataType::LargeBinary => size_of::<i64>() + GUESSED_BYTES,
        DataType::Utf8View | DataType::BinaryView => size_of::<u128>(),
        DataType::FixedSizeBinary(bytes) => (*bytes).max(0) as usize,
        DataType::FixedSizeList(item, items) => {
            (*items).max(0) as usize * bytes_of(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().map(|field| bytes_of(field.data_type())).sum(),
        DataType::Dictionary(key, _) => bytes_of(key),
        other => match other.primitive_width() {
            Some(bytes) => bytes,
            None if *other == DataType::Boolean => 1,
            None => size_of::<i32>() + GUESSED_BYTES,
        },
    }
}

/// Rows of input and output batches under a memory limit: one for each 16 KiB of it, at least 1024,
/// at most 16384. The memory reserved for outputs depends on it.
#[must_use]
pub fn limited_batch_rows(limit: usize) -> usize {
    (limit / LIMITED_ROW_BYTES).clamp(ROWS_MIN, ROWS_MAX)
}

/// Most bytes of a batch in progress of one of some threads, unless a single row has more.
pub(crate) fn batch_bytes_max(limit: Option<usize>, threads: usize) -> usize {
    let share = |limit: usize| (limit / BYTES_SHARE / threads).clamp(BYTES_MIN, BYTES_MAX);
    limit.map_or(BYTES_MAX, share)
}

/// Rows so narrow that they are worth a batch of [`ROWS_MIN`] however little memory there is; of
/// wide ones fewer, but at least one.
pub(crate) fn rows_min(row_bytes: usize) -> usize {
    (BYTES_MIN / row_bytes.max(1)).clamp(1, ROWS_MIN)
}

/// Slices of a batch of a given number of rows; a short remainder is part of the last one. Slices
/// with more than `bytes_max` are halved until they have one row.
pub(crate) fn pieces_within(
    batch: &RecordBatch,
    rows: usize,
    bytes_max: usize,
) -> impl Iterator<Item = RecordBatch> {
    let mut left: Vec<RecordBatch> = pieces(batch, rows).collect();
    left.reverse();
    halved(left, move |piece| bytes_max == usize::MAX || rows_bytes(piece) <= bytes_max)
}

/// Batches from the last one on, each halved until it fits or has one row.
pub(crate) fn halved(
    mut left: Vec<RecordBatch>,
    fits: impl Fn(&RecordBatch) -> bool,
) -> impl Iterator<Item = RecordBatch> {
    std::iter::from_fn(move || {
        let mut piece = left.pop()?;
        while piece.num_rows() > 1 && !fits(&piece) {
            let half = piece.num_rows() / 2;
            left.push(piece.slice(half, piece.num_rows() - half));
            piece = piece.slice(0, half);
        }
        Some(piece)
    })
}

/// Bytes of all rows.
pub(crate) fn rows_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| run_bytes(column, 0..column.len())).sum()
}

/// Slices of a batch of a given number of rows; a short remainder is part of the last one.
fn pieces(batch: &RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> + '_ {
    let all = batch.num_rows();
    let count = (all / rows).max(1);
    let end = move |piece: usize| if piece + 1 == count { all } else { (piece + 1) * rows };
    (0..count).map(move |piece| batch.slice(piece * rows, end(piece) - piece * rows))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::UInt32Array;
    use arrow_schema::Field;
    use arrow_select::concat::concat_batches;

    use super::*;

    fn schema(types: &[DataType]) -> Schema {
        let field = |(at, data_type): (usize, &DataType)| {
            Field::new(format!("c{at}"), data_type.clone(), true)
        };
        Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>())
    }

    #[test]
    fn wide_rows_make_short_batches_and_shared_caches_too() {
        let caches = Caches { l2_bytes: 512 << 10, l2_sharers: 1, ..Caches::ASSUMED };
        let shared = Caches { l2_sharers: 2, ..caches };
        let narrow = schema(&[const { DataType::Int64 }; 2]);
        let wide = schema(&[const { DataType::Decimal128(20, 2) }; 8]);
        assert_eq!(caches.batch_rows(&narrow), ROWS_MAX);
        assert_eq!(shared.batch_rows(&narrow), (512 << 10) / 40 / 64 * 64);
        assert_eq!(caches.batch_rows(&wide), (1 << 20) / 152 / 64 * 64);
        let wider = schema(&vec![DataType::Utf8; 100]);
        assert_eq!(caches.batch_rows(&wider), ROWS_MIN);
        let huge = Caches { l2_bytes: 1 << 30, ..caches };
        assert_eq!(huge.batch_rows(&narrow), ROWS_MAX);
    }

    #[test]
    fn every_type_has_a_width() {
        let item = || Field::new("item", DataType::Int16, true).into();
        let fields =
            vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Boolean, true)];
        let types = [
            (DataType::Null, 0),
            (DataType::Boolean, 1),
            (DataType::Utf8, 20),
            (DataType::LargeBinary, 24),
            (DataType::Utf8View, 16),
            (DataType::FixedSizeBinary(7), 7),
            (DataType::FixedSizeList(item(), 5), 10),
            (DataType::List(item()), 20),
            (DataType::Struct(fields.into()), 5),
            (DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into()), 1),
            (DataType::Decimal256(40, 2), 32),
        ];
        for (data_type, bytes) in types {
            assert_eq!(row_bytes(&schema(std::slice::from_ref(&data_type))), bytes, "{data_type}");
        }
    }

    #[test]
    fn pieces_are_the_batch() {
        let column = Arc::new(UInt32Array::from_iter_values(0..1000));
        let batch = RecordBatch::try_from_iter([("a", column as _)]).unwrap();
        for (of, rows, expected) in [
            (0, 10, vec![0]),
            (9, 10, vec![9]),
            (25, 10, vec![10, 15]),
            (1000, 400, vec![400, 600]),
        ] {
            let batch = batch.slice(0, of);
            let cut: Vec<_> = pieces(&batch, rows).collect();
            assert_eq!(cut.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), expected);
            assert_eq!(concat_batches(&batch.schema(), &cut).unwrap(), batch);
        }
    }
}
