//! A set of integer keys as one bit for each number of their range, and a filter by it.
//!
//! A look-up is one load from a few cache lines and no hash: on rows it is several times as fast
//! as an `IN` list, and it holds any number of keys.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef, Schema};
use datafusion_common::error::Result;
use datafusion_common::{ScalarValue, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_plan::PhysicalExpr;

const WORD_BITS: u64 = u64::BITS as u64;

/// Keys, each as a bit at its distance from the lowest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyBitmap {
    /// The number of the first bit: a multiple of 64.
    first: i64,
    words: Vec<u64>,
}

impl KeyBitmap {
    /// An empty one for keys of a type, if they are integers.
    pub(crate) fn of(kind: &DataType) -> Option<Self> {
        has_numbers(kind).then(|| Self { first: 0, words: Vec::new() })
    }

    /// Adds keys, but for nulls. False if it would have more than `bytes_max`.
    pub(crate) fn add(&mut self, keys: &ArrayRef, bytes_max: usize) -> bool {
        let mut fits = true;
        let numbers = match keys.logical_nulls() {
            None => each_number(keys, |_, number| fits = fits && self.set(number, bytes_max)),
            Some(nulls) => each_number(keys, |row, number| {
                fits = fits && (nulls.is_null(row) || self.set(number, bytes_max));
            }),
        };
        numbers && fits
    }

    #[inline]
    fn set(&mut self, number: i64, bytes_max: usize) -> bool {
        let bit = number.wrapping_sub(self.first) as u64;
        if let Some(word) = self.words.get_mut((bit / WORD_BITS) as usize) {
            *word |= 1 << (bit % WORD_BITS);
            return true;
        }
        let bit = 1 << (number.rem_euclid(WORD_BITS as i64));
        self.cover(number, number, bytes_max) && {
            let word = (number.wrapping_sub(self.first) as u64 / WORD_BITS) as usize;
            self.words[word] |= bit;
            true
        }
    }

    /// Makes room for a range. False if it would have more than `bytes_max`.
    fn cover(&mut self, from: i64, to: i64, bytes_max: usize) -> bool {
        let word = |number: i64| number.div_euclid(WORD_BITS as i64);
        let (mut first, mut last) = (word(from), word(to));
        if !self.words.is_empty() {
            let own = word(self.first);
            (first, last) = (first.min(own), last.max(own + self.words.len() as i64 - 1));
        }
        let words = (last - first) as u64 + 1;
        let most = (bytes_max / size_of::<u64>()) as u64;
        if words > most {
            return false;
        }
        // Keys often rise or fall: twice the room, as a vector has it.
        let spare = words.min(most - words);
        let old = if self.words.is_empty() { first } else { word(self.first) };
        let falls = first < old;
        let below = if falls { (old - first) as u64 + spare } else { 0 };
        let lowest = word(i64::MIN);
        let below = below.min((old - lowest) as u64);
        let above = if falls { 0 } else { spare };
        let mut grown = vec![0; below as usize];
        grown.extend_from_slice(&self.words);
        let all = (last - (old - below as i64)) as u64 + 1 + above;
        grown.resize(all as usize, 0);
        (self.first, self.words) = ((old - below as i64) * WORD_BITS as i64, grown);
        true
    }

