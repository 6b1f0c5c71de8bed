//! The refusal of what takes more memory than it may, with the limit under which it is read.

use std::io::{self, ErrorKind};

use arrow_schema::ArrowError;

use crate::memory::limit_for;

/// Metadata, and pages, that are always read: a limit is exceeded by as much.
pub(super) const BYTES_MIN: usize = 16 << 20;

/// Bytes that a file may decompress to without a value that has them: seconds. A kilobyte may stand
/// for megabytes of zeros behind the values.
pub(super) const UNUSED_BYTES_MAX: usize = 4 << 30;
/// They are looked for where each byte of the file decompresses to more than this many (16), which
/// it seldom does.
pub(super) const RATIO_USUAL: usize = 16;

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

/// The error of an Arrow file or stream that is not as it should be.
pub(super) fn wrong(says: &str) -> ArrowError {
    ArrowError::ParseError(says.to_owned())
}
