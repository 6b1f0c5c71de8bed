//! Directories of running processes, which the next one removes where their process was killed.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::TempDir;

/// Held while the process lives.
const LOCK: &str = "lock";

/// A directory, gone when this is.
#[derive(Debug)]
pub struct LockedFolder {
    folder: TempDir,
    _lock: File,
}

impl LockedFolder {
    /// Makes one that only its owner enters, and removes those of that name that nobody holds.
    ///
    /// # Errors
    /// When the directory can't be written to.
    pub fn make(prefix: &str, directory: &Path) -> io::Result<LockedFolder> {
        sweep(prefix, directory);
        loop {
            let mut folder = tempfile::Builder::new();
            let folder = folder.prefix(prefix).permissions(Permissions::from_mode(0o700));
            let folder = folder.tempdir_in(directory)?;
            let lock = File::create_new(folder.path().join(LOCK))?;
            // Another one that sweeps may have been faster. Some file systems have no locks: there
            // nothing is swept either.
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && lock.metadata()?.nlink() > 0 {
                return Ok(LockedFolder { folder, _lock: lock });
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Best effort: it is in nobody's way.
fn sweep(prefix: &str, directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes())
            && entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        let path = entry.path();
        let lock = || {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            let lock = OpenOptions::new().read(true).custom_flags(flags).open(path.join(LOCK))?;
            lock.try_lock().map_err(io::Error::from).map(|()| lock)
        };
        if is_ours && let Ok(_lock) = lock() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_held_by_nobody_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let held = LockedFolder::make("workers-", directory.path()).unwrap();
        assert_eq!(fs::metadata(held.path()).unwrap().mode() & 0o777, 0o700);
        let left = directory.path().join("workers-left");
        let strange = directory.path().join("workers-strange");
        fs::create_dir_all(left.join("spilled")).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::create_dir(&strange).unwrap();
        let other = LockedFolder::make("workers-", directory.path()).unwrap();
        assert!(!left.exists(), "its process has ended");
        assert!(strange.exists(), "it has no lock");
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists() && other.path().exists());
    }
}
