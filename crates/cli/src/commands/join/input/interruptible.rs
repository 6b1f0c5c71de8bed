//! Reads that fail once the user has interrupted the command, however much is to be read.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::interrupt::Interrupted;

/// Read at a time: some milliseconds from most disks.
const PIECE_BYTES: usize = 8 << 20;

/// The error once the user has interrupted.
pub(super) fn check(interrupted: &AtomicBool) -> io::Result<()> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(io::Error::other(Interrupted)),
        false => Ok(()),
    }
}

/// A reader, and the flag that stops it.
pub(super) struct Interruptible<R> {
    from: R,
    interrupted: &'static AtomicBool,
}

impl<R> Interruptible<R> {
    pub(super) fn new(from: R, interrupted: &'static AtomicBool) -> Self {
        Self { from, interrupted }
    }
}

impl<R: Seek> Seek for Interruptible<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.from.seek(to)
    }
}

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        check(self.interrupted)?;
        let most = to.len().min(PIECE_BYTES);
        self.from.read(&mut to[..most])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_ends_between_two_pieces() {
        static FLAG: AtomicBool = AtomicBool::new(false);
        let mut reader = Interruptible::new(io::repeat(7), &FLAG);
        let mut to = vec![0; 2 * PIECE_BYTES];
        assert_eq!(reader.read(&mut to).unwrap(), PIECE_BYTES);
        FLAG.store(true, Ordering::Relaxed);
        assert_eq!(reader.read_exact(&mut to).unwrap_err().to_string(), "interrupted");
    }
}
