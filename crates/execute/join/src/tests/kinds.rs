//! A few values of every key type.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Int16Builder, LargeListBuilder, ListBuilder, StringBuilder,
};
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, IntervalDayTime, IntervalMonthDayNano, UInt16Type,
};
use arrow_array::*;
use arrow_buffer::{ArrowNativeType, i256};
use arrow_schema::{DataType, Field};
use arrow_select::take::take;

/// Number of values of a type; those of one family may be equal.
pub(super) const VALUES: usize = 10;

/// Types that can be compared with each other.
pub(super) const FAMILIES: [&[&str]; 23] = [
    &["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"],
    &["i64", "u64", "d8 i64"],
    &["utf8", "large utf8", "utf8 view", "d8 utf8", "d16 large utf8"],
    &["utf8", "utf8 view"],
    &["binary", "large binary", "binary view"],
    &["f16"],
    &["f32"],
    &["f64", "d8 f64"],
    &["bool"],
    &["date32"],
    &["date64"],
    &["time64"],
    &["timestamp"],
    &["timestamp utc", "timestamp paris"],
    &["duration"],
    &["interval dt", "interval dt"],
    &["interval mdn"],
    &["decimal64", "decimal64 9"],
    &["decimal128", "decimal128 20"],
    &["decimal256"],
    &["fixed 3", "fixed 3"],
    &["fixed 20"],
    &["list", "list"],
];

/// Nested types and those with few values, each only comparable with itself.
pub(super) const SINGLES: [&str; 5] = ["fixed 16", "large list", "fixed list", "struct", "null"];

fn text(at: usize) -> &'static str {
    [
        "",
        "\0",
        "a",
        "four",
        "seven b",
        "eight by",
        "exactly fifteen",
        "exactly sixteen!",
        "a text of more than sixteen",
        "a text of more than sixteen bytes",
    ][at]
}

/// Numbers near zero, and one that only wide types can hold.
pub(super) fn number(at: usize) -> i128 {
    [-3, -2, -1, 0, 1, 2, 3, 100, i64::MAX as i128, u64::MAX as i128][at]
}

fn float(at: usize) -> f64 {
    let nan = f64::from_bits(f64::NAN.to_bits() | 1);
    [0.0, -0.0, f64::NAN, nan, 1.5, -1.5, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 3.0][at]
}

fn all<T>(value: impl Fn(usize) -> T) -> Vec<T> {
    (0..VALUES).map(value).collect()
}

/// Numbers that a type can't hold become null.
fn numbers<T: TryFrom<i128>>() -> Vec<Option<T>> {
    all(|at| number(at).try_into().ok())
}

/// Small numbers for types without a range of their own.
fn small(at: usize) -> i64 {
    at as i64 - 4
}

/// The values of a type, all distinct.
pub(super) fn pool(kind: &str) -> ArrayRef {
    match kind {
        "i8" => Arc::new(Int8Array::from(numbers())),
        "i16" => Arc::new(Int16Array::from(numbers())),
        "i32" => Arc::new(Int32Array::from(numbers())),
        "i64" => Arc::new(Int64Array::from(numbers())),
        "u8" => Arc::new(UInt8Array::from(numbers())),
        "u16" => Arc::new(UInt16Array::from(numbers())),
        "u32" => Arc::new(UInt32Array::from(numbers())),
        "u64" => Arc::new(UInt64Array::from(numbers())),
        "utf8" => Arc::new(StringArray::from(all(text))),
        "large utf8" => Arc::new(LargeStringArray::from(all(text))),
        "utf8 view" => Arc::new(StringViewArray::from(all(text))),
        "binary" => Arc::new(BinaryArray::from_iter_values(all(text))),
        "large binary" => Arc::new(LargeBinaryArray::from_iter_values(all(text))),
        "binary view" => Arc::new(BinaryViewArray::from_iter_values(all(text))),
        "f16" => Arc::new(Float16Array::from_iter_values(all(|at| {
            <arrow_array::types::Float16Type as ArrowPrimitiveType>::Native::from_bits(
                [0, 0x8000, 0x7e00, 0x7e01, 0x3c00, 0xbc00, 0x7c00, 1, 2, 3][at],
            )
        }))),
        "f32" => Arc::new(Float32Array::from(all(|at| match at {
            3 => f32::from_bits(f32::NAN.to_bits() | 1),
            7 => f32::MAX,
            8 => f32::MIN_POSITIVE,
            _ => float(at) as f32,
        }))),
        "f64" => Arc::new(Float64Array::from(all(float))),
        "bool" => Arc::new(BooleanArray::from(all(|at| (at < 2).then_some(at == 0)))),
        "date32" => Arc::new(Date32Array::from(all(|at| small(at) as i32))),
        "date64" => Arc::new(Date64Array::from(all(small))),
        "time64" => Arc::new(Time64NanosecondArray::from(all(small))),
        "timestamp" => Arc::new(TimestampMicrosecondArray::from(all(small))),
        "timestamp utc" => Arc::new(TimestampSecondArray::from(all(small)).with_timezone("+00:00")),
        "timestamp paris" => {
            Arc::new(TimestampSecondArray::from(all(small)).with_timezone("+02:00"))
        }
        "duration" => Arc::new(DurationMillisecondArray::from(all(small))),
        "interval dt" => Arc::new(IntervalDayTimeArray::from(all(|at| {
            IntervalDayTime::new(small(at) as i32 / 3, small(at) as i32)
        }))),
        "interval mdn" => Arc::new(IntervalMonthDayNanoArray::from(all(|at| {
            IntervalMonthDayNano::new(at as i32 / 4, at as i32 % 2, small(at))
        }))),
        "decimal64" => decimal(Decimal64Array::from(all(small)).with_precision_and_scale(18, 2)),
        "decimal64 9" => decimal(Decimal64Array::from(all(small)).with_precision_and_scale(9, 2)),
        "decimal128" => {
            let values = all(|at| i128::from(small(at)) << 60);
            decimal(Decimal128Array::from(values).with_precision_and_scale(38, 2))
        }
        "decimal128 20" => {
            let values = all(|at| i128::from(small(at)) << 60);
            decimal(Decimal128Array::from(values).with_precision_and_scale(20, 2))
        }
        "decimal256" => {
            let values = all(|at| i256::from_i128(i128::from(small(at)) << 100));
            decimal(Decimal256Array::from(values).with_precision_and_scale(76, 2))
        }
        "fixed 3" => fixed(3),
        "fixed 16" => fixed(16),
        "fixed 20" => fixed(20),
        "d8 i64" => dictionary::<Int8Type>("i64"),
        "d8 f64" => dictionary::<Int8Type>("f64"),
        "d8 utf8" => dictionary::<Int8Type>("utf8"),
        "d16 large utf8" => dictionary::<UInt16Type>("large utf8"),
        nested => nested_pool(nested),
    }
}