    /// The keys of both; none if they would have more than `bytes_max`.
    pub(crate) fn and(mut self, other: Self, bytes_max: usize) -> Option<Self> {
        if other.words.is_empty() {
            return Some(self);
        }
        let last = other.first.checked_add((other.words.len() as i64) * WORD_BITS as i64 - 1)?;
        if !self.cover(other.first, last, bytes_max) {
            return None;
        }
        let start = (other.first.wrapping_sub(self.first) as u64 / WORD_BITS) as usize;
        for (word, more) in self.words[start..].iter_mut().zip(other.words) {
            *word |= more;
        }
        Some(self)
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// The number of the first bit, and the words from the first to the last that is not zero.
    pub(crate) fn parts(&self) -> (i64, &[u64]) {
        let is_used = |word: &u64| *word != 0;
        let Some(from) = self.words.iter().position(is_used) else { return (0, &[]) };
        let to = self.words.iter().rposition(is_used).map_or(from, |last| last + 1);
        (self.first + (from as i64) * WORD_BITS as i64, &self.words[from..to])
    }

    /// Of its [`parts`](Self::parts); none if they are not those of a bitmap.
    pub(crate) fn from_parts(first: i64, words: Vec<u64>) -> Option<Self> {
        let bits = i64::try_from(words.len()).ok()?.checked_mul(WORD_BITS as i64)?;
        let ends = first.checked_add((bits - 1).max(0)).is_some();
        (ends && first.rem_euclid(WORD_BITS as i64) == 0).then_some(Self { first, words })
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[inline]
    fn has(&self, number: i64) -> bool {
        let bit = number.wrapping_sub(self.first) as u64;
        let word = self.words.get((bit / WORD_BITS) as usize);
        word.is_some_and(|word| word >> (bit % WORD_BITS) & 1 == 1)
    }
}

/// Whether keys of a type are integers of at most 64 bits, signed where they have all of them.
fn has_numbers(kind: &DataType) -> bool {
    matches!(kind, DataType::UInt8 | DataType::UInt16 | DataType::UInt32)
        || kind.is_signed_integer()
        || matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
        || matches!(kind, DataType::Time32(_) | DataType::Time64(_))
}

/// Calls `f` with each row's number, of null rows too. False if they have none.
fn each_number(keys: &ArrayRef, mut f: impl FnMut(usize, i64)) -> bool {
    let data = keys.to_data();
    macro_rules! numbers {
        ($native:ty) => {
            for (row, key) in data.buffer::<$native>(0)[..data.len()].iter().enumerate() {
                f(row, i64::from(*key));
            }
        };
    }
    match keys.data_type() {
        kind if !has_numbers(kind) => return false,
        DataType::Int8 => numbers!(i8),
        DataType::Int16 => numbers!(i16),
        DataType::UInt8 => numbers!(u8),
        DataType::UInt16 => numbers!(u16),
        DataType::UInt32 => numbers!(u32),
        kind if kind.primitive_width() == Some(size_of::<i32>()) => numbers!(i32),
        _ => numbers!(i64),
    }
    true
}

/// Whether a key is in a set.
#[derive(Debug, Clone)]
pub(crate) struct InBitmapExpr {
    key: Arc<dyn PhysicalExpr>,
    keys: Arc<KeyBitmap>,
}

impl InBitmapExpr {
    pub(crate) fn new(key: Arc<dyn PhysicalExpr>, keys: Arc<KeyBitmap>) -> Self {
        Self { key, keys }
    }

    fn look_up<T: ArrowNativeType>(&self, keys: &dyn Array) -> BooleanBuffer
    where
        i64: From<T>,
    {
        let data = keys.to_data();
        let keys = &data.buffer::<T>(0)[..data.len()];
        BooleanBuffer::collect_bool(keys.len(), |row| self.keys.has(i64::from(keys[row])))
    }
}

impl PartialEq for InBitmapExpr {
    fn eq(&self, other: &Self) -> bool {
        self.key.eq(&other.key) && self.keys == other.keys
    }
}

impl Eq for InBitmapExpr {}

impl Hash for InBitmapExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        self.keys.first.hash(state);
    }
}

impl fmt::Display for InBitmapExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} IN (BITMAP) ({} keys)", self.key, self.keys.len())
    }
}

