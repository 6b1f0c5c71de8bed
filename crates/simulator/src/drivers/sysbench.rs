//! sysbench's two programs on modelled machines: what the threads of Yamada and Kusakabe (2010)
//! touch, for studies of who runs beside whom.
//!
//! ```text
//!   memory   pass ── line ── line ── … ── end of the block     one block for all, or one each
//!   OLTP     transaction ── statement ── root, inner page, leaf ── rows
//! ```
//!
//! Threads of a program share an address space (S3.23, S3.25). Accesses are by line: what meets the
//! same line again costs its micro-operations and no more.

mod memory;
mod oltp;
#[cfg(test)]
mod tests;

pub use memory::{Memory, Scope};
pub use oltp::{Oltp, Rows, Statements};
