//! Workloads: data, made the same on every machine from a seed, and the work of clients on it.
//!
//! Deliberately absent: no server is known here, only sessions.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod client;
mod cycle;
pub mod dbmbench;
mod error;
pub mod keys;
pub mod loops;
pub mod order_entry;
pub mod random;
pub mod row_groups;
pub mod session;
pub mod sql_file;
pub mod sysbench;
pub mod tpch;

pub use error::WorkloadError;
