//! Joins over Arrow record batches: Arrow in, Arrow out.
//!
//! ```text
//! HashJoin ──build()──► BuildSide ──push batch…──► finish ──► JoinTable   (immutable, shared)
//!                                                                │ one Prober a thread
//! probe batches ──► Prober::probe ──► next_output … ──► output batches
//! ```
//!
//! The keys go into a table of cache lines ([`workahead_operators::bucket`]); the payload stays in
//! Arrow arrays and is gathered by row for what matched. Inner joins on one integer key so far.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{Int32Array, Int64Array, RecordBatch};
//! use workahead_columns::{HashJoin, Side};
//!
//! let orders = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1, 2])) as _)])?;
//! let lines = RecordBatch::try_from_iter([
//!     ("order", Arc::new(Int32Array::from(vec![2, 2, 3])) as _),
//!     ("price", Arc::new(Int32Array::from(vec![10, 20, 30])) as _),
//! ])?;
//! let join = HashJoin::inner(orders.schema(), lines.schema(), "id", "order")?
//!     .with_build_side(Side::Left);
//! let mut build = join.build();
//! build.push(orders)?;
//! let table = build.finish()?;
//! let mut prober = table.prober();
//! prober.probe(lines)?;
//! assert!(prober.next_output()?.is_none(), "two rows are not worth a batch: more may follow");
//! prober.end()?;
//! let joined = prober.next_output()?.unwrap();
//! assert_eq!((joined.num_rows(), joined.num_columns()), (2, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod build;
mod chunks;
mod distinct;
mod error;
mod join;
mod keys;
mod layout;
mod lookup;
mod prober;
mod strategy;
mod workers;

pub use build::{BuildSide, JoinTable};
pub use error::JoinError;
pub use join::{HashJoin, Side};
pub use prober::{ProbeMetrics, Prober};
pub use strategy::{Caches, CachesSource, Choice, Strategy, UnknownStrategy};
pub use workers::{Worker, run};

#[cfg(test)]
mod tests;
