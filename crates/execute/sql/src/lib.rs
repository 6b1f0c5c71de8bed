//! Workahead's hash join inside DataFusion: one call installs it, plans keep their shape.
//!
//! ```text
//! SessionStateBuilder ──install──► … ProjectionPushdown · WorkaheadJoins · FilterPushdown(Post) …
//!                                          HashJoinExec ──► WorkaheadJoinExec
//! left child ──► Build ──► JoinTable ──► bounds of the keys ──► dynamic filter ──► right child
//! right child ─► JoinStream: one output batch a poll ──► parent
//! ```
//!
//! After the last push-down, [`SidewaysFilters`] takes what a join knows of its keys below the
//! joins and aggregates of its probe side.
//!
//! The join itself is [`workahead_join`]; this crate is the translation. A planned
//! [`HashJoinExec`](datafusion::physical_plan::joins::HashJoinExec) stays inside our node as its
//! *description*: properties, statistics and push-down are DataFusion's own words about the same
//! join, so that they can't drift apart. What is ours is the execution, the metrics, and when the
//! dynamic filter is filled.
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//!
//! let builder = SessionStateBuilder::new().with_default_features();
//! let context = SessionContext::new_with_state(workahead_sql::install(builder).build());
//! # let _ = context;
//! ```

#![forbid(unsafe_code)]

mod announcement;
mod build;
mod codec;
mod error;
mod input;
mod keys;
mod measured;
mod memory;
mod metrics;
mod node;
mod options;
pub mod output;
mod passes;
mod residual;
mod rule;
pub mod session;
mod sideways;
mod sideways_filter;
mod sort_merge;
mod stream;
mod translation;

pub use codec::WorkaheadCodec;
pub use node::WorkaheadJoinExec;
pub use options::{BuildFrom, Choices, Settings, UnknownBuildSide, WorkaheadOptions};
pub use rule::{WorkaheadJoins, install, install_with};
pub use sideways::SidewaysFilters;
pub use sideways_filter::SidewaysFilterExec;
pub use sort_merge::HashInsteadOfSortMerge;

/// The page's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/how-to/datafusion.md")]
struct Page;
