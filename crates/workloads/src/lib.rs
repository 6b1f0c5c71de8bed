//! What is run: data, made the same on every machine from a seed.

#![forbid(unsafe_code)]

pub mod draft;
mod error;
pub mod keys;
pub mod row_groups;
pub mod tpch;

pub use error::WorkloadError;
