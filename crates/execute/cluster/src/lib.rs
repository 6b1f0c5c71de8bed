//! Workers that answer SQL together and do their joins with Workahead, by `datafusion-distributed`.
//!
//! ```text
//! client: plans ─┬─ here, if that is as fast
//!                └─ stages ──► worker ◄── Arrow ──► worker ──► rows ──► client
//!                              guard: files below its roots, known operators
//!                              joins: ours, in the worker's pool, spilling
//! ```
//!
//! Every message carries the cluster's [`Token`]; a worker without it in a request does nothing.
//! The rule that swaps joins runs after the stages are cut, by a planner that knows DataFusion's
//! joins only.

#![forbid(unsafe_code)]

mod broadcasts;
mod channels;
mod client;
mod error;
mod filters;
mod guard;
mod install;
mod keys;
mod node;
mod planner;
mod service;
mod settings;
mod sorts;
mod tasks;
mod token;
mod url;
mod worker;
mod workers;

pub use client::{Client, ClientOptions, Watch, WorkerStatus};
pub use error::ClusterError;
pub use install::install_on_worker;
pub use service::WorkerState;
pub use settings::ClusterOptions;
pub use token::Token;
pub use url::ClusterUrl;
pub use worker::{WorkerOptions, worker};
