//! Integer keys of any width as 64-bit words that are equal exactly when the integers are.
//!
//! Signed integers are sign-extended, unsigned ones zero-extended. The one case in which that is
//! not enough is a signed key against `UInt64`: −1 and 2⁶⁴−1 would be the same word, so negative
//! keys are left out there, as nulls are: neither equals anything.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use workahead_operators::walk::Row;

use crate::JoinError;

/// How one side's keys are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyReader {
    /// Whether negative keys can't match because the other side has none.
    drop_negative: bool,
    /// Mixed into every key of both sides when a table of the plain keys would be crowded.
    whiten: Option<u64>,
}

/// A batch's keys, without those that match nothing.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    words: Vec<u64>,
    /// Row of each word, unless word `i` is of row `i`.
    rows: Option<Vec<Row>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned { widest: bool },
    Date,
}

fn kind(name: &str, data_type: &DataType) -> Result<Kind, JoinError> {
    Ok(match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Kind::Signed,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Kind::Unsigned { widest: false },
        DataType::UInt64 => Kind::Unsigned { widest: true },
        DataType::Date32 => Kind::Date,
        found => return Err(JoinError::KeyType { name: name.to_owned(), found: found.clone() }),
    })
}

impl KeyReader {
    /// Readers for a left and a right key.
    pub(crate) fn pair(
        left: (&str, &DataType),
        right: (&str, &DataType),
    ) -> Result<[Self; 2], JoinError> {
        let kinds = [kind(left.0, left.1)?, kind(right.0, right.1)?];
        if (kinds[0] == Kind::Date) != (kinds[1] == Kind::Date) {
            return Err(JoinError::KeyKinds { left: left.1.clone(), right: right.1.clone() });
        }
        let reader = |own: Kind, other: Kind| {
            let drop_negative = own == Kind::Signed && other == Kind::Unsigned { widest: true };
            Self { drop_negative, whiten: None }
        };
        Ok([reader(kinds[0], kinds[1]), reader(kinds[1], kinds[0])])
    }

    /// The same with every key mixed with a number.
    pub(crate) fn whitened(self, whiten: u64) -> Self {
        Self { whiten: Some(whiten), ..self }
    }

    /// Reads a batch's keys, reusing the memory of the last.
    pub(crate) fn read(self, array: &ArrayRef, keys: &mut Keys) {
        match array.data_type() {
            DataType::Int8 => self.read_as::<Int8Type>(array, keys, |key| key as u64),
            DataType::Int16 => self.read_as::<Int16Type>(array, keys, |key| key as u64),
            DataType::Int32 => self.read_as::<Int32Type>(array, keys, |key| key as u64),
            DataType::Int64 => self.read_as::<Int64Type>(array, keys, |key| key as u64),
            DataType::UInt8 => self.read_as::<UInt8Type>(array, keys, u64::from),
            DataType::UInt16 => self.read_as::<UInt16Type>(array, keys, u64::from),
            DataType::UInt32 => self.read_as::<UInt32Type>(array, keys, u64::from),
            DataType::UInt64 => self.read_as::<UInt64Type>(array, keys, |key| key),
            DataType::Date32 => self.read_as::<Date32Type>(array, keys, |key| key as u64),
            other => unreachable!("{other} is refused when the join is made"),
        }
    }

    fn read_as<T: ArrowPrimitiveType>(
        self,
        array: &ArrayRef,
        keys: &mut Keys,
        word: impl Fn(T::Native) -> u64,
    ) {
        let array = array.as_primitive::<T>();
        keys.words.clear();
        keys.words.extend(array.values().iter().map(|key| word(*key)));
        let negative = |word: u64| word >> (u64::BITS - 1) != 0;
        let drops_negative = self.drop_negative && keys.words.iter().any(|word| negative(*word));
        if array.null_count() == 0 && !drops_negative {
            keys.rows = None;
        } else {
            let rows = keys.rows.get_or_insert_default();
            rows.clear();
            rows.extend(
                (0..array.len())
                    .filter(|&row| {
                        let dropped = self.drop_negative && negative(keys.words[row]);
                        array.is_valid(row) && !dropped
                    })
                    .map(|row| row as Row),
            );
            // A row is never before its place among the kept ones.
            for (to, from) in rows.iter().enumerate() {
                keys.words[to] = keys.words[*from as usize];
            }
            keys.words.truncate(rows.len());
        }
        if let Some(whiten) = self.whiten {
            keys.words.iter_mut().for_each(|word| *word = whitened(*word, whiten));
        }
    }
}

