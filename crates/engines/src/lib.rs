//! What a study runs on: the engines behind the one trait of `workahead-study`.
//!
//! - `native`: the seeds' operators, run in this process under every technique.
//! - `postgres`, `mariadb`: private servers and their clients, over `server`, the process.
//! - `attach`: a server that already runs, by its URL.
//! - `fill`, `load`: a workload's tables, and many of its clients at once.

#![forbid(unsafe_code)]

pub mod address;
pub mod attach;
mod blame;
pub mod fill;
mod given;
pub mod load;
pub mod mariadb;
pub mod native;
pub mod postgres;
pub mod served;
pub mod server;

use workahead_study::engine::{Engine, EngineError};

/// Names of the engines of this build.
pub const NAMES: &[&str] = &["native", "postgres", "mariadb"];

/// Opens an engine by the name that studies use.
///
/// # Errors
/// When this build has no engine of that name.
pub fn open(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    match name {
        "native" => Ok(Box::new(native::Native::new())),
        "postgres" => Ok(Box::new(served::Served::postgres())),
        "mariadb" => Ok(Box::new(served::Served::mariadb())),
        _ => Err(EngineError::unknown("engine", name, NAMES.iter().copied())),
    }
}
