//! The number of partitions and the size of their buffers: a small part of the memory.

use arrow_array::RecordBatch;

use super::partitioner::Partitioner;
use crate::memory_estimate::sliced_bytes;

/// Hash bits used by a level, by the memory from which its buffers are a small part of it. With
/// 2⁶ partitions one level handles a side of twenty times the memory, as a table takes about three
/// times its narrow rows; each further level writes and reads all of them again. A larger memory is
/// exceeded by less, and fewer partitions write longer batches.
const BITS: [(usize, u32); 4] = [(64 << 20, 5), (8 << 20, 6), (4 << 20, 4), (0, 2)];

/// Size of a spilled batch as a share of the memory; above the maximum, writes are amortised
/// anyway.
const BATCH_SHARE: usize = 512;
const BATCH_BYTES: (usize, usize) = (2 << 10, 256 << 10);
/// The same for a block of a file.
const BLOCK_SHARE: usize = 2048;
const BLOCK_BYTES: (usize, usize) = (1 << 10, 64 << 10);

/// Share of the memory that is kept free.
const SPARE_SHARE: usize = 16;

/// Bytes of a column in a small batch beside its values: array and buffer headers.
pub(crate) const COLUMN_BYTES: usize = 256;

/// Sizes for one level of partitioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// log2 of the number of partitions.
    pub(crate) bits: u32,
    /// Bytes from which a batch is written.
    pub(crate) batch_bytes: usize,
    /// Bytes of a block of a file.
    pub(crate) block_bytes: usize,
}

impl Sizes {
    /// Sizes for an amount of memory and a number of probers, each of which has buffers like the
    /// build side's.
    pub(crate) fn of(limit: Option<usize>, probers: usize) -> Self {
        // As if one of the two sides had one prober.
        let memory = limit.unwrap_or(usize::MAX) / (1 + probers) * 2;
        let clamped =
            |share: usize, (least, most): (usize, usize)| (memory / share).clamp(least, most);
        Self {
            bits: BITS.iter().find(|(least, _)| memory >= *least).map_or(0, |(_, bits)| *bits),
            batch_bytes: clamped(BATCH_SHARE, BATCH_BYTES),
            block_bytes: clamped(BLOCK_SHARE, BLOCK_BYTES),
        }
    }

    pub(crate) fn partitions(&self) -> usize {
        1 << self.bits
    }

    /// Memory for writing, beside the batches: a block of each file, and one batch being
    /// concatenated and compressed.
    pub(crate) fn writing_bytes(&self) -> usize {
        self.partitions() * self.block_bytes + 3 * self.batch_bytes
    }

    /// Memory for partitioning a batch: itself, its pieces, the numbers of its rows.
    pub(crate) fn partitioning_bytes(&self, batch: &RecordBatch) -> usize {
        let heads = self.partitions() * batch.num_columns() * COLUMN_BYTES;
        let rows = batch.num_rows() * Partitioner::ROW_BYTES;
        self.writing_bytes() + 2 * (sliced_bytes(batch) + heads + rows)
    }

    /// Memory for one prober's buffers and files.
    pub(crate) fn files_bytes(&self) -> usize {
        self.writing_bytes() + self.partitions() * self.batch_bytes
    }

    /// Memory kept free beside the probers' estimated memory: rows may be longer than the average.
    pub(crate) fn spare_bytes(&self, limit: Option<usize>) -> usize {
        limit.map_or(0, |limit| limit / SPARE_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_a_small_part_of_any_memory() {
        for limit in [128 << 10, 1 << 20, 4 << 20, 8 << 20, 10 << 20, 300 << 20, 16 << 30] {
            let sizes = Sizes::of(Some(limit), 1);
            let buffers = sizes.files_bytes();
            assert!(buffers * 5 <= limit, "{limit}: {sizes:?}");
        }
        assert_eq!(Sizes::of(None, 1), Sizes::of(Some(usize::MAX), 9));
    }
}
