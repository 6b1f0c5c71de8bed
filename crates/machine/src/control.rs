//! Settings of the machine that a study changes, and how they are put back whatever happens.
//!
//! ```text
//! change(file, value)   journal ◄── file, value before, ours   (synced first)
//!                       file    ◄── ours                       (read back)
//! drop, panic           every file that still has our value ◄── before; the journal is emptied
//! second Ctrl-C         `restore_all`, called by who is about to exit without dropping
//! kill -9, power        a journal that nobody holds: `recover`, called by the next command
//! ```
//!
//! The journal lies in `/run`, which a reboot empties as it resets the settings themselves. It is
//! locked while somebody has changed something, so two runs never take each other's changes for
//! the machine's own. A panic is answered by the drops of its unwinding, not by a hook: a panic in
//! some worker that is caught must not change the machine under the measurement that goes on.
//!
//! An ability that a machine lacks is not an error but an answer, [`Unsupported`], for the report
//! to print.

mod journal;
pub mod placement;
pub mod smt;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};

use crate::sysroot::Sysroot;
use journal::{Entry, Journal};

const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// An ability that this machine lacks, in words for the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unsupported(pub String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A setting that was put back, or left alone because somebody else changed it meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredSetting {
    /// The file of the setting.
    pub path: String,
    /// Its present value.
    pub value: String,
    /// Why it is not what it was before, if it is not.
    pub trouble: Option<String>,
}

/// Leave to change settings; everything is put back when it is dropped.
#[derive(Debug)]
pub struct Controls {
    held: Arc<Mutex<ControlState>>,
}

#[derive(Debug)]
struct ControlState {
    root: Sysroot,
    journal: Journal,
    /// No changes any more: the command is about to exit.
    closed: bool,
}

/// The states that the signal handler's thread can reach.
static ALIVE: Mutex<Vec<Weak<Mutex<ControlState>>>> = Mutex::new(Vec::new());

/// A panic while a lock was held leaves nothing half done here: the journal is on the disk.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controls {
    /// Takes the journal, after putting back what a killed run left changed.
    ///
    /// # Errors
    /// In words: another run holds it, or there is no place for it.
    pub fn take(root: &Sysroot) -> Result<(Controls, Vec<RestoredSetting>), Unsupported> {
        let mut journal = Journal::open(root)?;
        let restored = journal.restore(root);
        let held = ControlState { root: root.clone(), journal, closed: false };
        let held = Arc::new(Mutex::new(held));
        let mut alive = lock(&ALIVE);
        alive.retain(|held| held.strong_count() > 0);
        alive.push(Arc::downgrade(&held));
        Ok((Controls { held }, restored))
    }

    /// Puts everything back now; changes may be made again afterwards.
    pub fn restore(&mut self) -> Vec<RestoredSetting> {
        lock(&self.held).restore()
    }

    /// Which pages the kernel gives without a request: `always`, `madvise` or `never`.
    ///
    /// # Errors
    /// In words, why not.
    pub fn transparent_huge_pages(&mut self, choice: &str) -> Result<(), Unsupported> {
        self.change(HUGE_PAGES, choice)
    }

    /// Writes a setting, its old value in the journal first.
    fn change(&mut self, path: &str, value: &str) -> Result<(), Unsupported> {
        lock(&self.held).change(path, value)
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        lock(&self.held).restore();
    }
}

impl ControlState {
    fn change(&mut self, path: &str, ours: &str) -> Result<(), Unsupported> {
        let cannot = |why: String| Unsupported(format!("/{path} can't be set to {ours}: {why}"));
        if self.closed {
            return Err(cannot("the command is ending".to_owned()));
        }
        let before = current(&self.root, path).ok_or_else(|| {
            Unsupported(format!("this kernel has no setting /{path}, or doesn't show it"))
        })?;
        if before == ours {
            return Ok(());
        }
        let entry = Entry { path: path.to_owned(), before, ours: ours.to_owned() };
        self.journal.append(entry).map_err(|error| cannot(format!("no journal, {error}")))?;
        self.root.write(path, ours).map_err(|error| cannot(explained(&error)))?;
        match current(&self.root, path) {
            Some(now) if now == ours => Ok(()),
            now => Err(cannot(format!("it stayed {}", now.unwrap_or_default()))),
        }
    }

    fn restore(&mut self) -> Vec<RestoredSetting> {
        self.journal.restore(&self.root)
    }
}

fn explained(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "only root may, run the command as root".to_owned(),
        _ => error.to_string(),
    }
}

/// A setting's value: all of the text, or what stands in brackets among choices
/// (`always [madvise] never`).
fn current(root: &Sysroot, path: &str) -> Option<String> {
    let text = root.text(path)?;
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Some(chosen.map_or(text.clone(), |(chosen, _)| chosen.to_owned()))
}

/// Puts back everything that this process has changed, and lets nothing be changed any more. For
/// those who are about to exit without dropping what they hold.
pub fn restore_all() -> Vec<RestoredSetting> {
    let alive: Vec<_> = lock(&ALIVE).iter().filter_map(Weak::upgrade).collect();
    let restore = |held: Arc<Mutex<ControlState>>| {
        let mut held = lock(&held);
        held.closed = true;
        held.restore()
    };
    alive.into_iter().flat_map(restore).collect()
}

/// Puts back what a killed run left changed. Nothing when there is no such run, or one is at work.
pub fn recover(root: &Sysroot) -> Vec<RestoredSetting> {
    match Journal::open_if_any(root) {
        Some(mut journal) => journal.restore(root),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
