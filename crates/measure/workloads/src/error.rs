//! Faults of a workload.

use std::path::PathBuf;

/// A workload cannot be made. The text names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// More different keys than the key's width allows.
    #[error("{keys} different keys do not fit {bits}-bit keys: ask for at most {most}")]
    TooManyKeys {
        /// The requested keys.
        keys: u64,
        /// Width of a key.
        bits: u32,
        /// Most that fit: half of the width's values, the others are kept for misses.
        most: u64,
    },
    /// A share that is not one.
    #[error("the hit rate {0} is not a share: give a number from 0 to 1")]
    HitRate(f64),
    /// A Zipf distribution that does not exist.
    #[error("the Zipf exponent {0} is not possible: give a number from 0 (uniform) to 8")]
    ZipfExponent(f64),
    /// Something is to be drawn from nothing.
    #[error("nothing to pick from: ask for at least one {0}")]
    Nothing(&'static str),
    /// A share of a table's values that selects nothing or too much.
    #[error(
        "a selectivity of {0} is impossible with {1} values in {2} rows: give a share from one \
         value to all, and at least a row for each value"
    )]
    Selectivity(f64, u32, u32),
    /// Tables of order entry that can't be.
    #[error(
        "{warehouses} warehouses of {items} items and {customers} customers a district can't be \
         made: give 1 to 100000 warehouses, 100 to 100000 items, 20 to 3000 customers"
    )]
    Population {
        /// Warehouses.
        warehouses: u32,
        /// Items.
        items: u32,
        /// Customers of a district.
        customers: u32,
    },
    /// More or fewer tables than there can be.
    #[error("sysbench {flavour} has no {tables} tables: give 1 to {tables_max}")]
    Tables {
        /// The requested tables.
        tables: u32,
        /// Most that there can be.
        tables_max: u32,
        /// Of which sysbench.
        flavour: &'static str,
    },
    /// A table that would be empty, or whose ids would not fit.
    #[error("a table of {0} rows can't be made: ask for 1 to 2147483647")]
    Rows(u32),
    /// The memory program can't run like that.
    #[error("the memory program can't run: {0}")]
    Memory(String),
    /// A loop in the background could not run.
    #[error("a loop in the background can't run: {0}")]
    Loop(String),
    /// A file of SQL that can't be run.
    #[error("{}: {says}", path.display())]
    SqlFile {
        /// The file.
        path: PathBuf,
        /// Its fault.
        says: String,
    },
    /// A file could not be made or finished.
    #[error("can't write {}", path.display())]
    Write {
        /// The file, under its final name.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A table TPC-H does not have.
    #[error("there is no table {name:?}: choose from {known}")]
    UnknownTable {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A query TPC-H does not have.
    #[error("there is no query {number}: choose from 1 to {queries}")]
    UnknownQuery {
        /// The requested number.
        number: usize,
        /// How many there are.
        queries: usize,
    },
    /// A scale outside what can be made.
    #[error("the scale {0} can't be made: give a number from 0.001 to 1000")]
    Scale(f64),
    /// A stop was requested.
    #[error("stopped before the end: nothing was written")]
    Stopped,
}
