//! An engine under the scheduler that the study names: `scheduler` as an axis.
//!
//! ```text
//!   cell ─┬─ scheduler = default ─► counted ──┐
//!         ├─ scheduler = itas ────► attached ─┤
//!         ├─ scheduler = scx_… ───► started ──┴─► the engine's run ─► its sample, and the shares
//!         └─ anything else ──────► passed to the engine
//! ```
//!
//! # Settings
//! | key | values |
//! |---|---|
//! | `scheduler` | `default`, the kernel's own; `itas`; or a program of the scx project with its options, `scx_cosmos --mm-affinity`. Attached before each run and gone after it |
//! | `scheduler.NAME` | what `workahead scheduler run` takes: `bonus`, `limit`, `key`, `roles`, … |
//!
//! A scheduler has the whole machine, clients and all other processes too. Without kernel support
//! or the program its cells are left out by name, and `default` counts nothing. Counting checks
//! every CPU at each switch: `scheduler.survey = 0` counts less under `itas`.

#[cfg(feature = "scheduler")]
mod kernel;
#[cfg(not(feature = "scheduler"))]
#[path = "scheduler/no_kernel.rs"]
mod kernel;
#[cfg(test)]
mod tests;

use workahead_machine::EvidenceTier;
use workahead_scheduler::{Roles, Settings, changed};
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineError, Need, Reason, Sample, Stop};

use crate::in_process::works_in_this_process;

const KEY: &str = "scheduler";

/// Prefix of the scheduler's settings.
const OF_THE_SCHEDULER: &str = "scheduler.";

/// An engine under a scheduler.
pub struct WithScheduler(pub Box<dyn Engine>);

/// The scheduler of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SchedulerChoice {
    which: Which,
    settings: Settings,
    roles: Option<Roles>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    /// The kernel's own, observed.
    Default,
    Itas,
    /// A program and its options, observed.
    External(Vec<String>),
}

/// Programs of the scx project.
const EXTERNAL: &str = "scx_";

/// A study may be a stranger's: it names no file, neither to be run nor to be written to.
fn is_harmless(words: &[String]) -> bool {
    let has_only = |word: &str, more: &str| {
        word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c))
    };
    let is_option = |word: &String| word.strip_prefix("--").is_some_and(|name| has_only(name, "-"));
    words.split_first().is_some_and(|(program, options)| {
        has_only(program, "_")
            && options.iter().all(|word| is_option(word) || word.parse::<f64>().is_ok())
    })
}

/// The scheduler of a cell, and the rest of the cell for the engine.
fn read(cell: &Cell) -> Result<(Option<SchedulerChoice>, Cell), EngineError> {
    let which = match cell.text(KEY) {
        Some("default") => Which::Default,
        Some("itas") => Which::Itas,
        Some(words) if words.starts_with(EXTERNAL) => {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            if !is_harmless(&words) {
                let says = "in a study a scheduler has the name of a program in PATH, and options \
                            that are `--words` and numbers";
                return Err(EngineError::setting(KEY, says));
            }
            Which::External(words)
        }
        _ => return Ok((None, cell.clone())),
    };
    let mut rest = cell.clone();
    rest.settings.retain(|key, _| key != KEY && !key.starts_with(OF_THE_SCHEDULER));
    let named = |(key, value): (&String, &_)| {
        Some(format!("{}={value}", key.strip_prefix(OF_THE_SCHEDULER)?))
    };
    let words: Vec<String> = cell.settings.iter().filter_map(named).collect();
    let counting = Settings { survey: true, ..Settings::default() };
    let (settings, roles) = changed(counting, words.iter().map(String::as_str))
        .map_err(|error| EngineError::setting(KEY, error))?;
    Ok((Some(SchedulerChoice { which, settings, roles }), rest))
}

impl Engine for WithScheduler {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> String {
        self.0.version()
    }

    fn tier(&self) -> Option<(EvidenceTier, String)> {
        self.0.tier()
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (choice, rest) = read(cell)?;
        let mut need = self.0.check(&rest)?;
        if let Some(choice) = choice {
            let why = match &choice.which {
                Which::External(_) if works_in_this_process(self.name()) => {
                    Some("a run of this engine is confined and starts no other scheduler".into())
                }
                which => kernel::lacks(which),
            };
            need.impossible = need.impossible.or(why.map(Reason::from));
        }
        Ok(need)
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        self.0.prepare(&read(cell)?.1, stop)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let (choice, rest) = read(cell)?;
        let Some(choice) = choice else { return self.0.run(&rest, stop) };
        let over = kernel::begin(&choice, stop)?;
        let mut sample = self.0.run(&rest, stop)?;
        sample.measures.extend(over.end()?);
        Ok(sample)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.0.finish()
    }
}
