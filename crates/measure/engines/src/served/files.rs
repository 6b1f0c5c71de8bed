//! Directories of databases: for this user alone, and out of the system's page cache.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Advice, fadvise, fsync};
use workahead_machine::{private_directory, regular_file};
use workahead_study::engine::EngineError;

/// Servers run as another user for root, and pass through what is above the directories of others.
const PASSED_THROUGH: u32 = 0o711;
const OWNER_ONLY: u32 = 0o700;

/// Makes a database's directory for this user alone, or refuses the one that is there: by links
/// in it others would have this process write where those lead.
pub(crate) fn make_private(home: &Path) -> Result<(), EngineError> {
    let make = || {
        if let Some(above) = home.parent().filter(|above| !above.exists()) {
            private_directory::make(above, PASSED_THROUGH)?;
        }
        private_directory::make(home, OWNER_ONLY)
    };
    make().map_err(|error: std::io::Error| {
        EngineError::failed(format!("can't use {}: {error}", home.display()))
    })
}

/// Copies a file to a new one, which is this user's alone whatever the umask.
pub(super) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut from = regular_file::open(from)?;
    let mut to = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    std::io::copy(&mut from, &mut to).map(drop)
}

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
            // It may be the server's user's, and something else by now.
            let file = regular_file::open(&path).map_err(|error| failed(&path, error))?;
            fsync(&file).map_err(|error| failed(&path, error.into()))?;
            fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|error| failed(&path, error.into()))?;
        }
    }
    Ok(())
}
