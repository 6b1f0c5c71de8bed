//! A Ballista cluster whose executors join with Workahead.
//!
//! ```text
//! client ── logical plan ──► scheduler ── plans of stages ──► executors ──► files of shuffles
//!   Session, tables            plans, places tasks              Engine: HashJoinExec becomes ours
//!      ▲                                                        memory: limit / slots, then spills
//!      └───────────────── rows of the last stage ◄──────────────────┘
//! ```
//!
//! Ballista's adaptive planner replaces the rules of a session, so a rule that swaps joins never
//! runs there. It does not replace the execution engine: [`Engine`] puts our joins into every stage
//! that an executor receives.

#![forbid(unsafe_code)]

mod address;
mod client;
mod compact;
mod engine;
mod error;
mod executor;
mod executor_watch;
mod jobs;
mod push_semi_join;
mod readiness;
mod scheduler;
mod session;
mod slots;
mod task;

pub use address::Address;
pub use client::{Client, ClientOptions};
pub use engine::Engine;
pub use error::ClusterError;
pub use executor::{ExecutorOptions, executor};
pub use executor_watch::{ExecutorCount, ExecutorWatch};
pub use scheduler::{SchedulerOptions, scheduler};
pub use session::ClusterOptions;
