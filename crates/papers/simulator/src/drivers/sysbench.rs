//! sysbench's two programs on modelled machines: what the threads of Yamada and Kusakabe (2010)
//! touch, for studies of who runs beside whom.
//!
//! ```text
//!   memory   pass ── line ── line ── … ── end of the block     one block for all, or one each
//!   OLTP     transaction ── statement ── root, inner page, leaf ── rows
//! ```
//!
//! Loops in the background touch a memory of their own, again and again (S3.26).
//!
//! Threads of a program share an address space (S3.23, S3.25). Accesses are by line: what meets the
//! same line again costs its micro-operations and no more.

mod background;
mod memory;
mod oltp;
#[cfg(test)]
mod tests;

pub use background::{Lines, background};
pub use memory::{Memory, Passes, Scope};
pub use oltp::{Oltp, Rows, Statements};
