//! A condition on rows with equal keys, beside the keys: the residual predicate.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use crate::{JoinError, Side};

/// Evaluates the residual predicate of a join on candidate matches.
pub trait ResidualPredicate: Send + Sync + Debug {
    /// Whether each candidate is a match; null counts as false. `rows` has the columns of
    /// [`Filter::columns`].
    ///
    /// # Errors
    /// If the predicate can't be evaluated.
    fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray, ArrowError>;
}

/// A [`ResidualPredicate`] and the columns it reads.
#[derive(Debug, Clone)]
pub struct Filter {
    /// The columns it reads, of both inputs.
    pub columns: Vec<(Side, usize)>,
    /// Their schema, as the predicate names them.
    pub schema: SchemaRef,
    /// The predicate.
    pub filter: Arc<dyn ResidualPredicate>,
}

impl Filter {
    /// Rejects a filter that doesn't fit the inputs.
    pub(crate) fn check(&self, left: &Schema, right: &Schema) -> Result<(), JoinError> {
        let fields = self.schema.fields();
        if fields.len() != self.columns.len() {
            let (fields, columns) = (fields.len(), self.columns.len());
            return Err(JoinError::FilterSchema { fields, columns });
        }
        for (&(side, column), field) in self.columns.iter().zip(fields) {
            let input = match side {
                Side::Left => left.fields(),
                Side::Right => right.fields(),
            };
            let Some(found) = input.get(column) else {
                let (side, columns) = (side.name(), input.len());
                return Err(JoinError::UnknownPosition { side, column, columns });
            };
            if found.data_type() != field.data_type() {
                return Err(JoinError::FilterColumn {
                    name: field.name().clone(),
                    declared: field.data_type().clone(),
                    found: found.data_type().clone(),
                });
            }
        }
        Ok(())
    }

    /// Whether it reads a column.
    pub(crate) fn reads(&self, side: Side, column: usize) -> bool {
        self.columns.contains(&(side, column))
    }
}
