//! Files that fail at one operation, for tests.

use std::fs;
use std::io::{self, Error, ErrorKind, Write};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFault {
    /// No more files can be created.
    Create,
    /// The disk is full after half of the bytes.
    Write,
    /// The disk doesn't answer.
    Read,
    /// The file ends too early.
    Cut,
    /// A bit of what is read is another one.
    Flip,
    /// Zeros are read.
    Zeros,
}

impl FileFault {
    pub(crate) const ALL: [Self; 6] =
        [Self::Create, Self::Write, Self::Read, Self::Cut, Self::Flip, Self::Zeros];

    fn operation(self) -> Operation {
        match self {
            Self::Create => Operation::Create,
            Self::Write => Operation::Write,
            Self::Read | Self::Cut | Self::Flip | Self::Zeros => Operation::Read,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Write,
    Read,
}

/// The operations on the files of a directory, one of which fails.
#[derive(Debug, Default)]
pub(crate) struct FileFaults {
    fault: Option<(FileFault, u64)>,
    /// By kind, those so far.
    operations: [AtomicU64; 3],
}

impl FileFaults {
    /// Fails at an operation, counted from zero among those of its kind.
    pub(crate) fn at(fault: FileFault, operation: u64) -> Arc<Self> {
        Arc::new(Self { fault: Some((fault, operation)), operations: Default::default() })
    }

    /// Operations so far in which this could have happened.
    pub(crate) fn operations(&self, fault: FileFault) -> u64 {
        self.operations[fault.operation() as usize].load(Ordering::Relaxed)
    }

    /// The fault of the next operation of this kind, and since how many of them.
    fn next(&self, operation: Operation) -> Option<(FileFault, u64)> {
        let number = self.operations[operation as usize].fetch_add(1, Ordering::Relaxed);
        let (fault, first) = self.fault.filter(|(fault, _)| fault.operation() == operation)?;
        number.checked_sub(first).map(|since| (fault, since))
    }

    /// Wraps a new file.
    pub(super) fn file(self: &Arc<Self>, file: fs::File) -> io::Result<File> {
        match self.next(Operation::Create) {
            Some(_) => Err(Error::new(ErrorKind::QuotaExceeded, "too many files")),
            None => Ok(File { file, faults: Arc::clone(self) }),
        }
    }
}

/// A file of a directory with faults.
#[derive(Debug)]
pub(super) struct File {
    file: fs::File,
    faults: Arc<FileFaults>,
}

impl Deref for File {
    type Target = fs::File;
    fn deref(&self) -> &fs::File {
        &self.file
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.faults.next(Operation::Write) {
            None => self.file.write(bytes),
            Some((_, 0)) => self.file.write(&bytes[..bytes.len() / 2 + 1]),
            Some(_) => Err(Error::new(ErrorKind::StorageFull, "the disk is full")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl FileExt for File {
    fn read_at(&self, to: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.faults.next(Operation::Read) {
            Some((FileFault::Read, _)) => Err(Error::other("the disk does not answer")),
            Some((FileFault::Cut, _)) => Ok(0),
            Some((FileFault::Zeros, 0)) => {
                to.fill(0);
                Ok(to.len())
            }
            Some((FileFault::Flip, 0)) => {
                let read = self.file.read_at(to, offset)?;
                // Any of them, by where it is.
                let bit = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize % (8 * read).max(8);
                to[bit / 8] ^= 1 << (bit % 8);
                Ok(read)
            }
            _ => self.file.read_at(to, offset),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }
}
