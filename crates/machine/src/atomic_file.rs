//! A file that has its final name only once it is complete.
//!
//! ```text
//! create ──► .orders.parquet.4711-0.workahead-tmp ──► written … ──► publish ──► orders.parquet
//!                          └── dropped unpublished: removed
//! ```
//!
//! The temporary name lies in the same directory, so that publishing is one rename: readers see the
//! old file or the whole new one, never a part. A symbolic link is followed, and what is not a
//! regular file (a device, a pipe) is written into; neither is ever replaced. The temporary file is
//! new, never one that somebody put there, and locked while it is written: one that nobody holds is
//! the rest of a killed process, which the next file of that name sweeps away.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::links::{follow, trust};
use crate::pipe;

/// Ends every temporary name.
pub const SUFFIX: &str = ".workahead-tmp";

/// A file under a temporary name; or a device, which keeps its own.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// None for what is written into.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will replace `path`, or what `path` leads to.
    ///
    /// # Errors
    /// When it is a directory, a link that is not to be trusted, its directory can't be written to,
    /// or the user interrupts the wait for who reads a pipe.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = follow(path)?;
        match fs::symlink_metadata(&target) {
            Ok(about) if !about.is_file() && !about.is_dir() => {
                trust(&target)?;
                let file = pipe::open_to_write(&target)?;
                Ok(Self { file, temporary: None, target })
            }
            _ => Self::beside(target),
        }
    }

    /// Starts a file of a directory whose content may be somebody else's, such as a result that was
    /// unpacked: a link, a device or a pipe of that name is replaced, and nothing that it leads to
    /// is written to.
    ///
    /// # Errors
    /// When it is a directory, or the directory can't be written to.
    pub fn create_in(directory: &Path, name: &str) -> io::Result<Self> {
        Self::beside(directory.join(name))
    }

    fn beside(target: PathBuf) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = target.file_name();
        let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it has no name"))?;
        // Nobody reads of the new one, while it is written, who could not read the old one.
        let mode = match fs::symlink_metadata(&target) {
            Ok(before) if before.is_dir() => {
                let says = "it is a directory: name a file";
                return Err(io::Error::new(ErrorKind::IsADirectory, says));
            }
            Ok(before) if before.is_file() => before.mode() & 0o666 | 0o600,
            _ => 0o666,
        };
        sweep(&target, name);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut temporary = beginning(name);
            temporary.push(format!("{}-{number}{SUFFIX}", std::process::id()));
            let temporary = target.with_file_name(temporary);
            // Fails for a link too (open(2), O_EXCL).
            let opened =
                OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary);
            let file = match opened {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let created = Self { file, temporary: Some(temporary), target: target.clone() };
            // Some file systems have no locks: there nothing is swept either.
            if let Err(TryLockError::WouldBlock) = created.file.try_lock() {
                continue;
            }
            // It may have been swept between its first two calls.
            if created.file.metadata()?.nlink() > 0 {
                return Ok(created);
            }
        }
    }

    fn fill(self, bytes: &[u8]) -> io::Result<()> {
        (&self).write_all(bytes)?;
        self.publish()
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
    pub fn publish(mut self) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return (&self.file).flush() };
        if let Ok(before) = fs::symlink_metadata(&self.target)
            && before.is_file()
        {
            let new = self.file.metadata()?;
            let wanted = permissions(&before, &new);
            if new.mode() & 0o777 != wanted {
                // Not every file system has modes, and not every process may change them: then it
                // stays at least as private as what it replaces.
                let _ = self.file.set_permissions(Permissions::from_mode(wanted));
            }
        }
        self.file.sync_all()?;
        fs::rename(temporary, &self.target)?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Dropped on the way out of an error, which is what will be reported.
            let _ = fs::remove_file(temporary);
        }
    }
}

impl Write for &AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.file).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        (&self.file).flush()
    }
}

/// Who may read what is replaced stays as it was. Another user's word opens nothing that would be
/// closed otherwise, and nobody's makes the new file run as its owner.
fn permissions(before: &fs::Metadata, new: &fs::Metadata) -> u32 {
    let mode = before.mode() & 0o777;
    if before.uid() == new.uid() { mode } else { mode & new.mode() }
}

/// Writes a file whole.
///
/// # Errors
/// As [`AtomicFile::create`] and [`AtomicFile::publish`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    AtomicFile::create(path)?.fill(bytes)
}

/// Writes a file of a directory whole.
///
/// # Errors
/// As [`AtomicFile::create_in`] and [`AtomicFile::publish`].
pub fn write_in(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    AtomicFile::create_in(directory, name)?.fill(bytes)
}

/// `.NAME.`
fn beginning(name: &OsStr) -> OsString {
    let mut beginning = OsString::from(".");
    beginning.push(name);
    beginning.push(".");
    beginning
}

/// The user whose rights this process has.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a file is not complete yet, by its name.
#[must_use]
pub fn is_unfinished(name: &[u8]) -> bool {
    name.starts_with(b".") && name.ends_with(SUFFIX.as_bytes())
}

/// Removes what killed processes left of any file of a directory. Best effort: it is in nobody's
/// way.
pub fn sweep_directory(directory: &Path) {
    sweep_beginning(directory, b"");
}

/// The same of a file.
fn sweep(target: &Path, name: &OsStr) {
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    sweep_beginning(directory, beginning(name).as_encoded_bytes());
}

