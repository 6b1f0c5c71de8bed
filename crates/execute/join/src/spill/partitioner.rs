//! Assigns rows to partitions by bits of a hash of their key, equal on both sides.
//!
//! The hash is independent of the table's (the keys of one partition must still be spread over a
//! whole table), and each level of partitioning uses other bits: with the same bits, all rows would
//! stay together.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take_record_batch;
use workahead_walks::walk::Row;

use super::file::compact;
use super::level::Level;
use crate::keys::{EncodingKind, KeyEncoding, NormalizedKeys, Reader, mixed};
use crate::memory_estimate::KEY_BYTES;
use crate::{JoinSpec, Side};

/// Partitions the rows of one side.
#[derive(Debug)]
pub(crate) struct Partitioner {
    reader: Reader,
    encoding: KeyEncoding,
    /// Bits used by the levels above, and by this one.
    used: u32,
    bits: u32,
    keys: NormalizedKeys,
    /// Rows by partition, and the start of each partition.
    rows: Vec<Row>,
    normalized: Vec<u64>,
    starts: Vec<usize>,
    /// Bytes of full keys, if keys are hashed.
    key_bytes: usize,
}

impl Partitioner {
    /// Bytes per row: its number and key, and scratch.
    pub(crate) const ROW_BYTES: usize = 2 * size_of::<Row>() + 4 * KEY_BYTES;

    /// Uses `bits` bits of the hash after those of the levels above.
    pub(crate) fn new(spec: &JoinSpec, side: Side, level: Level, bits: u32) -> Self {
        let used = level.bits_used;
        assert!(used + bits <= u64::BITS, "a hash has {} bits", u64::BITS);
        let reader = spec.keys(side).clone();
        // Not packed by ranges: the probe side would have to know those of the build side.
        let kind = reader.fixed_encoding().unwrap_or(EncodingKind::Hashed);
        let encoding = KeyEncoding::new(kind);
        Self {
            reader,
            encoding,
            used,
            bits,
            keys: NormalizedKeys::default(),
            rows: Vec::new(),
            normalized: Vec::new(),
            starts: Vec::new(),
            key_bytes: 0,
        }
    }

    fn partition_of(&self, key: u64) -> usize {
        let hash = mixed(key) << self.used;
        (hash >> (u64::BITS - self.bits)) as usize
    }

    /// Assigns the rows of a batch that have a key.
    pub(crate) fn assign(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.reader.read(&self.encoding, batch, &mut self.keys)?;
        let normalized = self.keys.values();
        let mut next = vec![0; (1 << self.bits) + 1];
        normalized.iter().for_each(|key| next[self.partition_of(*key) + 1] += 1);
        for partition in 1..next.len() {
            next[partition] += next[partition - 1];
        }
        self.starts.clone_from(&next);
        let (mut rows, mut sorted) = (vec![0; normalized.len()], vec![0; normalized.len()]);
        for (at, key) in normalized.iter().enumerate() {
            let to = &mut next[self.partition_of(*key)];
            rows[*to] = self.keys.row(at as Row);
            sorted[*to] = *key;
            *to += 1;
        }
        (self.rows, self.normalized) = (rows, sorted);
        // A column may be a part of something large that its reader wants to free.
        self.keys.release_borrowed();
        let full_keys = &self.keys.full_keys;
        self.key_bytes = full_keys.components.len() * KEY_BYTES + full_keys.long.len();
        Ok(())
    }

    /// A partition's rows in the last batch, and their normalized keys.
    pub(crate) fn rows_of(&self, partition: usize) -> (&[Row], &[u64]) {
        let range = self.starts[partition]..self.starts[partition + 1];
        (&self.rows[range.clone()], &self.normalized[range])
    }

    /// Rows of the last batch with a key.
    pub(crate) fn keyed(&self) -> usize {
        self.rows.len()
    }

    /// Rows of the last batch without a key.
    pub(crate) fn keyless(&self, rows: usize) -> Vec<Row> {
        if self.keyed() == rows {
            return Vec::new();
        }
        let mut keyed = vec![false; rows];
        self.rows.iter().for_each(|row| keyed[*row as usize] = true);
        (0..rows as Row).filter(|row| !keyed[*row as usize]).collect()
    }

    /// Bytes of the last batch's full keys.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes used for batches of a given number of rows.
    pub(crate) fn bytes(&self, batch_rows: usize) -> usize {
        batch_rows * Self::ROW_BYTES + self.key_bytes
    }
}

/// Copies some rows of a batch.
pub(crate) fn piece(batch: &RecordBatch, rows: Vec<Row>) -> Result<RecordBatch, ArrowError> {
    compact(&take_record_batch(batch, &UInt32Array::from(rows))?)
}
