//! The number of threads of a command.

use std::num::NonZero;

/// More than any machine has logical CPUs: a larger number is a typing error.
const THREADS_MAX: usize = 4096;

/// The option `--threads`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Threads {
    /// Threads to use [default: one for every CPU this process may use]
    #[arg(long, value_name = "N", value_parser = parse)]
    threads: Option<NonZero<usize>>,
}

impl Threads {
    /// The option, or the number of available CPUs.
    pub(crate) fn count(self) -> NonZero<usize> {
        let available = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        self.threads.unwrap_or_else(available)
    }
}

fn parse(text: &str) -> Result<NonZero<usize>, String> {
    let number = text.parse::<usize>().ok().and_then(NonZero::new);
    number
        .filter(|number| number.get() <= THREADS_MAX)
        .ok_or_else(|| format!("give a number from 1 to {THREADS_MAX}"))
}
