//! Why a study could not be read, run or loaded; each error names its remedy.

use std::path::PathBuf;

use crate::engine::EngineError;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The TOML is not a study.
    #[error("study `{id}`: {message}")]
    Spec {
        /// The study's id.
        id: String,
        /// The place and the cause, with the remedy.
        message: String,
    },
    /// The study has no such scale.
    #[error("study `{id}` has no scale `{given}`: {remedy}")]
    UnknownScale {
        /// The study's id.
        id: String,
        /// The given name.
        given: String,
        /// The remedy.
        remedy: String,
    },
    /// No study of this name is embedded.
    #[error("unknown study `{given}`: {remedy}")]
    UnknownStudy {
        /// The given name.
        given: String,
        /// The remedy.
        remedy: String,
    },
    /// A cell was refused before anything was run.
    #[error("study `{id}`, cell {label}: {source}")]
    Cell {
        /// The study's id.
        id: String,
        /// The cell in words.
        label: String,
        /// The engine's reason.
        source: EngineError,
    },
    /// The user stopped it before it began.
    #[error("interrupted")]
    Interrupted,
    /// A result's directory has more in it.
    #[error(
        "{} has other files, as `{name}`, which a statement on this database could change: give \
         --out a directory of its own",
        path.display()
    )]
    NotOwn {
        /// The directory.
        path: PathBuf,
        /// One of them.
        name: String,
    },
    /// The cells need more memory than there is.
    #[error(
        "study `{id}` needs {needed_mib} MiB of memory and {available_mib} MiB may be used: {remedy}"
    )]
    Memory {
        /// The study's id.
        id: String,
        /// MiB of the largest cell.
        needed_mib: u64,
        /// MiB available.
        available_mib: u64,
        /// The remedy.
        remedy: String,
    },
    /// The study would take longer than was allowed.
    #[error(
        "study `{id}` takes about {time_s:.0} s and --max-duration allows {duration_s_max:.0} s: \
         {remedy}, or allow more"
    )]
    TooLong {
        /// The study's id.
        id: String,
        /// The study's estimate.
        time_s: f64,
        /// The limit.
        duration_s_max: f64,
        /// The remedy.
        remedy: String,
    },
    /// The directory already holds a result.
    #[error("{path} already holds a result: choose another --out, or --force to replace it")]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// Another process writes there.
    #[error("{path} is being written by another run: wait for it, or choose another --out")]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The directory does not hold a result.
    #[error("{path} does not hold a result (no run.json): name a directory that `study run` wrote")]
    NotAResult {
        /// The directory.
        path: PathBuf,
    },
    /// The directory's result is of another run plan.
    #[error(
        "{path} was run from another run plan ({found}, this one is {expected}): run the study anew \
         with --out and another directory"
    )]
    OtherRunPlan {
        /// The directory.
        path: PathBuf,
        /// Its fingerprint.
        found: String,
        /// Ours.
        expected: String,
    },
    /// The run was begun on another engine, or another version of it.
    #[error(
        "{path} was begun on {begun}, and this is {found}: results of both are not mixed, run the \
         study anew with --out"
    )]
    OtherEngine {
        /// The directory.
        path: PathBuf,
        /// The engine that began it.
        begun: String,
        /// This one.
        found: String,
    },
    /// The run was begun on another machine.
    #[error(
        "{path} was begun on another machine or other settings ({host}): run the study anew with \
         --out"
    )]
    OtherMachine {
        /// The directory.
        path: PathBuf,
        /// The machine that began it.
        host: String,
    },
    /// The caches of a model are unknown.
    #[error(transparent)]
    Model(#[from] workahead_counters::instrumented::Error),
    /// A file of a result cannot be understood.
    #[error("{path}, line {line}: {message}; run the study anew with --force")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// The fault.
        message: String,
    },
    /// A capture has what no comparison would believe.
    #[error("the capture is not kept: {0}: the server, or what lies before it, counts wrongly")]
    UselessCapture(String),
    /// A file of a capture cannot be understood.
    #[error("{path}, line {line}: {message}: it is damaged, capture it anew")]
    DamagedCapture {
        /// The file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// The fault.
        message: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path} (choose another directory with --out): {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The engine failed outside a sample.
    #[error("engine: {0}")]
    Engine(#[from] EngineError),
    /// The observations can't be written as Parquet.
    #[error("cannot write {path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
    },
}
