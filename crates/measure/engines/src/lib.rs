//! Engines of studies: databases, behind the trait `Engine` of `workahead-study`.
//!
//! - `sysbench`: its memory program, run in this process.
//! - `postgres`, `mariadb`: private servers and their clients, over `server`, the process.
//! - `duckdb`, `datafusion`: databases in this process; the second with the feature `sql`.
//! - `attach`: a server that already runs, by its URL.
//! - `observer`: what such a server does for others, window by window.
//! - `tls`: how its connections are encrypted.
//! - `connector`: connections to databases.
//! - `fill`, `load`: a workload's tables, and many of its clients at once.
//!
//! Public for engines of other crates:
//!
//! - `configuration`: reads the settings of a cell, and refuses those that are never read.
//! - `collector`: counters and function profiles of a sample.
//! - `valgrind`: cells counted by a model, evidence tier D.
//! - `scheduler`: an engine whose runs are scheduled as the study says.

#![forbid(unsafe_code)]

pub mod address;
pub mod attach;
mod bounded_texts;
mod cancellation;
pub mod collector;
pub mod configuration;
pub mod connector;
#[cfg(feature = "sql")]
pub mod datafusion;
mod der;
pub mod duckdb;
mod error_context;
pub mod fill;
mod in_process;
pub mod load;
pub mod mariadb;
pub mod observer;
pub mod postgres;
pub mod scheduler;
pub mod served;
pub mod server;
mod stream;
pub mod sysbench;
pub mod tls;
pub mod valgrind;

use std::path::{Path, PathBuf};

use attach::Target;
pub use in_process::works_in_this_process;
use scheduler::WithScheduler;
use served::DatabaseEngine;
pub use stream::wait_until;
use sysbench::Sysbench;
pub use workahead_duckdb::{library_directories, library_files};
use workahead_study::engine::{Engine, EngineContext, EngineEntry, EngineError, EngineRegistry};

/// Registers the engines.
pub fn register(registry: &mut EngineRegistry) {
    for entry in [
        EngineEntry {
            name: sysbench::NAME,
            description: "sysbench's memory program, in this process or several",
            open: |context| with_scheduler(Sysbench::open(context)?),
            open_worker: Some(|context| Ok(Box::new(Sysbench::open(context)?))),
        },
        EngineEntry {
            name: "postgres",
            description: "a private server of PostgreSQL and its clients",
            open: |context| with_scheduler(DatabaseEngine::postgres(context)?),
            open_worker: None,
        },
        EngineEntry {
            name: "mariadb",
            description: "a private server of MariaDB and its clients",
            open: |context| with_scheduler(DatabaseEngine::mariadb(context)?),
            open_worker: None,
        },
        EngineEntry {
            name: "duckdb",
            description: "DuckDB, in this process",
            open: |context| with_scheduler(DatabaseEngine::duckdb(context)?),
            open_worker: Some(|context| Ok(Box::new(DatabaseEngine::duckdb(context)?))),
        },
        DATAFUSION,
    ] {
        registry.register(entry);
    }
}

/// The directory of an engine's data, below that of all engines: this user's alone, made if it is
/// not there.
///
/// # Errors
/// When it can't be made, or others can write to it.
pub fn private_directory(engine: &str, data_dir: &Path) -> Result<PathBuf, EngineError> {
    let home = data_dir.join(engine);
    served::files::make_private(&home)?;
    Ok(home)
}

#[cfg(feature = "sql")]
const DATAFUSION: EngineEntry = EngineEntry {
    name: "datafusion",
    description: "DataFusion, in this process",
    open: |context| with_scheduler(DatabaseEngine::datafusion(context)?),
    open_worker: Some(|context| Ok(Box::new(DatabaseEngine::datafusion(context)?))),
};

#[cfg(not(feature = "sql"))]
const DATAFUSION: EngineEntry = EngineEntry {
    name: "datafusion",
    description: "DataFusion, in this process (not in this build)",
    open: |_| Err(EngineError::refused(WITHOUT_SQL)),
    open_worker: None,
};

#[cfg(not(feature = "sql"))]
const WITHOUT_SQL: &str = "this workahead was built without DataFusion: build one with it by \
    cargo build --release --package workahead-cli --features sql";

fn with_scheduler(engine: impl Engine + 'static) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(WithScheduler(Box::new(engine))))
}

/// An engine by name, on a server that already runs.
///
/// # Errors
/// When it is another product, nothing answers, or the server rejects the user.
pub fn attached(
    name: &str,
    target: Target,
    context: &EngineContext,
) -> Result<Box<dyn Engine>, EngineError> {
    let served = DatabaseEngine::attached(target, context)?;
    match served.name() {
        product if product == name => Ok(Box::new(served)),
        product => Err(EngineError::refused(format!(
            "the study is for `{name}`, and the URL leads to `{product}`: change one of them"
        ))),
    }
}
