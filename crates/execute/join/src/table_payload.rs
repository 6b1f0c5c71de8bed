//! Payload in the table: one narrow column of the build side is stored in the table's entries
//! instead of row numbers.
//!
//! ```text
//! entry   key │ value     instead of     entry   key │ row ─► column[row]
//! ```
//!
//! The line of a key then has everything that its lookup needs: joining a fact table with one
//! attribute of a dimension misses once a row, not twice. For inner joins in which no build key
//! repeats.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayDataBuilder;
use arrow_schema::{ArrowError, DataType};
use workahead_walks::bucket::partitions::PartitionedRows;
use workahead_walks::perfect_hash::shared::SharedTable;

use crate::JoinSpec;
use crate::hash_table::HashTable;
use crate::join_type::SideOutput;
use crate::output_columns::ColumnSource;

/// The values of a narrow column (see [`TablePayload::column`]) as arrays of bytes: the expression
/// is compiled for every width.
macro_rules! with_values {
    ($data:expr, $values:ident => $body:expr) => {{
        let data = $data;
        let width = data.data_type().primitive_width().expect("the column is narrow");
        let bytes = &data.buffers()[0][data.offset() * width..][..data.len() * width];
        macro_rules! of_width {
            ($width:literal) => {{
                let $values = bytes.as_chunks::<$width>().0;
                $body
            }};
        }
        match width {
            1 => of_width!(1),
            2 => of_width!(2),
            4 => of_width!(4),
            _ => of_width!(8),
        }
    }};
}

/// The column's type, to read it and to rebuild it.
#[derive(Debug)]
pub(crate) struct TablePayload {
    data_type: DataType,
    width: usize,
}

impl TablePayload {
    /// The build column that entries may hold: the only one gathered, if its values have at most
    /// eight bytes.
    pub(crate) fn column(spec: &JoinSpec) -> Option<usize> {
        let output_rules = spec.output_rules();
        let only_matches = output_rules.matches
            && (output_rules.probe, output_rules.build) == (SideOutput::Never, SideOutput::Never);
        if !only_matches || spec.filter.is_some() {
            return None;
        }
        let mut columns = spec.match_sources().into_iter().filter_map(|source| match source {
            ColumnSource::Column(side, column) if side == spec.build_side => Some(column),
            _ => None,
        });
        let column = columns.next()?;
        let data_type = spec.schema_of(spec.build_side).field(column).data_type();
        let narrow = matches!(data_type.primitive_width(), Some(1 | 2 | 4 | 8));
        (narrow && columns.all(|other| other == column)).then_some(column)
    }

    /// For a type that [`TablePayload::column`] found narrow.
    pub(crate) fn of(data_type: &DataType) -> Self {
        let width = data_type.primitive_width().expect("the column is narrow");
        Self { data_type: data_type.clone(), width }
    }

    /// Partitions rows with their values of a column.
    pub(crate) fn partition(column: &ArrayRef, keys: &[u64], to: &mut PartitionedRows) {
        with_values!(column.to_data(), values => {
            assert_eq!(values.len(), keys.len());
            to.add(keys, |at| zero_extended(&values[at]));
        });
    }

    /// Stores keys in a dense table with their values of a column. False if a key repeats.
    pub(crate) fn put_dense(column: &ArrayRef, keys: &[u64], to: SharedTable<'_>) -> bool {
        with_values!(column.to_data(), values => to.put(keys, values.iter().map(zero_extended)))
    }

    /// Replaces the table's row numbers by the column's values, unless some are null or the column
    /// has several chunks.
    pub(crate) fn put(table: &mut HashTable, column: Option<&ArrayRef>) -> Option<Self> {
        let column = column.filter(|column| column.null_count() == 0)?;
        with_values!(column.to_data(), values => {
            table.update_values(|row| zero_extended(&values[row as u32 as usize]));
        });
        Some(Self::of(column.data_type()))
    }

