//! Decoders of files, behind one boundary.

use workahead_machine::guarded;

/// Runs a decoder, which is not used again after an error; a panic is one too.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    guarded::guarded(decode)?
}