fn decimal<T: Array + 'static>(array: Result<T, arrow_schema::ArrowError>) -> ArrayRef {
    Arc::new(array.unwrap())
}

fn fixed(bytes: usize) -> ArrayRef {
    let value = |at: usize| (0..bytes).map(|byte| (byte * at) as u8).collect::<Vec<_>>();
    Arc::new(FixedSizeBinaryArray::try_from_iter(all(value).into_iter()).unwrap())
}

/// The values in another order, one of them null, one twice.
fn dictionary<K: ArrowDictionaryKeyType>(values: &str) -> ArrayRef {
    let order: Vec<_> = (0..VALUES as u32).rev().map(Some).chain([None, Some(2)]).collect();
    let values = take(&pool(values), &UInt32Array::from(order), None).unwrap();
    let keys = all(|at| match at {
        2 => VALUES + 1,
        5 => VALUES,
        _ => VALUES - 1 - at,
    });
    let keys = keys.into_iter().map(|key| K::Native::from_usize(key).unwrap());
    Arc::new(DictionaryArray::new(PrimitiveArray::<K>::from_iter_values(keys), values))
}

fn nested_pool(kind: &str) -> ArrayRef {
    macro_rules! list {
        ($builder:expr) => {{
            let mut list = $builder;
            for at in 0..VALUES {
                // Items are absent, null, or numbers.
                for item in 0..at % 5 {
                    list.values().append_option((item != at / 5).then_some(item as i16));
                }
                list.append(true);
            }
            Arc::new(list.finish())
        }};
    }
    match kind {
        // At most four items: the ninth value would repeat the fourth.
        "list" => list!(ListBuilder::new(Int16Builder::new())),
        "large list" => list!(LargeListBuilder::new(Int16Builder::new())),
        "fixed list" => {
            let mut list = FixedSizeListBuilder::new(StringBuilder::new(), 2);
            for at in 0..VALUES {
                list.values().append_value(text(at));
                list.values().append_option((at > 4).then(|| text(at / 2)));
                list.append(true);
            }
            Arc::new(list.finish())
        }
        "struct" => {
            let number = Arc::new(Int32Array::from(all(|at| (at > 1).then_some(at as i32 / 2))));
            let word: ArrayRef = Arc::new(StringViewArray::from(all(text)));
            Arc::new(StructArray::from(vec![
                (Arc::new(Field::new("number", DataType::Int32, true)), number as ArrayRef),
                (Arc::new(Field::new("word", DataType::Utf8View, true)), word),
            ]))
        }
        "null" => Arc::new(NullArray::new(VALUES)),
        other => panic!("no kind {other}"),
    }
}

/// The identity of a value, or null: equal numbers of a family are equal values.
pub(super) fn identity(kind: &str, at: usize) -> Option<i128> {
    let (dictionary, kind) = match kind.split_once(' ') {
        Some(("d8" | "d16", values)) => (true, values),
        _ => (false, kind),
    };
    let held = |types: &[(&str, i128, i128)]| {
        let range = types.iter().find(|range| range.0 == kind);
        range.map(|(_, low, high)| (*low..=*high).contains(&number(at)).then(|| number(at)))
    };
    let numbers = held(&[
        ("i8", i8::MIN.into(), i8::MAX.into()),
        ("i16", i16::MIN.into(), i16::MAX.into()),
        ("i32", i32::MIN.into(), i32::MAX.into()),
        ("i64", i64::MIN.into(), i64::MAX.into()),
        ("u8", 0, u8::MAX.into()),
        ("u16", 0, u16::MAX.into()),
        ("u32", 0, u32::MAX.into()),
        ("u64", 0, u64::MAX.into()),
    ]);
    match (kind, at) {
        _ if dictionary && at == 5 => None,
        ("null", _) => None,
        ("bool", _) => (at < 2).then_some(at as i128),
        // The sixth list is empty like the first.
        ("list" | "large list", 5) => Some(0),
        _ => numbers.unwrap_or(Some(at as i128)),
    }
}