/// A bijection, so that equality is kept (the finaliser of SplitMix64).
fn whitened(word: u64, whiten: u64) -> u64 {
    let mut x = word ^ whiten;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Keys {
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Rows of the words, unless word `i` is of row `i`.
    pub(crate) fn rows(&self) -> Option<&[Row]> {
        self.rows.as_deref()
    }

    /// The row of a word.
    #[inline]
    pub(crate) fn row(&self, word: Row) -> Row {
        self.rows.as_ref().map_or(word, |rows| rows[word as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Date32Array, Int8Array, Int64Array, StringArray, UInt8Array, UInt64Array};

    use super::*;

    fn read(own: ArrayRef, other: &DataType) -> (Vec<u64>, Option<Vec<Row>>) {
        let [reader, _] = KeyReader::pair(("a", own.data_type()), ("b", other)).unwrap();
        let mut keys = Keys::default();
        // A batch before it, whose memory is used again.
        reader.read(&arrow_array::new_null_array(own.data_type(), 3), &mut keys);
        reader.read(&own, &mut keys);
        (keys.words, keys.rows)
    }

    #[test]
    fn widths_are_widened_by_their_sign() {
        let (words, rows) = read(Arc::new(Int8Array::from(vec![-1, 5])), &DataType::Int64);
        assert_eq!((words, rows), (vec![u64::MAX, 5], None));
        let (words, _) = read(Arc::new(UInt8Array::from(vec![255])), &DataType::Int64);
        assert_eq!(words, [255]);
        let (words, _) = read(Arc::new(Date32Array::from(vec![-3])), &DataType::Date32);
        assert_eq!(words, [-3_i64 as u64]);
    }

    #[test]
    fn nulls_are_left_out() {
        let array = Int64Array::from(vec![None, Some(7), None, Some(8)]);
        let (words, rows) = read(Arc::new(array), &DataType::Int8);
        assert_eq!((words, rows), (vec![7, 8], Some(vec![1, 3])));
    }

    #[test]
    fn negative_keys_are_not_large_ones() {
        let array = Arc::new(Int64Array::from(vec![Some(-1), Some(i64::MAX), None, Some(0)]));
        let (words, rows) = read(array, &DataType::UInt64);
        assert_eq!((words, rows), (vec![i64::MAX as u64, 0], Some(vec![1, 3])));
        let (words, rows) = read(Arc::new(UInt64Array::from(vec![u64::MAX])), &DataType::Int64);
        assert_eq!((words, rows), (vec![u64::MAX], None));
    }

    #[test]
    fn a_slice_is_read_as_what_it_shows() {
        let array = Int64Array::from(vec![Some(1), None, Some(3), Some(4)]).slice(1, 2);
        let (words, rows) = read(Arc::new(array), &DataType::Int64);
        assert_eq!((words, rows), (vec![3], Some(vec![1])));
    }

    #[test]
    fn other_types_are_refused_by_name() {
        let text = StringArray::from(vec!["x"]);
        let error = KeyReader::pair(("a", &DataType::Int8), ("b", text.data_type())).unwrap_err();
        assert!(error.to_string().contains("\"b\" is Utf8"), "{error}");
        let error = KeyReader::pair(("a", &DataType::Int32), ("b", &DataType::Date32));
        assert!(matches!(error, Err(JoinError::KeyKinds { .. })));
    }

    #[test]
    fn whitening_keeps_equality_and_difference() {
        let words: std::collections::HashSet<_> =
            (0..10_000).map(|word| whitened(word, 99)).collect();
        assert_eq!(words.len(), 10_000);
    }
}
