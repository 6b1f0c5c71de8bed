//! Key columns of fixed width as 64-bit words that are equal exactly when the values are.
//!
//! Signed integers are sign-extended, unsigned ones zero-extended, so that integers of different
//! widths can be compared. The one case in which that is not enough is a signed key against
//! `UInt64`: −1 and 2⁶⁴−1 would be the same word, so negative keys match nothing there. Floats are
//! their bits: Arrow's total order, in which a NaN equals the same NaN and −0.0 is not 0.0.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, ScalarBuffer};
use arrow_schema::{DataType, IntervalUnit};

/// Reads a column of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed {
    width: Width,
    signed: bool,
    /// Whether negative keys match nothing because the other side is unsigned.
    drop_negative: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Bit,
    Bytes1,
    Bytes2,
    Bytes4,
    Bytes8,
    Bytes16,
    /// Any number of bytes, unaligned.
    Odd(usize),
}

impl Fixed {
    /// `None` if the type isn't of a fixed width of at most 16 bytes.
    pub(crate) fn of(own: &DataType, other: &DataType) -> Option<Self> {
        use DataType as T;
        let width = match own {
            T::Boolean => Width::Bit,
            T::Int8 | T::UInt8 => Width::Bytes1,
            T::Int16 | T::UInt16 | T::Float16 => Width::Bytes2,
            T::Int32 | T::UInt32 | T::Float32 | T::Date32 | T::Time32(_) | T::Decimal32(..) => {
                Width::Bytes4
            }
            T::Int64 | T::UInt64 | T::Float64 | T::Date64 | T::Time64(_) | T::Timestamp(..) => {
                Width::Bytes8
            }
            T::Duration(_) | T::Decimal64(..) => Width::Bytes8,
            T::Decimal128(..) => Width::Bytes16,
            T::Interval(IntervalUnit::YearMonth) => Width::Bytes4,
            T::Interval(IntervalUnit::DayTime) => Width::Odd(8),
            T::Interval(IntervalUnit::MonthDayNano) => Width::Odd(16),
            T::FixedSizeBinary(bytes @ 1..=16) => Width::Odd(*bytes as usize),
            _ => return None,
        };
        let floats_or_bytes = own.is_floating() || matches!(own, T::FixedSizeBinary(_));
        let signed = !own.is_unsigned_integer() && !floats_or_bytes && *own != T::Boolean;
        let drop_negative = own.is_signed_integer() && *other == T::UInt64;
        Some(Self { width, signed, drop_negative })
    }

    /// Words per value: two for more than eight bytes.
    pub(crate) fn words(&self) -> usize {
        match self.width {
            Width::Bytes16 => 2,
            Width::Odd(bytes) => bytes.div_ceil(8),
            _ => 1,
        }
    }

    /// Whether a word is a signed number, so that close numbers are close words. The second word of
    /// a wide number is its high half.
    pub(crate) fn signed(&self, word: usize) -> bool {
        self.signed && word + 1 == self.words() && !matches!(self.width, Width::Odd(_))
    }

    /// Reads one of the words of every value, including nulls.
    pub(crate) fn read(&self, array: &ArrayRef, word: usize, words: &mut Vec<u64>) {
        words.clear();
        match (self.width, self.signed) {
            (Width::Bit, _) => {
                let bits = arrow_array::cast::as_boolean_array(array).values();
                words.extend(bits.iter().map(u64::from));
            }
            (Width::Bytes1, true) => words.extend(native::<i8>(array).iter().map(|v| *v as u64)),
            (Width::Bytes1, false) => words.extend(native::<u8>(array).iter().map(|v| *v as u64)),
            (Width::Bytes2, true) => words.extend(native::<i16>(array).iter().map(|v| *v as u64)),
            (Width::Bytes2, false) => words.extend(native::<u16>(array).iter().map(|v| *v as u64)),
            (Width::Bytes4, true) => words.extend(native::<i32>(array).iter().map(|v| *v as u64)),
            (Width::Bytes4, false) => words.extend(native::<u32>(array).iter().map(|v| *v as u64)),
            (Width::Bytes8, _) => words.extend_from_slice(&native::<u64>(array)),
            (Width::Bytes16, _) => {
                words.extend(native::<i128>(array).iter().map(|v| (*v >> (64 * word)) as u64));
            }
            (Width::Odd(bytes), _) => read_odd(array, bytes, word, words),
        }
    }

