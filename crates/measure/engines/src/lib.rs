//! What a study runs on: the engines behind the one trait of `workahead-study`.
//!
//! - `native`: the seeds' operators, run in this process under every technique.
//! - `modelled`: the same operators and whole workloads on a modelled machine.
//! - `sysbench`: its memory program, run in this process.
//! - `postgres`, `mariadb`: private servers and their clients, over `server`, the process.
//! - `duckdb`, `datafusion`: databases in this process; the second with the feature `sql`.
//! - `attach`: a server that already runs, by its URL.
//! - `scheduled`: any of those on this machine, their runs scheduled by whom the study names.
//! - `door`: how a database is entered, whatever it is.
//! - `inside`: one cell of those in this process, run by a process of its own and nothing else.
//! - `fill`, `load`: a workload's tables, and many of its clients at once.

#![forbid(unsafe_code)]

pub mod address;
pub mod attach;
mod below;
mod blame;
#[cfg(feature = "sql")]
pub mod datafusion;
pub mod door;
pub mod duckdb;
pub mod fill;
mod given;
pub mod inside;
pub mod load;
pub mod mariadb;
pub mod modelled;
pub mod native;
pub mod postgres;
mod scheduled;
pub mod served;
pub mod server;
mod stream;
pub mod sysbench;
mod watcher;

use attach::{Access, Target};
use workahead_study::engine::{Engine, EngineError};

/// Names of the engines of this build.
pub const NAMES: &[&str] = &["native", "sysbench", "postgres", "mariadb", "duckdb", "datafusion"];

#[cfg(not(feature = "sql"))]
const WITHOUT_SQL: &str = "this workahead was built without DataFusion: build one with it by \
    cargo build --release --package workahead-cli --features sql";

/// The engine of a name on a server that already runs.
///
/// # Errors
/// When it is another product, nobody answers there, or its user is not let in.
pub fn attached(name: &str, to: Target, access: Access) -> Result<Box<dyn Engine>, EngineError> {
    let served = served::Served::attached(to, access)?;
    match served.name() {
        product if product == name => Ok(Box::new(served)),
        product => Err(EngineError::Failed(format!(
            "the study is for `{name}`, and the URL leads to `{product}`: change one of them"
        ))),
    }
}

/// Opens an engine by the name that studies use.
///
/// # Errors
/// When this build has no engine of that name.
pub fn open(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    let engine: Box<dyn Engine> = match name {
        // Its scheduler is a model's.
        "modelled" => return Ok(Box::new(modelled::Modelled::default())),
        "native" => Box::new(native::Native::new()),
        "sysbench" => Box::new(sysbench::Sysbench::default()),
        "postgres" => Box::new(served::Served::postgres()),
        "mariadb" => Box::new(served::Served::mariadb()),
        "duckdb" => Box::new(served::Served::duckdb()),
        #[cfg(feature = "sql")]
        "datafusion" => Box::new(served::Served::datafusion()),
        #[cfg(not(feature = "sql"))]
        "datafusion" => return Err(EngineError::Failed(WITHOUT_SQL.to_owned())),
        _ => return Err(EngineError::unknown("engine", name, NAMES.iter().copied())),
    };
    Ok(Box::new(scheduled::Scheduled(engine)))
}
