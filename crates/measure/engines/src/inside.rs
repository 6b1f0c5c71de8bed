//! The other side of [`study::inside`](workahead_study::inside): an engine that runs in our own
//! process prepares one cell, runs it so many times, and says what came out.
//!
//! Nothing is timed, watched or explained: every instruction beside the work would be counted with
//! it.

use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, Engine, EngineError, Stop};
use workahead_study::inside::{Reply, Request};

use crate::native::Native;
use crate::served::Served;

/// An engine whose work is done in our own process.
pub(crate) trait Inside: Engine {
    /// Runs a cell that is prepared, and nothing but it.
    fn once(&mut self, cell: &Cell) -> Result<Answer, EngineError>;
}

/// Names of the engines that can do it.
const NAMES: [&str; 3] = ["native", "duckdb", "datafusion"];

fn open(name: &str) -> Result<Box<dyn Inside>, EngineError> {
    match name {
        "native" => Ok(Box::new(Native::new())),
        "duckdb" => Ok(Box::new(Served::duckdb())),
        #[cfg(feature = "sql")]
        "datafusion" => Ok(Box::new(Served::datafusion())),
        _ => Err(EngineError::unknown("engine", name, NAMES)),
    }
}

/// Does what is asked.
///
/// # Errors
/// When the engine is another's, the cell can't be run, or two runs give different answers.
pub fn reply(request: &Request) -> Result<Reply, EngineError> {
    let mut engine = open(&request.engine)?;
    engine.keep_in(&request.home);
    if let Some(limits) = &request.limits {
        engine.learn(limits);
    }
    engine.prepare(&request.cell, &Stop::new())?;
    let mut answer = None;
    for _ in 0..request.runs {
        let got = engine.once(&request.cell)?;
        match answer.replace(got) {
            Some(expected) if expected != got => {
                return Err(EngineError::WrongAnswer { got, expected });
            }
            _ => {}
        }
    }
    Ok(Reply { runs: request.runs, answer })
}