impl PhysicalExpr for InBitmapExpr {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.key.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        let field = self.key.return_field(schema)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(DataType::Boolean)))
    }

    /// Keys of another type than an integer are let through: the join has them.
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let keys = self.key.evaluate(batch)?.into_array(batch.num_rows())?;
        let found = match keys.data_type() {
            kind if !has_numbers(kind) => {
                return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))));
            }
            DataType::Int8 => self.look_up::<i8>(&keys),
            DataType::Int16 => self.look_up::<i16>(&keys),
            DataType::UInt8 => self.look_up::<u8>(&keys),
            DataType::UInt16 => self.look_up::<u16>(&keys),
            DataType::UInt32 => self.look_up::<u32>(&keys),
            kind if kind.primitive_width() == Some(size_of::<i32>()) => self.look_up::<i32>(&keys),
            _ => self.look_up::<i64>(&keys),
        };
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(found, keys.logical_nulls()))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.key]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([key]) = <[_; 1]>::try_from(children) else {
            return internal_err!("InBitmapExpr has one key");
        };
        Ok(Arc::new(Self::new(key, Arc::clone(&self.keys))))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt_sql(f)?;
        write!(f, " IN ({} keys)", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::array::{AsArray, Date32Array, Int8Array, Int64Array, StringArray, UInt32Array};
    use datafusion_physical_plan::expressions::col;

    use super::*;

    const BYTES: usize = 1 << 10;

    fn bitmap(batches: &[&[Option<i64>]]) -> Option<KeyBitmap> {
        let mut keys = KeyBitmap::of(&DataType::Int64).unwrap();
        let fits = batches.iter().all(|batch| {
            let batch: ArrayRef = Arc::new(batch.iter().copied().collect::<Int64Array>());
            keys.add(&batch, BYTES)
        });
        fits.then_some(keys)
    }

    fn evaluated(keys: ArrayRef, set: KeyBitmap) -> ColumnarValue {
        let batch = RecordBatch::try_from_iter([("k", keys)]).unwrap();
        let key = col("k", &batch.schema()).unwrap();
        InBitmapExpr::new(key, Arc::new(set)).evaluate(&batch).unwrap()
    }

    #[test]
    fn it_holds_what_was_added_whatever_the_order() {
        for keys in [
            vec![vec![5_i64, 70, 6, 3000], vec![-3, -2000]],
            vec![vec![i64::MAX, i64::MAX - 5000], vec![i64::MAX - 1]],
            vec![vec![i64::MIN + 4000, i64::MIN], vec![i64::MIN + 64]],
            vec![vec![0], vec![-1], vec![63], vec![64], vec![-64], vec![-65]],
            vec![(0..4000).rev().map(|key| key * 2).collect()],
        ] {
            let batches: Vec<Vec<Option<i64>>> =
                keys.iter().map(|batch| batch.iter().map(|key| Some(*key)).collect()).collect();
            let batches: Vec<&[Option<i64>]> = batches.iter().map(Vec::as_slice).collect();
            let set = bitmap(&batches).unwrap();
            let expected: BTreeSet<i64> = keys.into_iter().flatten().collect();
            assert_eq!(set.len(), expected.len());
            for key in &expected {
                for near in [key.saturating_sub(1), *key, key.saturating_add(1)] {
                    assert_eq!(set.has(near), expected.contains(&near), "{near}");
                }
            }
            assert!(set.words.len() * size_of::<u64>() <= BYTES);
        }
    }

    #[test]
    fn a_range_that_is_too_wide_is_refused() {
        let bits = BYTES as i64 * 8;
        assert!(bitmap(&[&[Some(0), Some(bits - 1)]]).is_some());
        assert!(bitmap(&[&[Some(0), Some(bits)]]).is_none());
        assert!(bitmap(&[&[Some(0)], &[Some(-bits)]]).is_none());
        assert!(bitmap(&[&[Some(i64::MIN)], &[Some(i64::MAX)]]).is_none());
        assert!(bitmap(&[&[Some(1), None]]).is_some(), "a null has no number");
        assert!(KeyBitmap::of(&DataType::UInt64).is_none());
        assert!(KeyBitmap::of(&DataType::Utf8).is_none());
    }

    #[test]
    fn two_sets_are_joined() {
        let (one, two) = (bitmap(&[&[Some(1), Some(100)]]), bitmap(&[&[Some(-90), Some(300)]]));
        let both = one.clone().unwrap().and(two.unwrap(), BYTES).unwrap();
        let found: Vec<i64> = (-500..500).filter(|key| both.has(*key)).collect();
        assert_eq!(found, [-90, 1, 100, 300]);
        let empty = bitmap(&[&[None]]).unwrap();
        assert_eq!(empty.clone().and(both.clone(), BYTES).unwrap().len(), 4);
        assert_eq!(both.clone().and(empty, BYTES).unwrap(), both);
        let far = bitmap(&[&[Some(1_000_000)]]).unwrap();
        assert!(both.and(far, BYTES).is_none());
    }

    #[test]
    fn rows_of_every_integer_type_are_looked_up() {
        let set = || bitmap(&[&[Some(3), Some(-2), Some(200)]]).unwrap();
        let small: Vec<ArrayRef> = vec![
            Arc::new(Int8Array::from(vec![Some(3), None, Some(-2), Some(7)])),
            Arc::new(Int64Array::from(vec![Some(3), None, Some(200), Some(7)])),
            Arc::new(Date32Array::from(vec![Some(3), None, Some(200), Some(7)])),
            Arc::new(UInt32Array::from(vec![Some(3), None, Some(200), Some(7)])),
        ];
        for keys in small {
            let ColumnarValue::Array(found) = evaluated(keys.slice(1, 3), set()) else {
                panic!("one result for each row");
            };
            let found: Vec<_> = found.as_boolean().iter().collect();
            assert_eq!(found, [None, Some(true), Some(false)], "{}", keys.data_type());
        }
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(matches!(evaluated(texts, set()), ColumnarValue::Scalar(_)));
    }
}
