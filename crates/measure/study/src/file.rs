//! Files that are whole or absent ([`atomic_file`]), with this crate's errors.

use std::path::Path;

use workahead_machine::atomic_file;

use crate::error::StudyError;

/// Writes a file whole. Links are followed; existing special files, such as `/dev/null` or a named
/// pipe, are written into instead of replaced.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    atomic_file::write_whole(path, bytes)
        .map_err(|source| StudyError::Write { path: path.to_owned(), source })
}

/// Writes a file of a result whole. The result may be somebody else's: no link in it is followed.
pub fn write_in(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), StudyError> {
    atomic_file::write_in(dir, name, bytes)
        .map_err(|source| StudyError::Write { path: dir.join(name), source })
}
