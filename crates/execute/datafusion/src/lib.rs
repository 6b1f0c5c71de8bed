//! Workahead's hash join as a node and rules of DataFusion's physical plans.
//!
//! ```text
//! insert_rules ──► … ProjectionPushdown · WorkaheadJoins · FilterPushdown(Post) …
//!                                          HashJoinExec ──► WorkaheadJoinExec
//! left child ──► Build ──► JoinTable ──► bounds of the keys ──► dynamic filter ──► right child
//! right child ─► JoinStream: one output batch a poll ──► parent
//! ```
//!
//! After the last push-down, [`SidewaysFilters`] puts a join's dynamic filter below the joins and
//! aggregates of its probe side.
//!
//! The join itself is [`workahead_join`]; this crate is the translation. A planned
//! [`HashJoinExec`](datafusion_physical_plan::joins::HashJoinExec) stays inside our node as its
//! *description*: properties, statistics and push-down are computed by DataFusion's own code, so
//! that they can't drift apart. What is ours is the execution, the metrics, and when the
//! dynamic filter is filled.

#![forbid(unsafe_code)]

// Some of it is for plans of several processes, which are there with `proto` only.
#[cfg_attr(not(feature = "proto"), allow(dead_code, unreachable_pub))]
mod across_stages;
mod build;
#[cfg(feature = "proto")]
mod codec;
mod dynamic_filter;
mod error;
mod input;
mod key_bitmap;
mod key_filter;
mod key_publisher;
#[cfg_attr(not(feature = "proto"), allow(dead_code, unreachable_pub))]
mod key_set;
mod keys;
mod local_keys;
mod memory;
mod metrics;
mod node;
mod options;
mod patience;
mod plan;
mod pushdown_mapping;
mod residual;
mod rule;
mod runtime_build_side;
mod sideways;
mod sideways_filter;
mod sort_merge;
mod stream;
mod translation;

#[cfg(feature = "proto")]
pub use across_stages::{FiltersAcrossStages, StageRole};
#[cfg(feature = "proto")]
pub use codec::WorkaheadCodec;
#[cfg(feature = "proto")]
pub use key_set::{KeyExchange, KeyExchangeExtension, KeyScope, KeySet};
pub use node::WorkaheadJoinExec;
pub use options::WorkaheadOptions;
pub use plan::with_inputs;
pub use rule::{WorkaheadJoins, insert_rules};
pub use sideways::SidewaysFilters;
pub use sort_merge::HashInsteadOfSortMerge;
pub use workahead_join::Caches;
