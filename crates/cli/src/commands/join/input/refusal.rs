//! The refusal of what takes more memory than it may, with the limit under which it is read.

use std::io::{self, ErrorKind};

use crate::memory::limit_for;

/// Metadata, and pages, that are always read: a limit is exceeded by as much.
pub(super) const BYTES_MIN: usize = 16 << 20;

/// Says what takes more than `bytes_max`, and what to do; `or` is another remedy than the limit.
pub(super) fn too_much(what: &str, bytes: usize, bytes_max: usize, or: &str) -> io::Error {
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    let (takes, most, limit) = (mib(bytes), bytes_max >> 20, mib(limit_for(bytes)));
    let says = format!(
        "{what} takes {takes} MiB, more than the {most} MiB that may be used for it: raise \
         --memory-limit to {limit}MiB{or}"
    );
    io::Error::new(ErrorKind::OutOfMemory, says)
}
