//! The resources of a call: threads, and a directory for what memory has no room for.

use std::num::NonZero;
use std::path::PathBuf;

use workahead_machine::memory;

use crate::errors::Error;

/// More than any machine has logical CPUs: a larger number is a mistake.
const THREADS_MAX: usize = 4096;

/// The requested threads; by default one for every CPU that this process may use.
///
/// # Errors
/// When no machine has as many.
pub fn threads(requested: Option<usize>) -> Result<NonZero<usize>, Error> {
    let Some(threads) = requested else {
        return Ok(std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN));
    };
    NonZero::new(threads).filter(|threads| threads.get() <= THREADS_MAX).ok_or_else(|| {
        Error::WrongUse(format!(
            "threads can't be {threads}: give a number from 1 to {THREADS_MAX}"
        ))
    })
}

/// The requested directory for spill files; by default the system's temporary one, or `/var/tmp`
/// where that is memory.
///
/// # Errors
/// When both are memory.
pub fn spill_directory(requested: Option<PathBuf>) -> Result<PathBuf, Error> {
    let on_disk = || {
        let usual = std::env::temp_dir();
        memory::directory_on_disk(usual.clone()).ok_or_else(|| {
            let usual = usual.display();
            Error::WrongUse(format!("files in {usual} take memory: give a spill_dir on a disk"))
        })
    };
    requested.map_or_else(on_disk, Ok)
}
