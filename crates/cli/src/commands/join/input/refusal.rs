//! The refusal of what takes more memory than it may, with the limit under which it is read.

use std::io::{self, ErrorKind};

use arrow_schema::ArrowError;

use workahead_messages::MessageError;

use crate::memory::limit_for;

/// Bytes that a file may decompress to without a value that has them: seconds. A kilobyte may stand
/// for megabytes of zeros behind the values.
pub(super) const UNUSED_BYTES_MAX: usize = 4 << 30;
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

/// A part of an Arrow file or stream that should not be decoded.
pub(super) fn refused(error: MessageError) -> ArrowError {
    match error {
        MessageError::TooMuch { what, bytes, bytes_max, or } => {
            too_much(&what, bytes, bytes_max, or).into()
        }
        MessageError::Read(error) => error.into(),
        other => wrong(&other.to_string()),
    }
}
