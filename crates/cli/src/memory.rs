//! The memory limit and the spill directory of a command.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
#[cfg(feature = "sql")]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use workahead_join::{MemoryError, MemoryPool, Pool, Reservation, SpillDirectory, memory_bytes};
use workahead_machine::{Machine, allocator, memory};

/// A batch of a file may take this share of the memory (1/4): it is read, decompressed, and there
/// is one of the other side.
const BATCH_SHARE: usize = 4;

/// The limit under which a batch of a file may take so much.
pub(crate) fn limit_for(batch_bytes: usize) -> usize {
    batch_bytes.saturating_mul(BATCH_SHARE)
}

/// A command's own buffers are to be at most this share of the memory (1/8).
const BUFFERS_SHARE: usize = 8;

/// The options `--memory-limit` and `--spill-dir`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Memory {
    /// Memory limit: 300MB, 2GiB, …; the rest is spilled to files
    #[arg(long, value_name = "SIZE", value_parser = memory_bytes)]
    memory_limit: Option<usize>,
    /// Directory for spill files [default: the system's temporary one, or /var/tmp where that is
    /// memory]
    #[arg(long, value_name = "DIR", requires = "memory_limit")]
    spill_dir: Option<PathBuf>,
}

/// The memory of a command, and its spill directory if the memory is limited.
pub(crate) struct Budget {
    pub(crate) pool: Arc<Pool>,
    pub(crate) directory: Option<Arc<SpillDirectory>>,
}

impl Memory {
    /// The limit and the directory, for a session with a pool of its own.
    #[cfg(feature = "sql")]
    pub(crate) fn into_parts(self) -> anyhow::Result<(Option<usize>, Option<PathBuf>)> {
        if self.memory_limit.is_none() {
            return Ok((None, None));
        }
        allocator::give_back_what_is_freed();
        allow_open_files();
        let directory = self.spill_dir.map_or_else(temporary_on_disk, Ok)?;
        Ok((self.memory_limit, Some(directory)))
    }

    /// The limit, if any, and the directory, for a worker, which always has a limit.
    #[cfg(feature = "cluster")]
    pub(crate) fn into_parts_of_worker(self) -> anyhow::Result<(Option<usize>, PathBuf)> {
        allocator::give_back_what_is_freed();
        allow_open_files();
        Ok((self.memory_limit, self.directory()?))
    }

    /// Where files are put that nobody keeps.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        self.spill_dir.clone().map_or_else(temporary_on_disk, Ok)
    }

    /// The memory that was requested.
    pub(crate) fn budget(&self) -> anyhow::Result<Budget> {
        let Some(limit) = self.memory_limit else {
            return Ok(Budget { pool: Pool::unlimited(), directory: None });
        };
        // Before threads are started. Without this setting the process holds more than it uses.
        allocator::give_back_what_is_freed();
        let directory = Some(SpillDirectory::new(self.directory()?, None)?);
        Ok(Budget { pool: Pool::of(limit), directory })
    }
}

/// As many open files as the system lets this process have: a session's exchanges keep a file open
/// for each batch that found no memory. Where it lets it have no more, they begin with what it has.
#[cfg(feature = "sql")]
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The system's temporary directory; one whose files are memory would take what the limit gives.
fn temporary_on_disk() -> anyhow::Result<PathBuf> {
    on_disk(std::env::temp_dir())
}

fn on_disk(usual: PathBuf) -> anyhow::Result<PathBuf> {
    memory::directory_on_disk(usual.clone()).with_context(|| {
        let usual = usual.display();
        format!("files in {usual} take memory: name a directory on a disk with --spill-dir")
    })
}

impl Budget {
    pub(crate) fn limit(&self) -> Option<usize> {
        self.pool.limit()
    }

    /// Most bytes of a batch of a file: a quarter of the limit, or of the memory that there is.
    pub(crate) fn batch_bytes(&self, machine: &Machine) -> usize {
        let allowed = machine.memory.allowed_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        self.limit().or(allowed).unwrap_or(usize::MAX) / BATCH_SHARE
    }

    /// Memory for the command's own buffers.
    pub(crate) fn set_aside(&self, bytes: usize) -> anyhow::Result<Reservation> {
        let mut reservation = Reservation::new(self.pool.clone());
        reservation.grow(bytes).map_err(|MemoryError { limit, .. }| {
            let enough = bytes.saturating_mul(BUFFERS_SHARE);
            anyhow::anyhow!(
                "the memory limit of {limit} bytes is too small for the buffers of all threads: \
                 raise the limit to {enough}, or use fewer threads"
            )
        })?;
        Ok(reservation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_spilled_to_memory() {
        let shared = PathBuf::from("/dev/shm");
        if memory::holds_files(&shared) {
            let chosen = on_disk(shared).unwrap();
            assert!(!memory::holds_files(&chosen), "{}", chosen.display());
        }
        assert!(!memory::holds_files("/no/such/directory".as_ref()));
    }
}
