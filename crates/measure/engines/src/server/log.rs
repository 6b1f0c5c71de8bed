//! The log of a server, in one file, of which errors show the end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use workahead_machine::private_directory;

use super::Error;

/// Lines that an error shows: a server's reason to give up, and what led to it.
const TAIL_LINES: usize = 12;
/// Lines with the reason, before the tail: some programs end with advice.
const REASON_LINES: usize = 4;
/// How servers mark such lines.
const REASONS: [&str; 4] = ["[ERROR]", "ERROR:", "FATAL:", "PANIC:"];
/// Bytes read of a long log.
const TAIL_BYTES: u64 = 16 << 10;

/// How servers report a full disk (errno 28, ENOSPC).
const FULL: [&str; 5] = [
    "No space left on device",
    // Of PostgreSQL, where a part of a page still went to the disk.
    "Check free disk space",
    "errno: 28",
    "Errcode: 28",
    "error number 28",
];

/// A log, and where in it the present run of the server begins.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    from: u64,
}

impl Log {
    /// Opens the file at its end; also returns the file for the server to write to.
    pub(crate) fn open(path: &Path) -> Result<(Log, File), Error> {
        // A statement that fails is in it. The server has it open, and needs no right to do so.
        let file = private_directory::file(path, OpenOptions::new().append(true))
            .map_err(|source| Error::system("open", path, source))?;
        let from = file.metadata().map_or(0, |metadata| metadata.len());
        Ok((Log { path: path.to_owned(), from }, file))
    }

    /// Everything written since it was opened, or the end of it when it is long.
    fn said(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            let end = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.from.max(end.saturating_sub(TAIL_BYTES))))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }

    /// The error of a program that failed, with the end of the log.
    pub(crate) fn error(&self, what: &str, how: &str) -> Error {
        let said = self.said();
        if FULL.iter().any(|words| said.contains(words)) {
            return Error::DiskFull { path: self.path.clone() };
        }
        let (what, how) = (what.to_owned(), how.to_owned());
        Error::Start { what, how, log: self.path.clone(), tail: tail(&said) }
    }

    /// Whether these words were written since it was opened.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.said().contains(words)
    }
}

fn tail(said: &str) -> String {
    let lines: Vec<&str> =
        said.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(TAIL_LINES));
    let is_reason = |line: &&&str| REASONS.iter().any(|mark| line.contains(mark));
    let mut shown: Vec<&str> =
        before.iter().rev().filter(is_reason).take(REASON_LINES).copied().collect();
    shown.reverse();
    if !shown.is_empty() {
        shown.push("…");
    }
    shown.extend(last);
    match shown.as_slice() {
        [] => "  (it printed nothing)".to_owned(),
        shown => shown.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_shown() {
        let said: String = (1..=20).map(|line| format!("line {line}\n\n")).collect();
        let tail = tail(&said);
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.starts_with("  line 9\n") && tail.ends_with("  line 20"), "{tail}");
        assert_eq!(super::tail("\n"), "  (it printed nothing)");
    }

    #[test]
    fn a_reason_that_advice_follows_is_shown_too() {
        let advice: String = (1..=20).map(|line| format!("advice {line}\n")).collect();
        let tail = tail(&format!("begun\n0 [ERROR] no memory\nthe rest\n{advice}"));
        assert!(tail.starts_with("  0 [ERROR] no memory\n  …\n  advice 9\n"), "{tail}");
    }

    #[test]
    fn an_older_run_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "older: No space left on device\n").unwrap();
        let (log, mut file) = Log::open(&path).unwrap();
        std::io::Write::write_all(&mut file, b"newer\n").unwrap();
        let message = log.error("the server ended", "exit status: 1").to_string();
        assert!(message.ends_with("log:\n  newer"), "{message}");
    }
}
