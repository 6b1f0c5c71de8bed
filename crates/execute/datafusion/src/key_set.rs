//! The keys of a build side on their way to other processes.
//!
//! ```text
//! build side of task 0 ── key set ─┐              ┌─ reader of the probe side, task 0
//! build side of task 1 ── key set ─┴─ OR of all ──┴─ reader of the probe side, task 1
//! ```
//!
//! Integers are a bitmap of their range, other keys a list while they are few, else a range. What
//! is read back is checked: no length in the bytes is believed.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BinaryArray, make_array};
use arrow::buffer::Buffer;
use arrow::compute::{cast, is_not_null};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::error::Result;
use datafusion_common::{ScalarValue, exec_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_physical_plan::PhysicalExpr;
use datafusion_physical_plan::expressions::lit;
use futures::future::BoxFuture;

use crate::dynamic_filter::{one_of, within};
use crate::key_bitmap::KeyBitmap;
use crate::keys::{Bounds, KeyReport, ListLimits};
use crate::local_keys::LocalKeys;

/// The longest name of a key's type.
const TYPE_BYTES: usize = 64;

/// Who publishes the keys of a filter, and who reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScope {
    /// Each task publishes a part, and all tasks read all parts.
    Parts,
    /// Each task has all keys, and all tasks read them.
    Whole,
    /// Each task reads what it published itself.
    Task,
}

impl KeyScope {
    const ALL: [Self; 3] = [Self::Parts, Self::Whole, Self::Task];

    pub(crate) fn to_number(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

/// Carries key sets between the processes that run the parts of one plan: a session has it as
/// [`KeyExchangeExtension`].
pub trait KeyExchange: fmt::Debug + Send + Sync {
    /// Publishes what this task knows of a filter, none if it will never know it.
    fn publish(&self, filter: u32, keys: Option<KeySet>, scope: KeyScope);

    /// The keys of all who publish them; none if one of them doesn't know its own.
    fn keys(&self, filter: u32, scope: KeyScope) -> BoxFuture<'static, Option<Arc<KeySet>>>;
}

/// A session's [`KeyExchange`], an extension of its configuration.
#[derive(Debug, Clone)]
pub struct KeyExchangeExtension(pub Arc<dyn KeyExchange>);

impl KeyExchangeExtension {
    /// A plan's own exchange, or else the session's.
    pub(crate) fn or(
        local: Option<&Arc<LocalKeys>>,
        context: &TaskContext,
    ) -> Option<Arc<dyn KeyExchange>> {
        if let Some(local) = local {
            return Some(Arc::new(Arc::clone(local)));
        }
        let extension = context.session_config().get_extension::<Self>()?;
        Some(Arc::clone(&extension.0))
    }
}

/// All values of one key column that rows of a build side have, or bounds of them.
#[derive(Debug, Clone)]
pub struct KeySet {
    kind: DataType,
    report: KeyReport,
}

impl KeySet {
    /// Of a report on one key of this type.
    pub(crate) fn new(kind: &DataType, report: KeyReport) -> Self {
        Self { kind: plain(kind).clone(), report }
    }

    /// Adds the keys of another part of the build side.
    ///
    /// # Errors
    /// When the two are not of one type.
    pub fn merge(self, other: Self) -> Result<Self> {
        if self.kind != other.kind {
            let (one, two) = (self.kind, other.kind);
            return Err(exec_datafusion_err!("keys of one filter are {one} and {two}"));
        }
        let report = self.report.and(other.report, ListLimits::MERGED)?;
        Ok(Self { kind: self.kind, report })
    }

    /// Bytes that it takes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bitmap = self.report.bitmaps[0].as_ref().map_or(0, |bitmap| bitmap.bytes());
        let values = self.report.values.as_ref().map_or(0, |v| v[0].get_array_memory_size());
        let size = |bounds: &Bounds| bounds.min.size() + bounds.max.size();
        let bounds = self.report.bounds[0].as_ref().map_or(0, size);
        bitmap + values + bounds + size_of::<Self>()
    }

    /// Whether a column's value may be among them; none if nothing is known that drops rows.
    pub(crate) fn predicate(
        &self,
        key: &Arc<dyn PhysicalExpr>,
        schema: &SchemaRef,
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let kind = key.data_type(schema)?;
        if self.report.rows == 0 {
            return Ok(Some(lit(false)));
        }
        if *plain(&kind) != self.kind {
            return Ok(None);
        }
        let mut report = self.report.clone();
        if let Some(values) = &mut report.values {
            values[0] = cast(&values[0], &kind)?;
        }
        if let Some(one_of) = one_of(key, 0, &report, schema)? {
            return Ok(Some(one_of));
        }
        Ok(report.bounds[0].as_ref().map(|bounds| within(key, bounds)))
    }

    /// For another process.
    ///
    /// # Errors
    /// When values can't be converted.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let KeyReport { rows, nulls, bounds, values, bitmaps } = &self.report;
        let mut bytes = Vec::new();
        put(&mut bytes, self.kind.to_string().as_bytes());
        bytes.extend_from_slice(&(*rows as u64).to_le_bytes());
        bytes.push(u8::from(*nulls));
        let bounds = bounds[0].as_ref().map(|bounds| {
            ScalarValue::iter_to_array([bounds.min.clone(), bounds.max.clone()])
                .and_then(|bounds| values_to_bytes(&bounds))
        });
        put_option(&mut bytes, bounds.transpose()?.flatten());
        let values = values.as_ref().map(|values| values_to_bytes(&values[0])).transpose()?;
        put_option(&mut bytes, values.flatten());
        put_option(
            &mut bytes,
            bitmaps[0].as_ref().map(|bitmap| {
                let (first, words) = bitmap.parts();
                let words = words.iter().flat_map(|word| word.to_le_bytes());
                first.to_le_bytes().into_iter().chain(words).collect()
            }),
        );
        Ok(bytes)
    }

