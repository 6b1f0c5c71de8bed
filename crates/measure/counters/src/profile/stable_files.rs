//! Files of profiled programs, to be mapped: one that is cut while it is mapped ends who reads it
//! (mmap(2), SIGBUS), and one without end takes all memory. So what its owner, the program, can
//! change is copied, as far as it may be.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use workahead_machine::regular_file;

/// The most that is copied of all files of a profile, on disk: a server with its debug information
/// takes half of it.
const COPIED_BYTES_MAX: u64 = 1 << 30;

/// Files that stay as they are, each opened once.
#[derive(Debug)]
pub(super) struct StableFiles {
    files: RefCell<HashMap<PathBuf, Option<File>>>,
    left: Cell<u64>,
}

impl StableFiles {
    pub(super) fn new() -> Self {
        Self { files: RefCell::default(), left: Cell::new(COPIED_BYTES_MAX) }
    }

    /// The path of the content of a file; nothing for what is none, or has too much.
    pub(super) fn path(&self, of: &Path) -> Option<PathBuf> {
        let mut files = self.files.borrow_mut();
        let file = files.entry(of.to_owned()).or_insert_with(|| self.open(of).ok());
        file.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let file = regular_file::open(path)?;
        let about = file.metadata()?;
        if about.uid() == 0 && about.mode() & 0o022 == 0 {
            return Ok(file);
        }
        let left = self.left.get();
        let mut copy = tempfile::tempfile()?;
        // Its stated length is its present one.
        let copied = match about.len() > left {
            true => 0,
            false => io::copy(&mut file.take(left), &mut copy)?,
        };
        self.left.set(left - copied);
        if copied < about.len() {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "it is too large to be copied"));
        }
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_copy_stays_and_what_is_too_large_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let (small, large) = (directory.path().join("small"), directory.path().join("large"));
        fs::write(&small, "content").unwrap();
        // Root's own would be taken as it is.
        let others = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs::set_permissions(&small, others).unwrap();
        let sparse = File::create(&large).unwrap();
        sparse.set_len(COPIED_BYTES_MAX + 1).unwrap();
        sparse.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let files = StableFiles::new();
        let path = files.path(&small).unwrap();
        fs::write(&small, "").unwrap();
        assert_eq!(fs::read_to_string(files.path(&small).unwrap()).unwrap(), "content");
        assert_eq!(files.path(&small).unwrap(), path, "it is copied once");
        assert_eq!(files.path(&large), None);
        assert_eq!(files.path(&directory.path().join("none")), None);
    }
}
