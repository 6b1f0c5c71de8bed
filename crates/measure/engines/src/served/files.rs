//! Drops files from the system's page cache.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{Advice, fadvise, fsync};
use workahead_study::engine::EngineError;

/// Drops the pages of all files below a directory from the page cache. No process may have them
/// open. They are written first: only clean pages can be dropped (posix_fadvise(2)).
pub(super) fn forget(directory: &Path) -> Result<(), EngineError> {
    let failed = |path: &Path, error: std::io::Error| {
        EngineError::failed(format!("can't drop {} from the page cache: {error}", path.display()))
    };
    for entry in fs::read_dir(directory).map_err(|error| failed(directory, error))? {
        let entry = entry.map_err(|error| failed(directory, error))?;
        let (path, kind) = (entry.path(), entry.file_type());
        let kind = kind.map_err(|error| failed(&path, error))?;
        if kind.is_dir() {
            forget(&path)?;
        } else if kind.is_file() {
            let file = File::open(&path).map_err(|error| failed(&path, error))?;
            fsync(&file).map_err(|error| failed(&path, error.into()))?;
            fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|error| failed(&path, error.into()))?;
        }
    }
    Ok(())
}