    /// Rebuilds the column from entries.
    pub(crate) fn array(&self, values: Vec<u64>) -> Result<ArrayRef, ArrowError> {
        let rows = values.len();
        let narrow = |values: &[u64]| -> Buffer {
            match self.width {
                4 => values.iter().map(|value| *value as u32).collect::<Vec<_>>().into(),
                2 => values.iter().map(|value| *value as u16).collect::<Vec<_>>().into(),
                _ => values.iter().map(|value| *value as u8).collect::<Vec<_>>().into(),
            }
        };
        let buffer = if self.width == 8 { values.into() } else { narrow(&values) };
        let data = ArrayDataBuilder::new(self.data_type.clone()).len(rows).add_buffer(buffer);
        Ok(make_array(data.build()?))
    }
}

/// A value as an entry holds it.
#[inline(always)]
fn zero_extended<const WIDTH: usize>(value: &[u8; WIDTH]) -> u64 {
    let mut extended = [0; 8];
    extended[..WIDTH].copy_from_slice(value);
    u64::from_le_bytes(extended)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Int8Type, TimestampSecondType, UInt32Type};
    use arrow_array::{
        Array, ArrayRef, ArrowPrimitiveType, Float64Array, Int64Array, PrimitiveArray, RecordBatch,
    };
    use arrow_select::concat::concat_batches;

    use crate::{HashJoin, JoinType, Prober};

    fn joined(build: &RecordBatch, probe: &RecordBatch) -> RecordBatch {
        let (left, right) = (build.schema(), probe.schema());
        let join = HashJoin::by_names(left, right, &[("key", "key")], JoinType::Inner).unwrap();
        let mut side = join.with_batch_rows(77).build();
        side.push(build.slice(0, build.num_rows() / 2)).unwrap();
        side.push(build.slice(build.num_rows() / 2, build.num_rows().div_ceil(2))).unwrap();
        let table = Arc::new(side.finish().unwrap());
        let narrow = build.num_columns() == 2 && build.column(1).null_count() == 0;
        assert_eq!(table.in_memory().unwrap().data.payload.is_some(), narrow);
        let mut prober = Prober::new(table.clone());
        let mut outputs = Vec::new();
        prober.probe(probe.clone()).unwrap();
        while let Some(output) = prober.next_output().unwrap() {
            outputs.push(output);
        }
        prober.end().unwrap();
        outputs.extend(std::iter::from_fn(|| prober.next_output().unwrap()));
        assert!(outputs.iter().all(|output| output.num_rows() <= 77));
        concat_batches(&table.spec().schema(), &outputs).unwrap()
    }

    fn numbers<T: ArrowPrimitiveType>(of: impl Fn(usize) -> T::Native) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter_values((0..1000).map(of)))
    }

    #[test]
    fn values_of_every_width_equal_those_gathered_by_row() {
        let keys: ArrayRef = Arc::new((0..1000).map(|i| Some(i * 3)).collect::<Int64Array>());
        let floats = (0..1000).map(|i| (i % 7 > 0).then_some(f64::from(i) / 3.0));
        let columns: [ArrayRef; 6] = [
            numbers::<Int8Type>(|row| (row * 5) as i8),
            numbers::<UInt32Type>(|row| u32::MAX - row as u32),
            numbers::<TimestampSecondType>(|row| -(row as i64) << 40),
            Arc::new(Float64Array::from_iter_values((0..1000).map(|i| f64::from(i) - 0.5))),
            Arc::new(arrow_array::Int16Array::from_iter_values(-500..500)),
            Arc::new(floats.collect::<Float64Array>()),
        ];
        let probe_keys: ArrayRef = Arc::new((0..5000).map(Some).collect::<Int64Array>());
        let probe = RecordBatch::try_from_iter([("key", probe_keys)]).unwrap();
        for column in columns {
            let one = [("key", keys.clone()), ("a", column.clone())];
            let two = one.clone().into_iter().chain([("b", keys.clone())]);
            let build = RecordBatch::try_from_iter(one).unwrap();
            let wide = RecordBatch::try_from_iter(two).unwrap();
            let expected = joined(&wide, &probe).project(&[0, 1, 3]).unwrap();
            assert_eq!(joined(&build, &probe).columns(), expected.columns());
        }
    }
}
