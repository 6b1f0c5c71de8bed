//! Joins over Arrow record batches: Arrow in, Arrow out.
//!
//! ```text
//! HashJoin ──build()──► BuildSide ──push batch…──► finish ──► JoinTable   (immutable, shared)
//!                                                                │ one Prober a thread
//! probe batches ──► Prober::probe ──► next_output … ──► end ──► Remaining (build rows alone)
//! ```
//!
//! The keys go into a table of cache lines ([`workahead_walks::bucket`]); the payload stays in
//! Arrow arrays and is gathered by row for what matched. All ten [types](JoinType) of join, keys of
//! any number of columns and of any type that Arrow's row format takes, a residual
//! [filter](Filter) on pairs.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{Int32Array, Int64Array, RecordBatch};
//! use workahead_join::{HashJoin, JoinType, Prober, Side};
//!
//! let orders = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1, 2])) as _)])?;
//! let lines = RecordBatch::try_from_iter([
//!     ("order", Arc::new(Int32Array::from(vec![2, 2, 3])) as _),
//!     ("price", Arc::new(Int32Array::from(vec![10, 20, 30])) as _),
//! ])?;
//! let (left, right) = (orders.schema(), lines.schema());
//! let join = HashJoin::by_names(left, right, &[("id", "order")], JoinType::Left)?
//!     .with_build_side(Side::Left);
//! let mut build = join.build();
//! build.push(orders)?;
//! let mut prober = Prober::new(Arc::new(build.finish()?));
//! prober.probe(lines)?;
//! assert!(prober.next_output()?.is_none(), "two rows are not worth a batch: more may follow");
//! let mut remaining = prober.end()?.expect("a left join shows rows without a match");
//! let joined = prober.next_output()?.unwrap();
//! assert_eq!((joined.num_rows(), joined.num_columns()), (2, 3));
//! let alone = remaining.next_output()?.unwrap();
//! assert_eq!((alone.num_rows(), alone.column(1).null_count()), (1, 1), "nobody ordered 1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod batch;
mod build;
mod build_side;
mod caches;
mod chunks;
mod context;
mod decision;
mod design;
mod distinct;
mod entries;
mod error;
mod fill;
mod filter;
mod filtering;
mod flags;
mod gather;
mod groups;
mod inline;
mod join;
mod join_type;
mod keys;
mod layout;
mod leftover;
mod lookup;
mod memory;
mod memory_size;
mod metrics;
mod needs;
mod outputs;
mod pairing;
mod plan;
mod prober;
mod remaining;
mod resident;
mod shown;
mod side;
mod spec;
mod spill;
mod table;
mod workers;

pub use batch::limited_batch_rows;
pub use build_side::BuildSide;
pub use caches::{Caches, CachesSource};
pub use design::{Choice, Design, UnknownDesign};
pub use error::JoinError;
pub use filter::{Filter, PairFilter};
pub use join::HashJoin;
pub use join_type::{JoinType, NullEquality, UnknownJoinType};
pub use memory::{MemoryError, MemoryPool, Pool, Reservation};
pub use memory_size::{UnknownSize, memory_bytes};
pub use metrics::{ProbeMetrics, TouchedLines};
pub use needs::sliced_bytes;
pub use outputs::Outputs;
pub use plan::{Foreseen, Plan};
pub use prober::Prober;
pub use remaining::{Progress, Remaining};
pub use side::Side;
pub use spec::JoinSpec;
pub use spill::{SpillDirectory, SpillError, SpillMetrics};
pub use table::JoinTable;
/// Touched memory for [`HashJoin::with_page_pool`].
pub use workahead_machine::pages::Pool as PagePool;
pub use workers::{Worker, run};

#[cfg(test)]
mod tests;

/// The page's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/joins.md")]
struct Page;
