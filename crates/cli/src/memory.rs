//! The memory limit and the spill directory of a command.

use std::path::PathBuf;
use std::sync::Arc;

use workahead_join::{MemoryPool, Pool, Reservation, SpillDirectory, memory_bytes};
use workahead_machine::allocator;

/// The options `--memory-limit` and `--spill-dir`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Memory {
    /// Memory limit: 300MB, 2GiB, …; the rest is spilled to files
    #[arg(long, value_name = "SIZE", value_parser = memory_bytes)]
    memory_limit: Option<usize>,
    /// Directory for spill files (unlinked when created) [default: the system's temporary one]
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
    pub(crate) fn into_parts(self) -> (Option<usize>, Option<PathBuf>) {
        if self.memory_limit.is_some() {
            allocator::give_back_what_is_freed();
        }
        (self.memory_limit, self.spill_dir)
    }

    /// The memory that was requested.
    pub(crate) fn budget(&self) -> anyhow::Result<Budget> {
        let Some(limit) = self.memory_limit else {
            return Ok(Budget { pool: Pool::unlimited(), directory: None });
        };
        // Before threads are started. Without this setting the process holds more than it uses.
        allocator::give_back_what_is_freed();
        let directory = self.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
        let directory = Some(SpillDirectory::new(directory, None)?);
        Ok(Budget { pool: Pool::of(limit), directory })
    }
}

impl Budget {
    pub(crate) fn limit(&self) -> Option<usize> {
        self.pool.limit()
    }

    /// Memory for the command's own buffers.
    pub(crate) fn set_aside(&self, bytes: usize) -> anyhow::Result<Reservation> {
        let mut reservation = Reservation::new(self.pool.clone());
        reservation.grow(bytes)?;
        Ok(reservation)
    }
}
