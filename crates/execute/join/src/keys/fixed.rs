//! Key columns of fixed width as 64-bit integers that are equal exactly when the values are.
//!
//! Signed integers are sign-extended, unsigned ones zero-extended, so that integers of different
//! widths can be compared. The one case in which that is not enough is a signed key against
//! `UInt64`: −1 and 2⁶⁴−1 have the same bits, so negative keys match nothing there. Floats are
//! their bits: Arrow's total order, in which a NaN equals the same NaN and −0.0 is not 0.0.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, ScalarBuffer};
use arrow_schema::{DataType, IntervalUnit};

/// Reads a column of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FixedWidth {
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

impl FixedWidth {
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

    /// Integers per value, its *components*: two for more than eight bytes.
    pub(crate) fn components(&self) -> usize {
        match self.width {
            Width::Bytes16 => 2,
            Width::Odd(bytes) => bytes.div_ceil(8),
            _ => 1,
        }
    }

    /// Whether a component is a signed number, so that close numbers are close integers. The second
    /// component of a wide number is its high half.
    pub(crate) fn signed(&self, component: usize) -> bool {
        self.signed && component + 1 == self.components() && !matches!(self.width, Width::Odd(_))
    }

    /// Reads a component of every value, including nulls.
    pub(crate) fn read(&self, array: &ArrayRef, component: usize, values: &mut Vec<u64>) {
        values.clear();
        match (self.width, self.signed) {
            (Width::Bit, _) => {
                let bits = arrow_array::cast::as_boolean_array(array).values();
                values.extend(bits.iter().map(u64::from));
            }
            (Width::Bytes1, true) => values.extend(native::<i8>(array).iter().map(|v| *v as u64)),
            (Width::Bytes1, false) => values.extend(native::<u8>(array).iter().map(|v| *v as u64)),
            (Width::Bytes2, true) => values.extend(native::<i16>(array).iter().map(|v| *v as u64)),
            (Width::Bytes2, false) => values.extend(native::<u16>(array).iter().map(|v| *v as u64)),
            (Width::Bytes4, true) => values.extend(native::<i32>(array).iter().map(|v| *v as u64)),
            (Width::Bytes4, false) => values.extend(native::<u32>(array).iter().map(|v| *v as u64)),
            (Width::Bytes8, _) => values.extend_from_slice(&native::<u64>(array)),
            (Width::Bytes16, _) => {
                let half = |v: &i128| (*v >> (64 * component)) as u64;
                values.extend(native::<i128>(array).iter().map(half));
            }
            (Width::Odd(bytes), _) => read_odd(array, bytes, component, values),
        }
    }

    /// Borrows a column that stores its keys as they are, if all may match.
    pub(crate) fn borrow(&self, array: &ArrayRef) -> Option<ScalarBuffer<u64>> {
        let all = self.width == Width::Bytes8 && !self.drop_negative && array.null_count() == 0;
        all.then(|| native::<u64>(array))
    }

    /// Which values can match, if some non-null ones can't.
    pub(crate) fn matchable(&self, values: &[u64]) -> Option<BooleanBuffer> {
        let negative = |value: u64| value >> (u64::BITS - 1) != 0;
        if !self.drop_negative || !values.iter().any(|value| negative(*value)) {
            return None;
        }
        Some(BooleanBuffer::collect_bool(values.len(), |row| !negative(values[row])))
    }
}

/// The values of a primitive array as integers of their width.
fn native<T: ArrowNativeType>(array: &ArrayRef) -> ScalarBuffer<T> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn read_odd(array: &ArrayRef, bytes: usize, component: usize, values: &mut Vec<u64>) {
    let data = array.to_data();
    let all = &data.buffers()[0].as_slice()[data.offset() * bytes..][..data.len() * bytes];
    let part = component * 8..bytes.min(component * 8 + 8);
    values.extend(all.chunks_exact(bytes).map(|value| {
        let mut padded = [0; 8];
        padded[..part.len()].copy_from_slice(&value[part.clone()]);
        u64::from_le_bytes(padded)
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
        let fixed = FixedWidth::of(array.data_type(), other).unwrap();
        let read = |component| {
            let mut values = vec![9];
            fixed.read(&array, component, &mut values);
            values
        };
        (0..fixed.components()).map(read).collect()
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
    fn wide_values_have_two_components_low_half_first() {
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
        assert_eq!(read(array, &other), expected.map(|value| [value]));
    }

    #[test]
    fn zeros_of_either_sign_differ_and_a_nan_is_itself() {
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.0, -0.0, f32::NAN, f32::NAN]));
        let values = &read(floats, &DataType::Float32)[0];
        assert!(values[0] != values[1] && values[2] == values[3]);
    }

    #[test]
    fn negative_keys_are_not_large_ones() {
        let fixed = FixedWidth::of(&DataType::Int64, &DataType::UInt64).unwrap();
        let mut values = Vec::new();
        let array: ArrayRef = Arc::new(Int64Array::from(vec![-1, i64::MAX, 0]).slice(0, 2));
        fixed.read(&array, 0, &mut values);
        assert_eq!(fixed.matchable(&values), Some(BooleanBuffer::from(vec![false, true])));
        assert_eq!(fixed.matchable(&values[1..]), None);
        let fixed = FixedWidth::of(&DataType::UInt64, &DataType::Int64).unwrap();
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
        fixed.read(&array, 0, &mut values);
        assert_eq!((&values[..], fixed.matchable(&values)), (&[u64::MAX][..], None));
    }
}
