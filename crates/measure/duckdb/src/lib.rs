//! DuckDB over its C API, from a library that is loaded at run time.
//!
//! ```text
//! Library::find ─► Database::open ─► connect ─► prepare ─► execute(values) ─► chunks of cells
//!                                           └─► append(table) ─► rows
//! ```
//!
//! Nothing is linked: a build needs no DuckDB, and where it is missing one line says how
//! to install it. Only what a client of a database needs is here; every unsafe line is in
//! this crate, so that its users may forbid them.
//!
//! ```no_run
//! use workahead_duckdb::{Cell, Database, Library};
//! let library = Library::find(None)?;
//! let database = Database::open(library, "numbers.duckdb".as_ref(), &[])?;
//! let mut connection = database.connect()?;
//! let statement = connection.prepare_plain("select 6 * $1")?;
//! let mut answer = connection.execute(statement, &[Cell::Int(7)])?;
//! while let Some(chunk) = answer.next_chunk() {
//!     assert_eq!(chunk.cell(0, 0)?, Cell::Int(42));
//! }
//! # Ok::<(), workahead_duckdb::Error>(())
//! ```

mod answer;
mod appender;
mod cell;
mod database;
mod error;
mod ffi;
mod place;

#[cfg(test)]
mod tests;

pub use answer::{Answer, Chunk};
pub use appender::Appender;
pub use cell::Cell;
pub use database::{Connection, Database, Interrupter, StatementId};
pub use error::{Error, RefusalKind};
pub use ffi::Library;
pub use place::{ENVIRONMENT, VERSION, extension, library_directories, library_files};
