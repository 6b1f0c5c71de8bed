//! A file that has its final name only once it is complete.
//!
//! ```text
//! create ──► .orders.parquet.4711.workahead-tmp ──► written … ──► publish ──► orders.parquet
//!                          └── dropped unpublished: removed
//! ```
//!
//! The temporary name lies in the same directory, so that publishing is one rename: readers see
//! the old file or the whole new one, never a part.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::WorkloadError;

/// A file under a temporary name.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    published: bool,
}

/// Ends every temporary name, so that leftovers of a killed process can be recognised.
pub const SUFFIX: &str = "workahead-tmp";

impl AtomicFile {
    /// Starts a file that will replace `target`.
    ///
    /// # Errors
    /// When `target` is a directory or its directory can't be written to.
    pub fn create(target: &Path) -> Result<Self, WorkloadError> {
        static DRAFTS: AtomicU32 = AtomicU32::new(0);
        let failed = |source| WorkloadError::Write { path: target.to_owned(), source };
        if target.is_dir() {
            return Err(failed(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory: name a file",
            )));
        }
        let name = target.file_name().ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"))
        })?;
        let draft = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{draft}.{SUFFIX}", std::process::id()));
        let temporary = target.with_file_name(temporary);
        let file =
            OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
        Ok(Self { file, temporary, target: target.to_owned(), published: false })
    }

    /// The file to write to.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its final name, replacing what had it, once its content is on disk.
    ///
    /// # Errors
    /// When the content can't be stored or the name can't be given; nothing is left behind then.
    pub fn publish(mut self) -> Result<(), WorkloadError> {
        let stored = self.file.sync_all().and_then(|()| fs::rename(&self.temporary, &self.target));
        match stored {
            Ok(()) => {
                self.published = true;
                Ok(())
            }
            Err(source) => Err(WorkloadError::Write { path: self.target.clone(), source }),
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.published {
            // Dropped on the way out of an error, which is what will be reported.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl io::Write for &AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        (&self.file).flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_draft_has_its_name_only_when_published() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.txt");
        let draft = AtomicFile::create(&target).unwrap();
        (&draft).write_all(b"whole").unwrap();
        assert!(!target.exists());
        draft.publish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(directory.path()), ["a.txt"]);
    }

    #[test]
    fn a_dropped_draft_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.txt");
        fs::write(&target, "old").unwrap();
        let draft = AtomicFile::create(&target).unwrap();
        (&draft).write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a.txt"]);
    }

    #[test]
    fn impossible_targets_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(directory.path()).is_err());
        assert!(AtomicFile::create(&directory.path().join("missing/a.txt")).is_err());
        assert!(AtomicFile::create(Path::new("/")).is_err());
        assert_eq!(names(directory.path()), [""; 0]);
    }
}
