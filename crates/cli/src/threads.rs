//! How many threads a command uses.

use std::num::NonZero;

/// More than any machine has logical CPUs; a larger number is a typing error, and starting a
/// million threads would fail half-way.
const THREADS_MAX: usize = 4096;

/// The option `--threads`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Threads {
    /// Threads to use [default: one for every CPU this process may use]
    #[arg(long, value_name = "N", value_parser = count)]
    threads: Option<NonZero<usize>>,
}

impl Threads {
    /// What was requested.
    #[cfg(feature = "sql")]
    pub(crate) fn given(self) -> Option<NonZero<usize>> {
        self.threads
    }

    /// What was requested, or as many as the machine runs at once.
    pub(crate) fn chosen(self) -> NonZero<usize> {
        let available = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        self.threads.unwrap_or_else(available)
    }
}

fn count(text: &str) -> Result<NonZero<usize>, String> {
    let number = text.parse::<usize>().ok().and_then(NonZero::new);
    number
        .filter(|number| number.get() <= THREADS_MAX)
        .ok_or_else(|| format!("give a number from 1 to {THREADS_MAX}"))
}
