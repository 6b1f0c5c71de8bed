//! The journal of changes, on the disk before each is made.
//!
//! One JSON line per change. A line without its end was torn by a kill, and its change not made
//! yet: it is skipped. The file is locked as long as its process lives (flock(2): a killed process
//! holds no lock), and emptied, not removed, so that nobody locks a file that has no name any more.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};

use serde::{Deserialize, Serialize};

use super::{RestoredSetting, Unsupported, current, explained};
use crate::private_directory;
use crate::sysroot::Sysroot;

const DIRECTORY: &str = "run/workahead";
const FILE: &str = "run/workahead/settings.journal";
/// A run changes a handful of settings.
const BYTES_MAX: u64 = 1 << 20;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) before: String,
    pub(super) ours: String,
}

/// The journal, locked.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    pub(super) fn open(root: &Sysroot) -> Result<Journal, Unsupported> {
        let no_place = |error: io::Error| {
            Unsupported(format!("no journal of settings in /{DIRECTORY}: {}", explained(&error)))
        };
        // Whatever the umask: its entries are the settings that the next run changes.
        let mut directory = DirBuilder::new();
        let made = directory.recursive(true).mode(0o755).create(root.path(DIRECTORY));
        made.map_err(no_place)?;
        let owned = std::fs::symlink_metadata(root.path(DIRECTORY)).map_err(no_place)?;
        if owned.uid() != rustix::process::geteuid().as_raw() || owned.mode() & 0o022 != 0 {
            let says = format!("others can write to /{DIRECTORY}: `rm -r` it, and run this again");
            return Err(Unsupported(says));
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
        // Who may read it may lock it, and so keep settings from being put back.
        let mut file = private_directory::file(&root.path(FILE), options).map_err(no_place)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let busy = "another run has changed this machine's settings: wait for it";
                return Err(Unsupported(busy.to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(no_place(error)),
        }
        let entries = read(&mut file).map_err(no_place)?;
        Ok(Journal { file, entries })
    }

    /// The journal of a killed run; none is made, none is waited for.
    pub(super) fn open_if_any(root: &Sysroot) -> Option<Journal> {
        let length = std::fs::metadata(root.path(FILE)).ok()?.len();
        (length > 0).then(|| Journal::open(root).ok())?
    }

    pub(super) fn append(&mut self, entry: Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.entries.push(entry);
        Ok(())
    }

    /// Undoes the changes, last one first, and empties the journal once all are undone.
    pub(super) fn restore(&mut self, root: &Sysroot) -> Vec<RestoredSetting> {
        let mut restored = Vec::new();
        let mut kept = Vec::new();
        for entry in self.entries.drain(..).rev() {
            match undo(root, &entry) {
                UndoResult::Already => {}
                UndoResult::Now(value) => restored.push(value),
                UndoResult::Refused(value) => {
                    restored.push(value);
                    kept.push(entry);
                }
            }
        }
        kept.reverse();
        self.entries = kept;
        // Settings that could not be restored stay in the journal, for a command that may do it.
        if self.entries.is_empty() {
            let emptied = self.file.set_len(0).and_then(|()| self.file.sync_data());
            // Undoing twice changes nothing, so a journal that can't be emptied does no harm.
            let _ = emptied;
        }
        restored
    }
}

enum UndoResult {
    Already,
    Now(RestoredSetting),
    Refused(RestoredSetting),
}

fn undo(root: &Sysroot, entry: &Entry) -> UndoResult {
    let reported = |value: &str, trouble: Option<String>| RestoredSetting {
        path: format!("/{}", entry.path),
        value: value.to_owned(),
        trouble,
    };
    match current(root, &entry.path) {
        Some(now) if now == entry.before => UndoResult::Already,
        Some(now) if now != entry.ours => {
            let trouble = format!("somebody else set it to {now}; before, it was {}", entry.before);
            UndoResult::Now(reported(&now, Some(trouble)))
        }
        Some(now) => match root.write(&entry.path, &entry.before) {
            Ok(()) => UndoResult::Now(reported(&entry.before, None)),
            Err(error) => {
                let trouble =
                    format!("can't be set back to {}: {}", entry.before, explained(&error));
                UndoResult::Refused(reported(&now, Some(trouble)))
            }
        },
        None => {
            let trouble = format!("gone; before, it was {}", entry.before);
            UndoResult::Now(reported("", Some(trouble)))
        }
    }
}

fn read(file: &mut File) -> io::Result<Vec<Entry>> {
    let mut text = String::new();
    file.rewind()?;
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let entries = whole.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(entries.filter(|entry: &Entry| is_setting(&entry.path)).collect())
}

/// Whether a path is one that is changed here: root writes what a journal says, and a run for a
/// stranger may have written that.
fn is_setting(path: &str) -> bool {
    [super::HUGE_PAGES, super::smt::CONTROL].contains(&path)
}
