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

/// Writes a file whole. Existing special files, such as `/dev/null` or a named pipe, are written
/// into instead of replaced.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    let is_special = |about: std::fs::Metadata| !about.is_file() && !about.is_dir();
    if path.metadata().is_ok_and(is_special) {
        let write = || File::options().write(true).open(path)?.write_all(bytes);
        return write().map_err(|source| StudyError::Write { path: path.to_owned(), source });
    }
    let at = temporary(path);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&at)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&at, path)
    };
    write().map_err(|source| {
        // The write's own error is reported.
        let _ = std::fs::remove_file(&at);
        StudyError::Write { path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    #[test]
    fn a_file_is_whole_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_whole(&path, b"first").unwrap();
        write_whole(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        let nowhere = dir.path().join("no/file");
        assert!(write_whole(&nowhere, b"").unwrap_err().to_string().contains("no/file"));
        assert!(write_whole(dir.path(), b"").is_err());
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing temporary: {names:?}");
    }

    #[test]
    fn a_special_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut text = String::new();
                File::open(path).unwrap().read_to_string(&mut text).map(|_| text)
            }
        });
        write_whole(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), "through");
        assert!(path.metadata().unwrap().file_type().is_fifo());
    }
}