    /// Reads [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// When the bytes are not those of a key set.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let wrong = || exec_datafusion_err!("the bytes of a key set are damaged");
        let read = |bytes: &mut &[u8]| {
            let kind = take(bytes)?;
            // A longer one could nest deeply.
            let kind = str::from_utf8(kind).ok().filter(|kind| kind.len() <= TYPE_BYTES)?;
            let kind: DataType = kind.parse().ok()?;
            let rows = usize::try_from(take_number(bytes)?).ok()?;
            let nulls = *bytes.split_off_first()? != 0;
            let bounds = match take_option(bytes)? {
                None => None,
                Some(bounds) => {
                    let bounds = values_of_bytes(&kind, bounds).filter(|two| two.len() == 2)?;
                    let [min, max] =
                        [0, 1].map(|row| ScalarValue::try_from_array(&bounds, row).ok());
                    Some(Bounds { min: min?, max: max? })
                }
            };
            let values = match take_option(bytes)? {
                None => None,
                Some(values) => Some(vec![values_of_bytes(&kind, values)?]),
            };
            let bitmap = match take_option(bytes)? {
                None => None,
                Some(mut bitmap) => {
                    let first = take_number(&mut bitmap)?.cast_signed();
                    let (words, rest) = bitmap.as_chunks();
                    let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                    let fits = rest.is_empty() && KeyBitmap::of(&kind).is_some();
                    Some(Arc::new(KeyBitmap::from_parts(first, words).filter(|_| fits)?))
                }
            };
            let report =
                KeyReport { rows, nulls, bounds: vec![bounds], values, bitmaps: vec![bitmap] };
            bytes.is_empty().then_some(Self { kind, report })
        };
        read(&mut bytes).ok_or_else(wrong)
    }
}

/// The type of a dictionary's values, or the type itself.
fn plain(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => values,
        kind => kind,
    }
}

/// The bytes of each value, of a type any of whose bytes are a value.
fn width(kind: &DataType) -> Option<usize> {
    kind.primitive_width().filter(|_| !matches!(kind, DataType::Dictionary(..)))
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) || kind.is_binary()
}

/// The values without nulls; `None` for a type that has no such bytes.
fn values_to_bytes(values: &ArrayRef) -> Result<Option<Vec<u8>>> {
    let values = arrow::compute::filter(values, &is_not_null(values)?)?;
    let values = cast(&values, plain(values.data_type()))?;
    if let Some(width) = width(values.data_type()) {
        let data = values.to_data();
        let start = data.offset() * width;
        return Ok(Some(data.buffers()[0][start..start + data.len() * width].to_vec()));
    }
    if !is_text(values.data_type()) {
        return Ok(None);
    }
    let values = cast(&values, &DataType::LargeBinary)?;
    let mut bytes = Vec::new();
    values.as_binary::<i64>().iter().flatten().for_each(|value| put(&mut bytes, value));
    Ok(Some(bytes))
}

