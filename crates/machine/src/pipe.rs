//! Files that may be pipes, whose other end is somebody else's: a wait for it ends once the user
//! interrupts.
//!
//! ```text
//! to read    open at once ──► wait for what is written ──► read
//! to write   wait for who reads ──► open ──► write
//! ```
//!
//! The system's own open and read wait by themselves, and nothing but a signal to their thread
//! ends that.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// How often an interruption is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Whether the user interrupted.
static INTERRUPTED: OnceLock<fn() -> bool> = OnceLock::new();

/// Has waits for the other end of a pipe go on only until this says that the user interrupted.
pub fn wait_until(is_interrupted: fn() -> bool) {
    // The first one stays: there is one command.
    let _ = INTERRUPTED.set(is_interrupted);
}

fn check() -> io::Result<()> {
    match INTERRUPTED.get().is_some_and(|is_interrupted| is_interrupted()) {
        // Not of the kind `Interrupted`, after which whatever failed is tried again.
        true => Err(io::Error::other("interrupted")),
        false => Ok(()),
    }
}

/// Opens a file to read, without waiting for who writes into a pipe: [`Reader`] does that.
///
/// # Errors
/// When it can't be opened.
pub fn open(path: &Path) -> io::Result<File> {
    // Of a pipe that nobody writes into either (open(2)); regular files are read as ever.
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Opens what is there to write into it: a pipe, once somebody reads it.
///
/// # Errors
/// When it can't be opened, or the user interrupts.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    let file = loop {
        match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
            // Nobody reads it yet (fifo(7)).
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && is_pipe(path) => {
                check()?;
                thread::sleep(LOOK_EVERY);
            }
            opened => break opened?,
        }
    };
    // Who writes knows nothing of pipes that are full.
    fcntl_setfl(&file, fcntl_getfl(&file)?.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.file_type().is_fifo())
}

/// The bytes of a file, waited for where they are somebody else's to write.
#[derive(Debug)]
pub struct Reader {
    file: File,
    waits: bool,
}

impl Reader {
    /// Of an open file, from its place on.
    ///
    /// # Errors
    /// When nothing can be known of it.
    pub fn new(file: File) -> io::Result<Self> {
        let waits = !file.metadata()?.is_file();
        Ok(Self { file, waits })
    }

    /// Waits for bytes, or for the end. A pipe has one once somebody wrote into it.
    fn wait(&self) -> io::Result<()> {
        let every = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
        loop {
            check()?;
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&every)) {
                Ok(0) | Err(Errno::INTR) => {}
                ready => return ready.map(drop).map_err(io::Error::from),
            }
        }
    }
}

impl Read for Reader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.waits {
                self.wait()?;
            }
            match self.file.read(to) {
                // Somebody else read it first.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    thread_local! {
        static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    }

    fn pipe(directory: &Path) -> PathBuf {
        let pipe = directory.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        pipe
    }

    #[test]
    fn an_interruption_ends_the_wait_for_the_other_end() {
        wait_until(|| INTERRUPTED.get());
        let directory = tempfile::tempdir().unwrap();
        let pipe = pipe(directory.path());
        let read = || Reader::new(open(&pipe)?)?.read(&mut [0]);
        INTERRUPTED.set(true);
        assert_eq!(read().unwrap_err().to_string(), "interrupted");
        assert_eq!(open_to_write(&pipe).unwrap_err().to_string(), "interrupted");
        // Nobody else is waited for.
        let file = directory.path().join("file");
        std::fs::write(&file, "a").unwrap();
        assert_eq!(Reader::new(open(&file).unwrap()).unwrap().read(&mut [0]).unwrap(), 1);
        open_to_write(&file).unwrap();
        INTERRUPTED.set(false);
    }

    #[test]
    fn whoever_comes_first_waits() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = pipe(directory.path());
        let texts = ["through", &"x".repeat(300_000)];
        for text in texts {
            let writer = thread::spawn({
                let (pipe, text) = (pipe.clone(), text.to_owned());
                // More than there is room for: the rest waits for the reader.
                move || open_to_write(&pipe).unwrap().write_all(text.as_bytes())
            });
            let mut read = String::new();
            let mut reader = Reader::new(open(&pipe).unwrap()).unwrap();
            reader.read_to_string(&mut read).unwrap();
            writer.join().unwrap().unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn an_end_that_came_before_is_seen() {
        let (from, to) = io::pipe().unwrap();
        drop(to);
        let from = File::from(std::os::fd::OwnedFd::from(from));
        assert_eq!(Reader::new(from).unwrap().read(&mut [0]).unwrap(), 0);
    }
}
