//! How much memory a command may use, and where it puts what does not fit.

use std::path::PathBuf;
use std::sync::Arc;

use workahead_columns::{MemoryPool, Pool, Reservation, SpillDirectory};
use workahead_machine::allocator;

/// The options `--memory-limit` and `--spill-dir`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Memory {
    /// Use no more memory than this: 300MB, 2GiB, …; what does not fit goes to files
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<usize>,
    /// The directory for those files, which have no name there [default: the system's temporary]
    #[arg(long, value_name = "DIR", requires = "memory_limit")]
    spill_dir: Option<PathBuf>,
}

/// Memory of a command, and its directory if the memory is limited.
pub(crate) struct Budget {
    pub(crate) pool: Arc<Pool>,
    pub(crate) directory: Option<Arc<SpillDirectory>>,
}

impl Memory {
    /// The limit and the directory, for a session that makes its own pool of them.
    #[cfg(feature = "sql")]
    pub(crate) fn into_parts(self) -> (Option<usize>, Option<PathBuf>) {
        if self.memory_limit.is_some() {
            allocator::give_back_what_is_freed();
        }
        (self.memory_limit, self.spill_dir)
    }

    /// The memory that was asked for.
    pub(crate) fn budget(&self) -> anyhow::Result<Budget> {
        let Some(limit) = self.memory_limit else {
            return Ok(Budget { pool: Pool::unlimited(), directory: None });
        };
        // Before there are threads. Where it can't be told, the process holds more than it uses.
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

const UNITS: [(&str, u64); 11] = [
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("m", 1 << 20),
    ("g", 1 << 30),
];

/// `300MB`, `1.5 GiB`, `1000000`.
fn size(text: &str) -> Result<usize, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = match &unit[..] {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let bytes = number.parse::<f64>().ok().zip(factor).map(|(n, factor)| n * factor as f64);
    match bytes {
        Some(bytes) if (1.0..usize::MAX as f64 / 2.0).contains(&bytes) => Ok(bytes as usize),
        _ => Err("give a size such as 300MB or 1.5GiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [
            ("300MB", 300_000_000),
            ("300 mb", 300_000_000),
            ("1.5GiB", 3 << 29),
            ("64MiB", 64 << 20),
            ("64M", 64 << 20),
            ("12345", 12345),
            ("1e", 0),
            ("MB", 0),
            ("", 0),
            ("-3MB", 0),
            ("0", 0),
            ("1.2.3MB", 0),
            ("99999999999TB", 0),
            ("3 parsecs", 0),
        ];
        for (text, bytes) in sizes {
            assert_eq!(size(text).unwrap_or(0), bytes, "{text}");
        }
    }
}
