//! Regular files of bounded size, and nothing else.
//!
//! A path in a study or a result directory may be a device without end, a pipe that nobody writes
//! to, or a link to one. A size that a file states is not trusted either: reading has the limit.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::pipe;

/// Opens a regular file, without waiting for anybody. Links are followed.
///
/// # Errors
/// When it can't be opened, or is something else.
pub fn open(path: &Path) -> io::Result<File> {
    regular(pipe::open(path)?)
}

/// The same of a file in a directory that others write to. A link is refused.
///
/// # Errors
/// As [`open`]; and when it is a link.
pub fn open_unlinked(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    regular(OpenOptions::new().read(true).custom_flags(flags).open(path)?)
}

/// Opens a regular file at its end, a new one if there is none. A link is refused.
///
/// # Errors
/// When it can't be opened, or is something else.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().create(true).append(true).custom_flags(flags).open(path)?;
    regular(file)
}

/// Reads a regular file of at most `bytes_max`.
///
/// # Errors
/// As [`open`]; and when it is larger.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    take(open(path)?, bytes_max)
}

/// The same, of text.
///
/// # Errors
/// As [`read`]; and when it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text(read(path, bytes_max)?)
}

/// Reads text of at most `bytes_max` from what a user named: also from a pipe, which is waited for
/// until the user interrupts.
///
/// # Errors
/// When it can't be read, is larger, or is not UTF-8.
pub fn read_named_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text(take(pipe::Reader::new(pipe::open(path)?)?, bytes_max)?)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file: name one")),
    }
}

fn take(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let says = format!("it has more than {} MiB, the most that are read", bytes_max >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, says));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_no_more_than_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
        assert_eq!(read_text(&file, 1 << 20).unwrap().len(), 1 << 20);
        let says = read(&file, (1 << 20) - 1).unwrap_err().to_string();
        assert!(says.contains("the most that are read"), "{says}");
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for other in [&pipe, Path::new("/dev/zero"), directory.path()] {
            let says = read(other, 1 << 20).unwrap_err().to_string();
            assert!(says.contains("not a regular file"), "{says}");
        }
        assert!(append(&file).is_ok() && append(&directory.path().join("new")).is_ok());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read(&link, 1 << 20).is_ok() && append(&link).is_err());
        let says = read_named_text(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert!(says.contains("more than 1 MiB"), "{says}");
    }
}
