//! A file that many read at places of their own, through one descriptor, until the user interrupts.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use workahead_messages::At;

use super::super::interruptible::check;
use super::super::refusal::UNUSED_BYTES_MAX;

/// The file and its length when it was opened.
#[derive(Debug, Clone)]
pub(super) struct Source {
    file: Arc<File>,
    length: u64,
    /// Pages are few bytes that may stand for much work: it is looked at before each of them.
    interrupted: &'static AtomicBool,
    /// Bytes of pages so far that were decompressed and that no value has.
    unused_bytes: Arc<AtomicUsize>,
}

impl Source {
    pub(super) fn new(file: File, interrupted: &'static AtomicBool) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let unused_bytes = Arc::new(AtomicUsize::new(0));
        Ok(Self { file: Arc::new(file), length, interrupted, unused_bytes })
    }

    /// Adds bytes that were decompressed and that no value has. Whether there are too many.
    pub(super) fn add_unused(&self, bytes: usize) -> bool {
        let before = self.unused_bytes.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) > UNUSED_BYTES_MAX
    }

    /// Some bytes, for which there is room only if they are there.
    pub(super) fn bytes(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        check(self.interrupted)?;
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a part is beyond its end"));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Source {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        check(self.interrupted)?;
        Ok(BufReader::new(At::new(self.file.clone(), start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.bytes(start, length);
        bytes.map(Bytes::from).map_err(|error| ParquetError::External(Box::new(error)))
    }
}
