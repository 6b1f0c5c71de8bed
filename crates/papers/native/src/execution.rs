//! Technique, threads, and the distribution of rows to threads.

use std::fmt;
use std::str::FromStr;

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::control::placement::Placement;
use workahead_study::engine::EngineError;
use workahead_walks::place::LINE_BYTES;
use workahead_walks::technique::Technique;
use workahead_walks::threads::Split;
use workahead_walks::walk::Row;
use workahead_walks::work_ahead::ENTRIES_MAX;

use crate::size::Footprint;
use crate::tree::Descent;

/// Most threads of one cell.
const THREADS_MAX: usize = 1024;

/// Rows per morsel: long compared with draining the rows in flight at its end.
const MORSEL_ROWS: Row = 16 << 10;

/// Technique and threads of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// The technique.
    pub technique: Technique,
    /// Threads that share the work.
    pub threads: Threads,
    /// Descent of tree look-ups.
    pub(crate) descent: Descent,
    /// Destination of the result rows.
    pub results: Results,
    /// Distribution of a stage's references.
    pub references: References,
    /// The CPUs that threads are given, and in which order.
    pub placement: Placement,
}

/// Distribution of a stage's references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum References {
    /// All at once, as the paper does.
    #[default]
    Together,
    /// In stages of one reference each: the paper's counter-example (§4.1).
    Split,
}

/// Destination of the result rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Results {
    /// Written to a reused batch, as if the next operator had read it.
    #[default]
    Batches,
    /// Kept as a whole, then merged and ordered, which is timed separately.
    Whole,
}

/// Threads that share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One main thread.
    One,
    /// The same operator in each of n threads, over inputs and outputs of its own: n times the
    /// work (Zhou et al., §6.2, "Two Threads").
    Independent(usize),
    /// n threads over one input and one table, each with an output of its own (§3).
    Bi {
        /// Number of threads.
        threads: usize,
        /// Distribution of rows.
        split: Split,
    },
}

impl Threads {
    /// Number of main threads, without helpers.
    pub fn mains(self) -> usize {
        match self {
            Threads::One => 1,
            Threads::Independent(threads) | Threads::Bi { threads, .. } => threads,
        }
    }

    /// Copies of the data.
    pub fn copies(self) -> usize {
        match self {
            Threads::Independent(threads) => threads,
            Threads::One | Threads::Bi { .. } => 1,
        }
    }
}

impl Default for Execution {
    /// Sequential, on one thread.
    fn default() -> Self {
        Self {
            technique: Technique::Sequential,
            threads: Threads::One,
            descent: Descent::default(),
            results: Results::default(),
            references: References::default(),
            placement: Placement::CoresFirst,
        }
    }
}

impl Execution {
    /// Reads `technique`, `threads`, and `set_size` or `l2_share`.
    ///
    /// # Errors
    /// When a value is unknown, or two contradict each other.
    pub fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let mut technique = config.text("technique", Technique::Sequential)?;
        let threads = config.text("threads", Threads::One)?;
        if technique.has_helper() && matches!(threads, Threads::Bi { .. }) {
            return Err(EngineError::setting(
                "threads",
                format!(
                    "`{threads}` does not go with `{technique}`, whose main thread \
                 has a helper: write `threads = 1`"
                ),
            ));
        }
        let size = config.number("set_size", 0, 1..=ENTRIES_MAX)?;
        let share = config.real("l2_share", 0.0, 0.001..=1.0)?;
        if size > 0 && share > 0.0 {
            return Err(EngineError::refused(
                "settings `set_size` and `l2_share` say the same: leave one out",
            ));
        }
        match &mut technique {
            Technique::WorkAhead(options) if size > 0 => options.size = size,
            Technique::WorkAhead(options) if share > 0.0 => {
                options.size = set_size(footprint.l2_bytes, share, threads.mains());
            }
            // A baseline in the same sweep has no set to be sized.
            _ => {}
        }
        Ok(Self { technique, threads, ..Self::default() })
    }

    /// A copy with other threads.
    #[must_use]
    pub fn with_threads(&self, threads: Threads) -> Self {
        Self { threads, ..*self }
    }

    /// A copy with one main thread.
    #[must_use]
    pub fn alone(&self) -> Self {
        self.with_threads(Threads::One)
    }

    /// Number of threads, including helpers.
    pub fn threads(&self) -> usize {
        self.threads.mains() * if self.technique.has_helper() { 2 } else { 1 }
    }
}

/// References per set so that `sets` sets together preload a share of the second-level cache (Zhou
/// et al., §4.2: a quarter for one operator; several share it).
fn set_size(l2_bytes: usize, share: f64, sets: usize) -> usize {
    let lines = l2_bytes as f64 * share / LINE_BYTES as f64;
    ((lines / sets as f64) as usize).clamp(1, ENTRIES_MAX)
}

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, split) = match text.split_once(',') {
            Some((name, split)) => (name.trim(), Some(split.trim())),
            None => (text.trim(), None),
        };
        let split_of = |split: Option<&str>| match split {
            // The paper's even and odd tuples (§3).
            None | Some("split=strided") => Ok(Split::Strided),
            Some("split=morsels") => Ok(Split::Morsels { rows: MORSEL_ROWS }),
            Some(other) => Err(format!("`{other}` is none of split=morsels, split=strided")),
        };
        let threads = |count: &str| match count.parse() {
            Ok(threads) if (1..=THREADS_MAX).contains(&threads) => Ok(threads),
            _ => Err(format!("`{count}` is not a number of threads from 1 to {THREADS_MAX}")),
        };
        match (name.split_once(':'), split) {
            (None, None) if name == "1" => Ok(Threads::One),
            (Some(("independent", count)), None) => Ok(Threads::Independent(threads(count)?)),
            (Some(("bi", count)), split) => {
                Ok(Threads::Bi { threads: threads(count)?, split: split_of(split)? })
            }
            _ => Err(format!(
                "`{text}` is none of 1, independent:N (a copy of the work for each), bi:N (one \
                 input between N threads, row by row; bi:N,split=morsels deals out runs of rows)"
            )),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threads::One => f.write_str("1"),
            Threads::Independent(threads) => write!(f, "independent:{threads}"),
            Threads::Bi { threads, split: Split::Strided } => write!(f, "bi:{threads}"),
            Threads::Bi { threads, split: Split::Morsels { .. } } => {
                write!(f, "bi:{threads},split=morsels")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_read_as_they_are_written() {
        for text in ["1", "independent:2", "bi:4", "bi:2,split=morsels"] {
            assert_eq!(text.parse::<Threads>().unwrap().to_string(), text);
        }
        assert_eq!("bi:2,split=strided".parse::<Threads>(), "bi:2".parse());
    }

    #[test]
    fn sets_share_their_part_of_the_cache() {
        // By hand: a quarter of 512 KiB is 2048 lines of 64 bytes.
        assert_eq!(set_size(512 << 10, 0.25, 1), 2048);
        assert_eq!(set_size(512 << 10, 0.25, 2), 1024);
        assert_eq!(set_size(512, 0.001, 2), 1, "a set has an entry at least");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for text in ["2", "bi", "bi:0", "bi:x", "bi:2,split=even", "independent:2,split=strided"] {
            let message = text.parse::<Threads>().unwrap_err();
            assert!(message.contains('`'), "{message}");
        }
    }
}
