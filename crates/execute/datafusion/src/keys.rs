//! The build side's keys, for the dynamic filter: their bounds, their values if they are few, and
//! which integers of a range they are.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_common::error::Result;
use datafusion_expr::Accumulator;
use datafusion_functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};

use crate::key_bitmap::KeyBitmap;

/// The least length limit of a list that filters rows: each row is looked up by a hash, while a
/// scan compares each row group's bounds with each value.
const ROW_LIST_VALUES: usize = 1024;

/// Most bytes of a bitmap: it should stay in the second-level cache.
const BITMAP_BYTES: usize = 1 << 20;
/// The same as a part of limited memory, to which it is not charged.
const BITMAP_SHARE: usize = 256;

/// The same for rows that are sent to another process, a part of memory to which it is charged.
const EXCHANGED_BITMAP_BYTES: usize = 16 << 20;
/// The longest list of them.
const ROW_LIST_BYTES: usize = 1 << 20;
const EXCHANGED_BITMAP_SHARE: usize = 32;

/// Limits of a list of values, and of a bitmap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListLimits {
    bytes: usize,
    values: usize,
    bitmap_bytes: usize,
}

impl ListLimits {
    /// The session's limits for hash joins.
    pub(crate) fn of(config: &ConfigOptions) -> Self {
        Self {
            bytes: config.optimizer.hash_join_inlist_pushdown_max_size,
            values: config.optimizer.hash_join_inlist_pushdown_max_distinct_values,
            bitmap_bytes: 0,
        }
    }

    /// For sets that were within their own limits.
    pub(crate) const MERGED: Self = Self {
        bytes: ROW_LIST_BYTES,
        values: ROW_LIST_VALUES,
        bitmap_bytes: EXCHANGED_BITMAP_BYTES,
    };

    /// For rows that would be sent to another process: a miss in the cache costs less than that.
    pub(crate) fn for_exchanged_rows(self, memory: Option<usize>) -> Self {
        let bytes = memory.map_or(usize::MAX, |bytes| bytes / EXCHANGED_BITMAP_SHARE);
        let bitmap_bytes = bytes.min(EXCHANGED_BITMAP_BYTES);
        Self { bitmap_bytes, ..self.for_rows(memory) }
    }

    /// For a filter of rows instead of row groups, with a limit of memory.
    pub(crate) fn for_rows(self, memory: Option<usize>) -> Self {
        let bitmap_bytes = memory.map_or(BITMAP_BYTES, |bytes| bytes / BITMAP_SHARE);
        let bitmap_bytes = bitmap_bytes.min(BITMAP_BYTES);
        Self { values: self.values.max(ROW_LIST_VALUES), bitmap_bytes, ..self }
    }
}

/// Bounds of one key, of all rows seen. Null keys have none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) min: ScalarValue,
    pub(crate) max: ScalarValue,
}

/// The keys of one complete build side, or of several.
#[derive(Debug, Clone)]
pub(crate) struct KeyReport {
    pub(crate) rows: usize,
    /// A key in some row is null.
    pub(crate) nulls: bool,
    /// One for each key; none if there is no order or no value.
    pub(crate) bounds: Vec<Option<Bounds>>,
    /// All values of each key, while they are few.
    pub(crate) values: Option<Vec<ArrayRef>>,
    /// One for each key that is an integer, if the range is not too wide.
    pub(crate) bitmaps: Vec<Option<Arc<KeyBitmap>>>,
}

/// Collects a report, batch by batch.
pub(crate) struct KeyCollector {
    columns: Vec<usize>,
    rows: usize,
    nulls: bool,
    bounds: Vec<Option<(MinAccumulator, MaxAccumulator)>>,
    values: Option<Vec<Vec<ArrayRef>>>,
    value_bytes: usize,
    bitmaps: Vec<Option<KeyBitmap>>,
    limits: ListLimits,
}

