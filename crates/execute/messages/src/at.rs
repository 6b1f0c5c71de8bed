//! A file that several read, each at a place of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A reader with a place of its own, as that of the file is others' too.
#[derive(Debug)]
pub struct At {
    file: Arc<File>,
    at: u64,
}

impl At {
    /// At a place from the file's beginning.
    #[must_use]
    pub fn new(file: Arc<File>, at: u64) -> Self {
        Self { file, at }
    }
}

impl Read for At {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(room, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

impl Seek for At {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
