//! Operator and data of a cell.

use workahead_engines::configuration::CellConfiguration;
use workahead_study::engine::EngineError;
use workahead_study::instrument::CACHES;

use crate::execution::{Execution, References, Results};
use crate::operator::{Operator, Platform};
use crate::size::Footprint;
use crate::tree::Descent;
use crate::{bucket, columnar, hash_join, heterogeneous, join_index, tree};

/// Operators that run on any machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Chained hash join.
    HashJoin,
    /// Index join through a CSB+-tree.
    Tree,
    /// Join index.
    JoinIndex,
    /// Hash join over columns.
    Columnar,
    /// Bucket table of one cache line.
    Bucket,
    /// Hash join beside tree lookups.
    Heterogeneous,
}

/// Names in studies.
pub const OPERATORS: [(&str, Kind); 6] = [
    ("hash_join", Kind::HashJoin),
    ("csb_tree", Kind::Tree),
    ("join_index", Kind::JoinIndex),
    ("columnar", Kind::Columnar),
    ("bucket", Kind::Bucket),
    ("heterogeneous", Kind::Heterogeneous),
];

const RESULTS: [(&str, Results); 2] = [("batches", Results::Batches), ("whole", Results::Whole)];

const REFERENCES: [(&str, References); 2] =
    [("together", References::Together), ("apart", References::Split)];

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape(Data);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Data {
    HashJoin(hash_join::Shape),
    Tree(tree::Shape),
    JoinIndex(join_index::Shape),
    Columnar(columnar::Shape),
    Bucket(bucket::Shape),
    Heterogeneous(heterogeneous::Shape),
}

/// Rejects a cell without an operator.
///
/// # Errors
/// If `operator` is missing.
pub fn has_operator(config: &CellConfiguration<'_>) -> Result<(), EngineError> {
    match config.has("operator") {
        true => Ok(()),
        false => Err(EngineError::refused(
            "the setting `operator` is missing: add `operator = \"hash_join\"`",
        )),
    }
}

impl Shape {
    /// Reads the data and the execution of a cell; sizes by name refer to the caches of a
    /// footprint.
    ///
    /// # Errors
    /// If a value is unknown, out of bounds or missing.
    pub fn read(
        kind: Kind,
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<(Self, Execution), EngineError> {
        let data = match kind {
            Kind::HashJoin => Data::HashJoin(hash_join::Shape::read(config, footprint)?),
            Kind::Tree => Data::Tree(tree::Shape::read(config, footprint)?),
            Kind::JoinIndex => Data::JoinIndex(join_index::Shape::read(config, footprint)?),
            Kind::Columnar => Data::Columnar(columnar::Shape::read(config, footprint)?),
            Kind::Bucket => Data::Bucket(bucket::Shape::read(config, footprint)?),
            Kind::Heterogeneous => {
                Data::Heterogeneous(heterogeneous::Shape::read(config, footprint)?)
            }
        };
        let mut execution = Execution::read(config, footprint)?;
        match kind {
            Kind::HashJoin => {
                execution.results = config.choice("results", execution.results, &RESULTS)?;
            }
            Kind::Tree | Kind::Heterogeneous => {
                execution.descent = Descent::read(config, footprint)?;
            }
            Kind::JoinIndex => {
                let together = execution.references;
                execution.references = config.choice("references", together, &REFERENCES)?;
            }
            Kind::Columnar | Kind::Bucket => {}
        }
        // Read by the platform that has cache models.
        config.has(CACHES);
        Ok((Self(data), execution))
    }

    /// Peak memory.
    #[must_use]
    pub fn bytes(&self, execution: &Execution) -> u64 {
        let copies = execution.threads.copies();
        let results = match execution.results {
            Results::Batches => 0,
            Results::Whole => execution.threads.mains() + 1,
        };
        match &self.0 {
            Data::HashJoin(shape) => shape.bytes(copies, results),
            Data::Tree(shape) => shape.bytes(copies),
            Data::JoinIndex(shape) => shape.bytes(copies, execution.threads.mains()),
            Data::Columnar(shape) => shape.bytes(copies),
            Data::Bucket(shape) => shape.bytes(copies),
            Data::Heterogeneous(shape) => shape.bytes(),
        }
    }

    /// Builds the data.
    ///
    /// # Errors
    /// If memory is insufficient, or a table is impossible.
    pub fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        match &self.0 {
            Data::HashJoin(shape) => shape.make(),
            Data::Tree(shape) => shape.make(),
            Data::JoinIndex(shape) => shape.make(),
            Data::Columnar(shape) => shape.make(),
            Data::Bucket(shape) => shape.make(),
            Data::Heterogeneous(shape) => shape.make(),
        }
    }
}