/// Reads [`values_to_bytes`].
fn values_of_bytes(kind: &DataType, mut bytes: &[u8]) -> Option<ArrayRef> {
    if let Some(width) = width(kind) {
        if !bytes.len().is_multiple_of(width) {
            return None;
        }
        let data = ArrayData::builder(kind.clone()).len(bytes.len() / width);
        return data.add_buffer(Buffer::from(bytes)).build().ok().map(make_array);
    }
    if !is_text(kind) {
        return None;
    }
    let mut values = Vec::new();
    while !bytes.is_empty() {
        values.push(take(&mut bytes)?);
    }
    let values: ArrayRef = Arc::new(BinaryArray::from_vec(values));
    cast(&values, kind).ok().filter(|values| values.null_count() == 0)
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn put_option(bytes: &mut Vec<u8>, part: Option<Vec<u8>>) {
    bytes.push(u8::from(part.is_some()));
    if let Some(part) = part {
        put(bytes, &part);
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let (part, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

#[allow(clippy::option_option, reason = "none of the bytes, or none in them")]
fn take_option<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match *bytes.split_off_first()? {
        0 => Some(None),
        _ => take(bytes).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BooleanArray, Decimal128Array, DictionaryArray, Int64Array, RecordBatch, StringArray,
        StringViewArray, TimestampSecondArray,
    };
    use arrow::datatypes::Int8Type;
    use datafusion_common::config::ConfigOptions;
    use datafusion_expr::ColumnarValue;
    use datafusion_physical_plan::expressions::col;

    use super::*;
    use crate::keys::KeyCollector;

    fn set_of(keys: &ArrayRef) -> KeySet {
        let batch = RecordBatch::try_from_iter([("k", Arc::clone(keys))]).unwrap();
        let limits = ListLimits::of(&ConfigOptions::new()).for_exchanged_rows(None);
        let mut collector = KeyCollector::new(&[0], &batch.schema(), limits).unwrap();
        collector.add(&batch).unwrap();
        KeySet::new(keys.data_type(), collector.finish(keys.len()).unwrap())
    }

    /// Which rows of a column pass; all, if nothing is known.
    fn passing(set: &KeySet, keys: &ArrayRef) -> Vec<bool> {
        let batch = RecordBatch::try_from_iter([("k", Arc::clone(keys))]).unwrap();
        let key = col("k", &batch.schema()).unwrap();
        let Some(filter) = set.predicate(&key, &batch.schema()).unwrap() else {
            return vec![true; keys.len()];
        };
        let found: ColumnarValue = filter.evaluate(&batch).unwrap();
        let found = found.into_array(keys.len()).unwrap();
        found.as_boolean().iter().map(|passes| passes == Some(true)).collect()
    }

    fn columns() -> Vec<ArrayRef> {
        let texts = vec![Some("a"), None, Some(""), Some("12345678901234567890")];
        vec![
            Arc::new(Int64Array::from(vec![Some(-5), None, Some(1 << 40), Some(7)])),
            Arc::new(Int64Array::from_iter_values((0..50_000).map(|key| key * 3))),
            Arc::new(Decimal128Array::from(vec![Some(1), None, Some(-1)])),
            Arc::new(TimestampSecondArray::from(vec![3, 9]).with_timezone("Europe/Berlin")),
            Arc::new(StringArray::from(texts.clone())),
            Arc::new(StringViewArray::from(texts.clone())),
            Arc::new(texts.into_iter().collect::<DictionaryArray<Int8Type>>()),
            Arc::new(StringArray::from_iter_values((0..5000).map(|key| format!("{key:040}")))),
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            Arc::new(Int64Array::from(Vec::<i64>::new())),
        ]
    }

    #[test]
    fn every_key_of_the_build_side_passes_elsewhere() {
        for keys in columns() {
            let set = set_of(&keys);
            let read = KeySet::from_bytes(&set.to_bytes().unwrap()).unwrap();
            let passing = passing(&read, &keys);
            for (row, passes) in passing.into_iter().enumerate() {
                assert!(passes || keys.is_null(row), "{} row {row}", keys.data_type());
            }
            assert!(read.bytes() > 0);
        }
    }

    #[test]
    fn long_bounds_count() {
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(1 << 20), "b".into()]));
        assert!(set_of(&keys).bytes() > 1 << 20);
    }

    #[test]
    fn other_keys_do_not() {
        let of = |keys: &[i64]| Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef;
        let many: Vec<i64> = (0..5000).map(|key| key * 2).collect();
        let merged = set_of(&of(&many)).merge(set_of(&of(&[11, 20_001]))).unwrap();
        let read = KeySet::from_bytes(&merged.to_bytes().unwrap()).unwrap();
        let probes = of(&[-2, 0, 1, 9998, 9999, 11, 13, 20_001, 20_003]);
        let expected = [false, true, false, true, false, true, false, true, false];
        assert_eq!(passing(&read, &probes), expected);
        let none = set_of(&of(&[]));
        assert_eq!(passing(&none, &probes), [false; 9]);
        assert_eq!(passing(&none.merge(read).unwrap(), &probes), expected);
    }

    #[test]
    fn keys_of_another_type_filter_nothing() {
        let [integers, texts] = [&columns()[0], &columns()[4]].map(Arc::clone);
        assert_eq!(passing(&set_of(&integers), &texts), [true; 4]);
        assert!(set_of(&integers).merge(set_of(&texts)).is_err());
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_set() {
        let mut random = 1_u64;
        for keys in columns() {
            let bytes = set_of(&keys).to_bytes().unwrap();
            let lengths = (0..bytes.len()).step_by(1 + bytes.len() / 300);
            for length in lengths {
                assert!(KeySet::from_bytes(&bytes[..length]).is_err());
            }
            for _ in 0..1000 {
                let mut damaged = bytes.clone();
                for _ in 0..2 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = (random >> 33) as usize % damaged.len().min(200);
                    damaged[at] = (random >> 25) as u8;
                }
                let Ok(set) = KeySet::from_bytes(&damaged) else { continue };
                let other = set_of(&keys);
                drop(passing(&set, &keys));
                drop(other.merge(set));
            }
        }
    }
}
