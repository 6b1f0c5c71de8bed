//! Joins over Arrow record batches: Arrow in, Arrow out.
//!
//! ```text
//! HashJoin ──build()──► BuildSide ──push batch…──► finish ──► JoinTable   (immutable, shared)
//!                                                                │ one Prober a thread
//! probe batches ──► Prober::probe ──► next_output … ──► end ──► FinalPhase (unmatched build rows)
//! ```
//!
//! Keys go into a table of cache lines ([`workahead_walks::bucket`]); the payload stays in Arrow
//! arrays and is gathered by row for the matches. All ten join [types](JoinType), keys of any
//! number of columns and of any type that Arrow's row format supports, and a residual
//! [filter](Filter).
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
//! let mut final_phase = prober.end()?.expect("a left join outputs rows without a match");
//! let joined = prober.next_output()?.unwrap();
//! assert_eq!((joined.num_rows(), joined.num_columns()), (2, 3));
//! let unmatched = final_phase.next_output()?.unwrap();
//! assert_eq!((unmatched.num_rows(), unmatched.column(1).null_count()), (1, 1), "order 1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod batch;
mod bloom_filter;
mod build_side;
mod builder;
mod caches;
mod chunks;
mod coalescer;
mod context;
mod decision;
mod decoded_bytes;
mod display;
mod distinct;
mod duplicates;
mod error;
mod filter;
mod final_phase;
mod gather;
mod hash_table;
mod in_memory_build_side;
mod join;
mod join_type;
mod keys;
mod lookup;
mod match_bitmap;
mod match_generation;
mod memory;
mod memory_estimate;
mod memory_size;
mod metrics;
mod output_columns;
mod output_size;
mod outputs;
mod plan;
mod prober;
mod row_bytes;
mod side;
mod spec;
mod spill;
mod stop;
mod table;
mod table_build;
mod table_layout;
mod table_payload;
mod unmatched_build_scan;
mod workers;

pub use batch::limited_batch_rows;
pub use build_side::BuildSide;
pub use caches::{Caches, CachesSource};
pub use decoded_bytes::decoded_pieces;
pub use error::JoinError;
pub use filter::{Filter, ResidualPredicate};
pub use final_phase::{FinalPhase, Progress};
pub use join::HashJoin;
pub use join_type::{JoinType, NullEquality, UnknownJoinType};
pub use memory::{MemoryError, MemoryPool, Pool, Reservation};
pub use memory_estimate::sliced_bytes;
pub use memory_size::{UnknownSize, memory_bytes};
pub use metrics::{ProbeMetrics, TouchedLines};
pub use outputs::Outputs;
pub use plan::{BuildStatistics, Plan};
pub use prober::Prober;
pub use row_bytes::{fixed_bytes, run_bytes};
pub use side::Side;
pub use spec::JoinSpec;
pub use spill::{SpillDirectory, SpillError, SpillMetrics};
pub use stop::StopCheck;
pub use table::JoinTable;
pub use table_layout::{LayoutChoice, TableLayout, UnknownTableLayout};
/// A page pool for [`HashJoin::with_page_pool`].
pub use workahead_machine::pages::Pool as PagePool;
pub use workers::{Worker, run};

#[cfg(test)]
mod tests;

/// Compiles and runs the example of the page on joins.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/joins.md")]
struct Page;
