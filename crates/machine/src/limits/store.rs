//! Limits kept per machine, so that they are measured once.
//!
//! `$XDG_CACHE_HOME/workahead/limits/<fingerprint>.json`, or below `~/.cache` (XDG Base Directory
//! Specification 0.8: relative paths are ignored). A file that can't be read, that another version
//! wrote or that belongs to another machine is not an error: the limits are measured again. A file
//! is written under a temporary name and then renamed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::links;
use crate::machine::Machine;
use crate::{atomic_file, regular_file};

use super::{Budget, Limits, Progress, VERSION};

/// Of a file; those that are measured have some tens of KiB.
const BYTES_MAX: u64 = 1 << 20;
/// No figure is larger: bytes, or nanoseconds.
const FIGURE_MAX: f64 = (1_u64 << 45) as f64;

/// The directory in which limits are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    directory: Option<PathBuf>,
}

/// Limits, and where they came from.
#[derive(Debug)]
pub struct SourcedLimits {
    /// The limits.
    pub limits: Limits,
    /// Where they came from.
    pub origin: Origin,
}

/// Where limits came from.
#[derive(Debug)]
pub enum Origin {
    /// Read from this file.
    Saved(PathBuf),
    /// Measured now, and saved in this file.
    Measured(PathBuf),
    /// Measured now, but they could not be saved: the next command measures again.
    NotKept(Error),
}

impl Store {
    /// The user's own cache directory.
    #[must_use]
    pub fn of_user() -> Self {
        Self::from_environment(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
    }

    /// Another directory.
    #[must_use]
    pub fn at(directory: &Path) -> Self {
        Self { directory: Some(directory.to_owned()) }
    }

    fn from_environment(cache: Option<OsString>, home: Option<OsString>) -> Self {
        let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let cache = cache.and_then(absolute);
        let home = || Some(home.and_then(absolute)?.join(".cache"));
        Self { directory: cache.or_else(home).map(|cache| cache.join("workahead/limits")) }
    }

    /// The directory; `None` where the environment names none.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The file for a machine; `None` where the environment names no directory.
    #[must_use]
    pub fn path(&self, machine: &Machine) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{}.json", machine.fingerprint())))
    }

    /// The limits saved for a machine, if there are any that can be used.
    #[must_use]
    pub fn load(&self, machine: &Machine) -> Option<Limits> {
        let text = regular_file::read_text(&self.path(machine)?, BYTES_MAX).ok()?;
        let limits = Limits::read(serde_json::from_str(&text).ok()?)?;
        (limits.version == VERSION && limits.machine == machine.fingerprint()).then_some(limits)
    }

    /// Saves limits for the machine they were measured on. Returns the file.
    ///
    /// # Errors
    /// When there is no such directory and none can be made, or the file can't be written.
    pub fn save(&self, machine: &Machine, limits: &Limits) -> Result<PathBuf, Error> {
        let path = self.path(machine).ok_or(Error::NoCache)?;
        match write(&path, limits) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Save { path, source }),
        }
    }
}

/// Whether its numbers can be reckoned with: another program may have written them.
fn is_plausible(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => {
            number.as_f64().is_some_and(|number| (0.0..=FIGURE_MAX).contains(&number))
        }
        serde_json::Value::Array(values) => values.iter().all(is_plausible),
        serde_json::Value::Object(values) => values.values().all(is_plausible),
        _ => true,
    }
}

/// A link in its place is replaced: a run that works for a stranger may have put it there.
fn write(path: &Path, limits: &Limits) -> io::Result<()> {
    let place = path.parent().zip(path.file_name().and_then(|name| name.to_str()));
    let (directory, name) = place.ok_or(io::ErrorKind::InvalidInput)?;
    links::make_directory(directory)?;
    atomic_file::write_in(directory, name, &serde_json::to_vec_pretty(limits)?)
}

impl Limits {
    /// Limits as a file has them, if they can be reckoned with.
    #[must_use]
    pub fn read(value: serde_json::Value) -> Option<Limits> {
        Some(value).filter(is_plausible).map(serde_json::from_value)?.ok()
    }

    /// The limits saved for this machine; measured (and saved) when there are none.
    ///
    /// # Errors
    /// As [`Limits::measure`]. Limits that can't be saved are not an error: see
    /// [`Origin::NotKept`].
    pub fn load_or_measure(
        machine: &Machine,
        store: &Store,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Result<SourcedLimits, Error> {
        if let (Some(limits), Some(path)) = (store.load(machine), store.path(machine)) {
            return Ok(SourcedLimits { limits, origin: Origin::Saved(path) });
        }
        Self::measure_and_save(machine, store, progress, stop)
    }

    /// Measures, whatever is saved, and saves.
    ///
    /// # Errors
    /// As [`Limits::load_or_measure`].
    pub fn measure_and_save(
        machine: &Machine,
        store: &Store,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Result<SourcedLimits, Error> {
        let limits = Self::measure(machine, Budget::full(machine), progress, stop)?;
        let origin = match store.save(machine, &limits) {
            Ok(path) => Origin::Measured(path),
            Err(error) => Origin::NotKept(error),
        };
        Ok(SourcedLimits { limits, origin })
    }
}

#[cfg(test)]
mod tests;
