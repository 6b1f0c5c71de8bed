//! sysbench's two programs on modelled machines: the accesses of the threads of Yamada and Kusakabe
//! (2010), for studies of co-scheduling.
//!
//! ```text
//!   memory   pass ── line ── line ── … ── end of the block     one block for all, or one each
//!   OLTP     transaction ── statement ── root, inner page, leaf ── rows
//! ```
//!
//! Background loops access memory of their own repeatedly (S3.26).
//!
//! Threads of a program share an address space (S3.23, S3.25). Accesses are by line: further
//! accesses to the same line cost only their micro-operations.

mod background;
mod memory;
mod oltp;
#[cfg(test)]
mod tests;

pub use background::{Lines, background};
pub use memory::{Memory, Passes, Scope};
pub use oltp::{Oltp, Rows, Statements};