impl KeyCollector {
    /// For keys in these columns of a batch.
    pub(crate) fn new(
        columns: &[usize],
        schema: &arrow::datatypes::Schema,
        limits: ListLimits,
    ) -> Result<Self> {
        let bounds = columns.iter().map(|at| accumulators(schema.field(*at).data_type()));
        let filters_rows = limits.bitmap_bytes > 0;
        let bitmap = |at: &usize| KeyBitmap::of(schema.field(*at).data_type());
        let bitmaps = columns.iter().map(|at| bitmap(at).filter(|_| filters_rows)).collect();
        Ok(Self {
            columns: columns.to_vec(),
            rows: 0,
            nulls: false,
            bounds: bounds.collect::<Result<_>>()?,
            values: Some(Vec::new()),
            value_bytes: 0,
            bitmaps,
            limits,
        })
    }

    /// Adds a batch.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        for (at, bounds) in self.columns.iter().zip(&mut self.bounds) {
            let keys = batch.column(*at);
            self.nulls |= keys.logical_null_count() > 0;
            if let Some((min, max)) = bounds {
                min.update_batch(std::slice::from_ref(keys))?;
                max.update_batch(std::slice::from_ref(keys))?;
            }
        }
        for (at, bitmap) in self.columns.iter().zip(&mut self.bitmaps) {
            if bitmap
                .as_mut()
                .is_some_and(|bitmap| !bitmap.add(batch.column(*at), self.limits.bitmap_bytes))
            {
                *bitmap = None;
            }
        }
        if let Some(values) = &mut self.values {
            let keys = self.columns.iter().map(|at| Arc::clone(batch.column(*at)));
            let keys: Vec<ArrayRef> = keys.collect();
            // The size of the listed rows, not of the buffers that they are slices of.
            let bytes = |keys: &ArrayRef| keys.to_data().get_slice_memory_size();
            let bytes = keys.iter().map(bytes).sum::<Result<usize, _>>()?;
            self.value_bytes += bytes / keys.len();
            if self.value_bytes > self.limits.bytes {
                self.values = None;
            } else if batch.num_rows() > 0 {
                values.push(keys);
            }
        }
        Ok(())
    }

    /// Rows that were added.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the bitmaps.
    pub(crate) fn bitmap_bytes(&self) -> usize {
        self.bitmaps.iter().flatten().map(KeyBitmap::bytes).sum()
    }

    /// The report; `distinct` keys were found among the rows.
    pub(crate) fn finish(mut self, distinct: usize) -> Result<KeyReport> {
        let bounds = std::mem::take(&mut self.bounds).into_iter().map(|pair| {
            let Some((mut min, mut max)) = pair else { return Ok(None) };
            let (min, max) = (min.evaluate()?, max.evaluate()?);
            Ok((!min.is_null() && !max.is_null()).then_some(Bounds { min, max }))
        });
        let bounds = bounds.collect::<Result<_>>()?;
        let values =
            self.values.take().filter(|parts| !parts.is_empty() && distinct <= self.limits.values);
        let values = values.map(|parts| {
            let whole = |key: usize| {
                let parts: Vec<&dyn Array> = parts.iter().map(|keys| keys[key].as_ref()).collect();
                concat(&parts)
            };
            (0..self.columns.len()).map(whole).collect::<Result<_, _>>()
        });
        let values = values.transpose()?;
        let Self { rows, nulls, bitmaps, .. } = self;
        let bitmaps = bitmaps.into_iter().map(|bitmap| bitmap.map(Arc::new)).collect();
        Ok(KeyReport { rows, nulls, bounds, values, bitmaps })
    }
}