fn sweep_beginning(directory: &Path, beginning: &[u8]) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if is_unfinished(name) && name.starts_with(beginning) {
            remove_abandoned(&entry.path());
        }
    }
}

fn remove_abandoned(path: &Path) {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return };
    let ours = file.metadata().is_ok_and(|about| about.is_file() && about.uid() == own_user());
    if ours && file.try_lock().is_ok() {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_published() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.txt");
        let file = AtomicFile::create(&target).unwrap();
        (&file).write_all(b"whole").unwrap();
        assert!(!target.exists());
        file.publish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(directory.path()), ["a.txt"]);
    }

    #[test]
    fn a_dropped_file_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.txt");
        fs::write(&target, "old").unwrap();
        let file = AtomicFile::create(&target).unwrap();
        (&file).write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a.txt"]);
    }

    #[test]
    fn permissions_stay_but_for_another_owners() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str, mode: u32| {
            let path = directory.path().join(name);
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        for (given, kept) in [(0o640, 0o640), (0o666, 0o666), (0o6755, 0o755)] {
            let target = at("a", given);
            write_whole(&target, b"new").unwrap();
            assert_eq!(mode(&target), kept);
        }
        let (own, other) = (at("own", 0o644), at("other", 0o4666));
        if std::os::unix::fs::chown(&other, Some(own_user() + 1), None).is_ok() {
            fs::set_permissions(&other, Permissions::from_mode(0o4666)).unwrap();
            write_whole(&other, b"new").unwrap();
            let open = at("new", 0o666);
            fs::remove_file(&open).unwrap();
            fs::write(&open, "").unwrap();
            assert_eq!(mode(&other), mode(&open), "what a new file has, and no more");
        }
        assert_eq!(mode(&own), 0o644);
    }

    #[test]
    fn the_replacement_of_a_private_file_is_private_from_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        let file = AtomicFile::create(&target).unwrap();
        assert_eq!(file.file().metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn root_writes_through_no_link_of_another_user() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let theirs = directory.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        let link = theirs.join("link");
        symlink(&victim, &link).unwrap();
        // Only root can give them away.
        if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
            std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
            let says = write_whole(&link, b"new").unwrap_err().to_string();
            assert!(says.contains("another user's link"), "{says}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        }
    }

    #[test]
    fn impossible_targets_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(AtomicFile::create(directory.path()).is_err());
        assert!(AtomicFile::create(&directory.path().join("missing/a.txt")).is_err());
        assert!(AtomicFile::create(Path::new("/")).is_err());
        symlink("b", directory.path().join("a")).unwrap();
        symlink("a", directory.path().join("b")).unwrap();
        assert!(AtomicFile::create(&directory.path().join("a")).is_err());
        assert_eq!(names(directory.path()), ["a", "b"]);
    }

    #[test]
    fn a_link_is_followed_also_to_what_is_not_there_yet() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("there");
        fs::create_dir(&there).unwrap();
        let link = directory.path().join("link");
        symlink("there/file", &link).unwrap();
        for text in ["first", "second"] {
            write_whole(&link, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(there.join("file")).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert_eq!(names(&there), ["file"]);
    }

    #[test]
    fn nothing_is_written_through_a_link_of_an_unpacked_directory() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink("victim", at("link")).unwrap();
        symlink("new", at("dangling")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for name in ["link", "dangling", "pipe"] {
            write_in(directory.path(), name, b"whole").unwrap();
            assert!(fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "whole");
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
        assert_eq!(names(directory.path()), ["dangling", "link", "pipe", "victim"]);
        assert!(write_in(&at(""), "", b"").is_err());
    }

    #[test]
    fn a_target_that_is_not_a_regular_file_is_written_into() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).map(|_| text)
            }
        });
        write_whole(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), "through");
        assert!(pipe.metadata().unwrap().file_type().is_fifo());
        let link = directory.path().join("null");
        symlink("/dev/null", &link).unwrap();
        write_whole(&link, b"nowhere").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert_eq!(names(directory.path()), ["null", "pipe"]);
    }

    /// A shell's `>(…)`, and `/dev/stdout` of a command in a pipeline.
    #[test]
    fn a_pipe_without_a_name_is_written_into() {
        let (mut from, to) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", to.as_raw_fd());
        write_whole(path.as_ref(), b"through").unwrap();
        drop(to);
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn a_name_that_somebody_took_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        for number in 0..2_000 {
            let name = format!(".a.{}-{number}{SUFFIX}", std::process::id());
            symlink(&victim, directory.path().join(name)).unwrap();
        }
        let target = directory.path().join("a");
        write_whole(&target, b"whole").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(&target).unwrap(), "whole");
    }

    #[test]
    fn files_left_by_a_killed_process_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for left in [".a.4711-0.workahead-tmp", ".ab.4711-0.workahead-tmp", ".a.4711-0.other"] {
            fs::write(at(left), "half").unwrap();
        }
        let alive = AtomicFile::create(&at("a")).unwrap();
        let second = AtomicFile::create(&at("a")).unwrap();
        assert_eq!(names(directory.path()).len(), 4, "the living, and what is not a's");
        second.publish().unwrap();
        alive.publish().unwrap();
        assert_eq!(names(directory.path()), [".a.4711-0.other", ".ab.4711-0.workahead-tmp", "a"]);
    }
}
