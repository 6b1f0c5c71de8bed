//! The directory under which `/proc` and `/sys` are looked for.
//!
//! Everything this crate knows about a machine it reads below one root, so that tests (and readers
//! of a bug report) can put a directory there that holds another machine. Files that are missing
//! or unreadable are ordinary: a value that cannot be read is unknown, not an error.

use std::path::{Path, PathBuf};

use crate::cpus::CpuSet;
use crate::error::Error;

/// Where a machine is described.
#[derive(Debug, Clone)]
pub struct Sysroot {
    directory: PathBuf,
    live: bool,
}

impl Sysroot {
    /// The machine this process runs on.
    #[must_use]
    pub fn live() -> Self {
        Self { directory: PathBuf::from("/"), live: true }
    }

    /// A machine described by the files under a directory.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn at(directory: &Path) -> Result<Self, Error> {
        if directory.is_dir() {
            Ok(Self { directory: directory.to_owned(), live: false })
        } else {
            Err(Error::Sysroot { directory: directory.to_owned() })
        }
    }

    /// Whether this is the machine the process runs on: only then may the processor itself be
    /// queried (CPUID, system calls).
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// The text of a file without surrounding white space, if it can be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.directory.join(path)).ok()?;
        // Device-tree strings end with a NUL byte.
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    /// A file that holds one value: text, number, CPU list…
    pub(crate) fn value<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// A CPU list that is not empty.
    pub(crate) fn cpus(&self, path: &str) -> Option<CpuSet> {
        self.value::<CpuSet>(path).filter(|cpus| !cpus.is_empty())
    }

    /// The numbers N of the entries `prefixN` of a directory, smallest first.
    pub(crate) fn numbered(&self, path: &str, prefix: &str) -> Vec<usize> {
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<usize> = self.names(path).iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The names in a directory, sorted; none when it cannot be read.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.directory.join(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Where a path of the machine is for the file system.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// Writes a value to a file that the kernel (or a fixture) already has.
    pub(crate) fn write(&self, path: &str, value: &str) -> std::io::Result<()> {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().write(true).open(self.path(path))?;
        if !self.live {
            file.set_len(0)?;
        }
        // One call: the kernel takes each write for a whole value.
        file.write_all(value.as_bytes())
    }

    /// Whether a file or directory is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.directory.join(path).exists()
    }
}

/// The value after `key` and a colon in a text of `key: value` lines (`/proc/cpuinfo`,
/// `/proc/self/status`), first occurrence.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}
