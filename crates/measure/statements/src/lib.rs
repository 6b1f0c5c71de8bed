//! Texts of SQL, looked through before anything is done with them.
//!
//! ```text
//! text of a query    ─► query::check      only reads, of built-in functions?  ─► written anew
//! parsed expression  ─► shape::too_much   too deep, or with a query in it?
//! ```
//!
//! Both visit every node of the parser's trees, which is a quarter of a million lines to the
//! compiler: a crate of its own is compiled once, and without optimisation.

#![forbid(unsafe_code)]

pub mod query;
pub mod shape;