    /// Borrows the words of a column, if it stores them as they are and all may match.
    pub(crate) fn borrow(&self, array: &ArrayRef) -> Option<ScalarBuffer<u64>> {
        let all = self.width == Width::Bytes8 && !self.drop_negative && array.null_count() == 0;
        all.then(|| native::<u64>(array))
    }

    /// Which values can match, if some non-null ones can't.
    pub(crate) fn matchable(&self, words: &[u64]) -> Option<BooleanBuffer> {
        let negative = |word: u64| word >> (u64::BITS - 1) != 0;
        if !self.drop_negative || !words.iter().any(|word| negative(*word)) {
            return None;
        }
        Some(BooleanBuffer::collect_bool(words.len(), |row| !negative(words[row])))
    }
}

/// The values of a primitive array as integers of their width.
fn native<T: ArrowNativeType>(array: &ArrayRef) -> ScalarBuffer<T> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn read_odd(array: &ArrayRef, bytes: usize, word: usize, words: &mut Vec<u64>) {
    let data = array.to_data();
    let all = &data.buffers()[0].as_slice()[data.offset() * bytes..][..data.len() * bytes];
    let part = word * 8..bytes.min(word * 8 + 8);
    words.extend(all.chunks_exact(bytes).map(|value| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(&value[part.clone()]);
        u64::from_le_bytes(word)
    }));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::IntervalMonthDayNano;
    use arrow_array::{
        Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Int8Array, Int64Array,
        IntervalMonthDayNanoArray, UInt8Array, UInt64Array,
    };

    use super::*;

    fn read(array: ArrayRef, other: &DataType) -> Vec<Vec<u64>> {
        let fixed = Fixed::of(array.data_type(), other).unwrap();
        let read = |word| {
            let mut words = vec![9];
            fixed.read(&array, word, &mut words);
            words
        };
        (0..fixed.words()).map(read).collect()
    }

    #[test]
    fn narrow_values_are_extended_by_their_sign() {
        let own = Arc::new(Int8Array::from(vec![-1, 5]));
        assert_eq!(read(own, &DataType::Int64), [[u64::MAX, 5]]);
        assert_eq!(read(Arc::new(UInt8Array::from(vec![255])), &DataType::Int64), [[255]]);
        let dates = Arc::new(Date32Array::from(vec![-3]));
        assert_eq!(read(dates, &DataType::Date32), [[-3_i64 as u64]]);
    }

    #[test]
    fn wide_values_are_two_words_low_half_first() {
        let decimals: ArrayRef = Arc::new(Decimal128Array::from(vec![-2, 1 << 70]));
        let other = decimals.data_type().clone();
        assert_eq!(read(decimals, &other), [[-2_i64 as u64, 0], [u64::MAX, 64]]);
        let interval = IntervalMonthDayNano::new(1, 2, 3);
        let intervals: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![interval]));
        let other = intervals.data_type().clone();
        assert_eq!(read(intervals, &other), [[1 | 2 << 32], [3]]);
    }

    #[test]
    fn bytes_of_any_length_are_padded() {
        let values = [b"0123456789a".as_slice(), b"bcdefghijkl"];
        let array = FixedSizeBinaryArray::try_from_iter(values.into_iter()).unwrap();
        let array: ArrayRef = Arc::new(array.slice(1, 1));
        let other = array.data_type().clone();
        let expected = [u64::from_le_bytes(*b"bcdefghi"), u64::from_le_bytes(*b"jkl\0\0\0\0\0")];
        assert_eq!(read(array, &other), expected.map(|word| [word]));
    }

    #[test]
    fn zeros_of_either_sign_differ_and_a_nan_is_itself() {
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.0, -0.0, f32::NAN, f32::NAN]));
        let words = &read(floats, &DataType::Float32)[0];
        assert!(words[0] != words[1] && words[2] == words[3]);
    }

    #[test]
    fn negative_keys_are_not_large_ones() {
        let fixed = Fixed::of(&DataType::Int64, &DataType::UInt64).unwrap();
        let mut words = Vec::new();
        let array: ArrayRef = Arc::new(Int64Array::from(vec![-1, i64::MAX, 0]).slice(0, 2));
        fixed.read(&array, 0, &mut words);
        assert_eq!(fixed.matchable(&words), Some(BooleanBuffer::from(vec![false, true])));
        assert_eq!(fixed.matchable(&words[1..]), None);
        let fixed = Fixed::of(&DataType::UInt64, &DataType::Int64).unwrap();
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        fixed.read(&array, 0, &mut words);
        assert_eq!((&words[..], fixed.matchable(&words)), (&[u64::MAX][..], None));
    }
}
