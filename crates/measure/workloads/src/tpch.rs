//! The eight tables of TPC-H at any scale, as Arrow batches and as Parquet files, and its queries.
//!
//! The rows are those of the benchmark's own `dbgen` (crate `tpchgen`), the types those of the
//! specification (TPC-H 3.0.1, clause 1.4): 64-bit keys, decimals of 15 digits with 2 after the
//! point, dates, strings.
//!
//! ```
//! use workahead_workloads::tpch::{Part, Table, Tpch};
//! let tpch = Tpch::new(0.01)?;
//! assert_eq!(tpch.rows(Table::Orders), 15_000);
//! let batches = || tpch.batches(Table::Orders, Part::WHOLE, 8192);
//! # let _ = batches; // The generator first makes 300 MB of text: not in every test run.
//! # Ok::<(), workahead_workloads::WorkloadError>(())
//! ```

mod answer;
mod columns;
mod correlation;
mod parquet;
mod queries;
mod schema;
mod tables;
mod workload;

use std::fmt;
use std::str::FromStr;

use crate::WorkloadError;
pub use answer::Answer;
pub use correlation::correlated_query;
pub use parquet::{Watch, WrittenFile, write_parquet};
pub use queries::{QUERIES, query};
pub use schema::Layout;
pub use tables::Part;
pub use workload::{Options, Queries, Texts};

/// A table of TPC-H.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// 5 regions.
    Region,
    /// 25 nations.
    Nation,
    /// 10,000 suppliers times the scale.
    Supplier,
    /// 150,000 customers times the scale.
    Customer,
    /// 200,000 parts times the scale.
    Part,
    /// Four suppliers a part.
    PartSupp,
    /// 1,500,000 orders times the scale.
    Orders,
    /// One to seven lines an order, four on average.
    LineItem,
}

impl Table {
    /// All tables, small ones first.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Customer,
        Self::Part,
        Self::PartSupp,
        Self::Orders,
        Self::LineItem,
    ];

    /// Its name in the specification, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Orders => "orders",
            Self::LineItem => "lineitem",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = WorkloadError;
    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        let found = Self::ALL.into_iter().find(|table| table.name() == name);
        found.ok_or_else(|| WorkloadError::UnknownTable {
            name: name.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// The data set at one scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tpch {
    scale: f64,
}

impl Tpch {
    /// Below this a table of the set would be empty.
    pub const SCALE_MIN: f64 = 0.001;
    /// Above this row counts leave the generator's 32 bits.
    pub const SCALE_MAX: f64 = 1000.0;

    /// The data set at a scale; 1 is about 1 GB of text.
    ///
    /// # Errors
    /// When the scale is outside `0.001..=1000`.
    pub fn new(scale: f64) -> Result<Self, WorkloadError> {
        if !(Self::SCALE_MIN..=Self::SCALE_MAX).contains(&scale) {
            return Err(WorkloadError::Scale(scale));
        }
        Ok(Self { scale })
    }

    /// The scale.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Rows of a table; for lineitem, whose lines are drawn with each order, four an order, which
    /// is right to about a thousandth.
    #[must_use]
    pub fn rows(&self, table: Table) -> u64 {
        let scaled = |base: f64| (base * self.scale) as u64;
        match table {
            Table::Region => 5,
            Table::Nation => 25,
            Table::Supplier => scaled(10_000.0),
            Table::Customer => scaled(150_000.0),
            Table::Part => scaled(200_000.0),
            Table::PartSupp => scaled(200_000.0) * 4,
            Table::Orders => scaled(1_500_000.0),
            Table::LineItem => scaled(1_500_000.0) * 4,
        }
    }
}

#[cfg(test)]
mod tests;
