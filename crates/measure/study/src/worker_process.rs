//! Worker processes: a process that runs one cell and ends, for tools that follow one process from
//! its first instruction to its last, and for engines that run several at once.
//!
//! ```text
//!   engine ── Request, JSON, standard input ──► COMMAND: prepare once, run n times
//!          ◄── Reply, a line of JSON, standard output ──┘
//! ```
//!
//! Runs with 0 and with n of them differ by n runs: start, data and end are in both.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use workahead_machine::limits::Limits;

use crate::cell::Cell;
use crate::engine::{Answer, Engine, EngineError};

/// An engine whose work is done in our own process.
///
/// Nothing is timed, collected or explained in a worker process: every instruction beside the work
/// would be counted with it.
pub trait Worker: Engine {
    /// Runs a prepared cell, and nothing else.
    ///
    /// # Errors
    /// When the cell can't be run.
    fn run_once(&mut self, cell: &Cell) -> Result<Answer, EngineError>;
}

/// The command that starts a worker process: engines do not know the program they are part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program: a path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// The task of a worker process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The engine's name.
    pub engine: String,
    /// The cell.
    pub cell: Cell,
    /// Where data is kept between runs; a worker process loads none.
    pub home: PathBuf,
    /// The machine's limits of the engine: sizes may be named after them.
    pub limits: Option<Limits>,
    /// The number of runs.
    pub runs: u64,
}

/// The result of a worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The number of runs.
    pub runs: u64,
    /// The answer of every run, the same each time; `None` without a run.
    pub answer: Option<Answer>,
}

impl Request {
    /// As a worker process reads it.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a request has only text keys")
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// If it is not a request, in a line.
    pub fn parse(json: &[u8]) -> Result<Request, String> {
        serde_json::from_slice(json).map_err(|error| format!("this is not a request: {error}"))
    }
}

impl Reply {
    /// As a worker process prints it, on a line.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a reply has only text keys")
    }

    /// Finds it in an output that may have other lines.
    #[must_use]
    pub fn find(output: &str) -> Option<Reply> {
        output.lines().find_map(|line| serde_json::from_str(line.trim()).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_plan::RunPlan;
    use crate::spec::Spec;

    #[test]
    fn both_ends_read_what_the_other_wrote() {
        let text = "title = \"t\"\nquestion = \"q\"\nengine = \"mock\"\n[axes]\nrows = [1]";
        let cell = RunPlan::new(&Spec::parse("demo", text).unwrap()).cells.remove(0);
        let home = PathBuf::from("/var/tmp/x");
        let request = Request { engine: "mock".to_owned(), cell, home, limits: None, runs: 3 };
        assert_eq!(Request::parse(&request.to_json()), Ok(request));
        let says = Request::parse(b"{\n}").unwrap_err();
        assert!(says.contains("not a request") && !says.contains('\n'), "{says}");
        let reply = Reply { runs: 3, answer: Some(Answer { rows: 1, checksum: u64::MAX }) };
        let output = format!("running 1 test\n{}\n", reply.line());
        assert_eq!(Reply::find(&output), Some(reply));
        assert_eq!(Reply::find("{}\n"), None);
    }
}
