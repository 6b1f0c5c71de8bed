//! The residual predicate: the part of a join's condition that is not an equality.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::error::ArrowError;
use datafusion_common::cast::as_boolean_array;
use datafusion_physical_plan::PhysicalExpr;
use workahead_join::ResidualPredicate;

use crate::error::into_arrow;

/// An expression over the columns of a pair of rows.
#[derive(Debug)]
pub(crate) struct Residual(pub(crate) Arc<dyn PhysicalExpr>);

impl ResidualPredicate for Residual {
    fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let value = self.0.evaluate(rows).map_err(into_arrow)?;
        let array = value.into_array(rows.num_rows()).map_err(into_arrow)?;
        as_boolean_array(&array).cloned().map_err(into_arrow)
    }
}