impl KeyReport {
    /// The keys of two build sides together, for sides that were both complete.
    pub(crate) fn and(self, other: Self, limits: ListLimits) -> Result<Self> {
        if self.rows == 0 {
            return Ok(other);
        }
        if other.rows == 0 {
            return Ok(self);
        }
        let bounds = self.bounds.into_iter().zip(other.bounds).map(|pair| match pair {
            (Some(one), Some(two)) => one.and(two).map(Some),
            _ => Ok(None),
        });
        let bounds = bounds.collect::<Result<_>>()?;
        let values = match (self.values, other.values) {
            (Some(one), Some(two)) => {
                let both = one.iter().zip(&two).map(|(one, two)| concat(&[one, two]));
                let both = both.collect::<Result<Vec<_>, _>>()?;
                let is_short = |keys: &ArrayRef| keys.get_array_memory_size() <= limits.bytes;
                both.iter().all(is_short).then_some(both)
            }
            _ => None,
        };
        let bitmaps = self.bitmaps.into_iter().zip(other.bitmaps).map(|pair| match pair {
            (Some(one), Some(two)) => {
                let [one, two] = [one, two].map(Arc::unwrap_or_clone);
                one.and(two, limits.bitmap_bytes).map(Arc::new)
            }
            _ => None,
        });
        let rows = self.rows.saturating_add(other.rows);
        let nulls = self.nulls || other.nulls;
        Ok(Self { rows, nulls, bounds, values, bitmaps: bitmaps.collect() })
    }
}

impl Bounds {
    fn and(self, other: Self) -> Result<Self> {
        let kind = self.min.data_type();
        let (mut min, mut max) = (MinAccumulator::try_new(&kind)?, MaxAccumulator::try_new(&kind)?);
        min.update_batch(&[ScalarValue::iter_to_array([self.min, other.min])?])?;
        max.update_batch(&[ScalarValue::iter_to_array([self.max, other.max])?])?;
        Ok(Self { min: min.evaluate()?, max: max.evaluate()? })
    }
}

/// For the types that filters and accumulators order alike.
fn accumulators(kind: &DataType) -> Result<Option<(MinAccumulator, MaxAccumulator)>> {
    let kind = match kind {
        DataType::Dictionary(_, values) => values.as_ref(),
        kind => kind,
    };
    let ordered = kind.is_numeric()
        || kind.is_temporal() && !matches!(kind, DataType::Interval(_) | DataType::Duration(_))
        || kind.is_string()
        || kind.is_binary() && !matches!(kind, DataType::FixedSizeBinary(_))
        || *kind == DataType::Boolean;
    if !ordered {
        return Ok(None);
    }
    Ok(Some((MinAccumulator::try_new(kind)?, MaxAccumulator::try_new(kind)?)))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{Field, Schema};

    use super::*;

    const LIMITS: ListLimits = ListLimits { bytes: 1 << 10, values: 4, bitmap_bytes: 1 << 10 };

    fn report(keys: Vec<Option<i64>>, distinct: usize) -> KeyReport {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true)]));
        let mut collector = KeyCollector::new(&[0], &schema, LIMITS).unwrap();
        let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(keys))]);
        collector.add(&batch.unwrap()).unwrap();
        collector.finish(distinct).unwrap()
    }

    fn bounds(report: &KeyReport) -> Option<(i64, i64)> {
        let bounds = report.bounds[0].clone()?;
        Some((bounds.min.try_into().unwrap(), bounds.max.try_into().unwrap()))
    }

    #[test]
    fn bounds_are_of_all_rows_and_ignore_nulls() {
        let found = report(vec![Some(3), None, Some(-1)], 2);
        assert_eq!((bounds(&found), found.nulls, found.rows), (Some((-1, 3)), true, 3));
        assert_eq!(found.values.as_ref().unwrap()[0].len(), 3);
        assert_eq!(bounds(&report(vec![None], 0)), None);
    }

    #[test]
    fn many_values_are_not_listed() {
        assert!(report(vec![Some(1); 10], 5).values.is_none(), "more distinct ones than allowed");
        assert!(
            report((0..500).map(Some).collect(), 4).values.is_none(),
            "more bytes than allowed"
        );
    }

    #[test]
    fn two_reports_are_the_report_of_both() {
        let (one, two) = (report(vec![Some(1)], 1), report(vec![Some(9), None], 1));
        let both = one.and(two, LIMITS).unwrap();
        assert_eq!((bounds(&both), both.nulls, both.rows), (Some((1, 9)), true, 3));
        assert_eq!(both.values.unwrap()[0].len(), 3);
        let empty = report(vec![], 0);
        let one = report(vec![Some(1)], 1).and(empty, LIMITS).unwrap();
        assert_eq!((bounds(&one), one.rows), (Some((1, 1)), 1), "an empty report adds nothing");
    }
}
