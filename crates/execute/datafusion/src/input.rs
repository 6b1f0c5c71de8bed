//! One side's batches in the form that the join takes: the needed columns, and computed keys.
//!
//! ```text
//! child's batch   a  b  c  d          join on b = …, c + 1 = …; d is in the output
//! join's batch       b     d  c+1
//! ```
//!
//! Columns that are not read again take no memory of the build side.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::error::Result;
use datafusion_physical_plan::PhysicalExpr;
use datafusion_physical_plan::expressions::Column;

/// A side's columns.
#[derive(Debug)]
pub(crate) struct Input {
    /// Of the child, ascending.
    columns: Vec<usize>,
    /// Key expressions other than columns; they follow the columns.
    computed: Vec<Arc<dyn PhysicalExpr>>,
    /// The column of each key.
    pub(crate) keys: Vec<usize>,
    /// The schema of the join's batches.
    pub(crate) schema: SchemaRef,
}

impl Input {
    /// The columns in `needed`, and those that the keys need.
    pub(crate) fn new(
        child: &SchemaRef,
        keys: &[Arc<dyn PhysicalExpr>],
        mut needed: BTreeSet<usize>,
    ) -> Result<Self> {
        let plain = |key: &Arc<dyn PhysicalExpr>| key.downcast_ref::<Column>().map(Column::index);
        needed.extend(keys.iter().filter_map(plain));
        let columns: Vec<usize> = needed.into_iter().collect();
        let mut fields: Vec<_> =
            columns.iter().map(|at| Arc::clone(&child.fields()[*at])).collect();
        let (mut computed, mut positions) = (Vec::new(), Vec::new());
        for key in keys {
            if let Some(column) = plain(key) {
                positions.push(columns.partition_point(|at| *at < column));
                continue;
            }
            positions.push(fields.len());
            let (name, nullable) = (format!("key {}", computed.len()), key.nullable(child)?);
            fields.push(Arc::new(Field::new(name, key.data_type(child)?, nullable)));
            computed.push(Arc::clone(key));
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { columns, computed, keys: positions, schema })
    }

    /// The position of a column of the child, if it is needed.
    pub(crate) fn position(&self, column: usize) -> Option<usize> {
        self.columns.binary_search(&column).ok()
    }

    /// A batch of the child, for the join.
    pub(crate) fn read(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let kept = self.columns.iter().map(|at| Ok(Arc::clone(batch.column(*at))));
        let computed = self.computed.iter().map(|key| key.evaluate(batch)?.into_array(rows));
        let columns = kept.chain(computed).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, Int64Array};
    use arrow::datatypes::DataType;
    use datafusion_expr::Operator;
    use datafusion_physical_plan::expressions::{BinaryExpr, col, lit};

    use super::*;

    #[test]
    fn keys_are_found_and_unused_columns_are_left_out() {
        let names = ["a", "b", "c", "d"];
        let fields: Vec<_> = names.map(|n| Field::new(n, DataType::Int64, false)).into();
        let child = Arc::new(Schema::new(fields));
        let sum = BinaryExpr::new(col("c", &child).unwrap(), Operator::Plus, lit(1_i64));
        let keys = [col("b", &child).unwrap(), Arc::new(sum) as _];
        let input = Input::new(&child, &keys, BTreeSet::from([3])).unwrap();
        assert_eq!(input.keys, [0, 2]);
        assert_eq!((input.position(3), input.position(0)), (Some(1), None));

        let columns = (0..4).map(|c| Arc::new(Int64Array::from(vec![c, 10 + c])) as _).collect();
        let read = input.read(&RecordBatch::try_new(child, columns).unwrap()).unwrap();
        assert_eq!(read.num_columns(), 3);
        assert_eq!(read.column(2).as_ref(), &Int64Array::from(vec![3, 13]));
    }

    #[test]
    fn a_batch_may_have_rows_without_columns() {
        let child = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]));
        let input = Input::new(&child, &[], BTreeSet::new()).unwrap();
        let batch = RecordBatch::try_new(child, vec![Arc::new(Int32Array::from(vec![1, 2, 3]))]);
        assert_eq!(input.read(&batch.unwrap()).unwrap().num_rows(), 3);
    }
}
