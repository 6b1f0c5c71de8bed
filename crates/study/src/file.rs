//! Files that are whole or absent: written under a temporary name beside the final one, synced,
//! then renamed.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::StudyError;

/// The temporary name of a file, in the same directory so that the rename is atomic.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".workahead-tmp");
    path.with_file_name(name)
}

/// Writes a file whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    let at = temporary(path);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&at)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&at, path)
    };
    write().map_err(|source| {
        // The write's own error is the one to tell.
        let _ = std::fs::remove_file(&at);
        StudyError::Write { path: path.to_owned(), source }
    })
}
