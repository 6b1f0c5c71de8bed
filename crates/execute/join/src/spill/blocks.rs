//! Checksummed blocks on disk.
//!
//! ```text
//! [ bytes : u32 | checksum : u32 | bytes … ]  [ … ]  [ 0 | 0 ]      the last block is empty
//! ```
//!
//! A decoder of Arrow's format trusts the lengths it reads: a flipped bit could make it allocate
//! any amount of memory. And a truncated stream looks like a complete one unless its end is marked.

#[cfg(not(test))]
pub(super) use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

#[cfg(test)]
pub(super) use super::faulty_file::File;

/// Most bytes of a block.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
const HEAD_BYTES: usize = 8;

/// Writes blocks to the end of a file.
pub(super) struct BlockWriter {
    file: File,
    /// A block header, then the bytes of the block so far.
    block: Vec<u8>,
    block_bytes: usize,
    written: u64,
}

impl BlockWriter {
    /// Writes blocks of at most `block_bytes`.
    pub(super) fn new(file: File, block_bytes: usize) -> Self {
        let block_bytes = block_bytes.min(BLOCK_BYTES);
        let mut block = Vec::with_capacity(HEAD_BYTES + block_bytes);
        block.resize(HEAD_BYTES, 0);
        Self { file, block, block_bytes, written: 0 }
    }

    /// Most bytes of a block.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Bytes in the file.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Writes the end marker and returns the file and its length.
    pub(super) fn finish(mut self) -> io::Result<(File, u64)> {
        self.write_block()?;
        self.file.write_all(&[0; HEAD_BYTES])?;
        Ok((self.file, self.written + HEAD_BYTES as u64))
    }

    fn write_block(&mut self) -> io::Result<()> {
        let (head, bytes) = self.block.split_at_mut(HEAD_BYTES);
        if bytes.is_empty() {
            return Ok(());
        }
        head[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
        self.file.write_all(&self.block)?;
        self.written += self.block.len() as u64;
        self.block.truncate(HEAD_BYTES);
        Ok(())
    }
}

impl Write for BlockWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = HEAD_BYTES + self.block_bytes;
        if self.block.len() == full {
            self.write_block()?;
        }
        let taken = bytes.len().min(full - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Blocks are only written when they are full: nothing reads before the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads blocks by explicit offset: handles to one file share their position.
pub(super) struct BlockReader {
    file: Arc<File>,
    /// Offset of the next block.
    offset: u64,
    block: Vec<u8>,
    /// Bytes of the block that were consumed.
    given: usize,
    ended: bool,
}

impl BlockReader {
    pub(super) fn new(file: Arc<File>) -> Self {
        Self { file, offset: 0, block: Vec::new(), given: 0, ended: false }
    }

    /// Whether everything up to the end marker was read.
    pub(super) fn at_end(&mut self) -> io::Result<bool> {
        if self.given == self.block.len() && !self.ended {
            self.read_block()?;
        }
        Ok(self.ended)
    }

    fn read_block(&mut self) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        self.file.read_exact_at(&mut head, self.offset).map_err(cut)?;
        let [bytes, sum] = [&head[..4], &head[4..]]
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        self.ended = head == [0; HEAD_BYTES];
        if bytes as usize > BLOCK_BYTES || (bytes == 0 && !self.ended) {
            return Err(damaged());
        }
        self.block.resize(bytes as usize, 0);
        self.file.read_exact_at(&mut self.block, self.offset + HEAD_BYTES as u64).map_err(cut)?;
        if !self.ended && crc32fast::hash(&self.block) != sum {
            return Err(damaged());
        }
        self.offset += (HEAD_BYTES + self.block.len()) as u64;
        self.given = 0;
        Ok(())
    }
}

fn cut(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::new(error.kind(), "it ends before its end");
    }
    error
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a check sum is wrong")
}

impl Read for BlockReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.given == self.block.len() {
            if self.ended {
                return Ok(0);
            }
            self.read_block()?;
        }
        let from = &self.block[self.given..];
        let taken = from.len().min(to.len());
        to[..taken].copy_from_slice(&from[..taken]);
        self.given += taken;
        Ok(taken)
    }
}
