//! Common types of two values, and the types of SQL in Arrow.

use arrow_schema::{DataType, TimeUnit};
use sqlparser::ast::{self, ExactNumberInfo};

/// Digits of a 64-bit integer, and of the wider decimals.
const INT64_DIGITS: u8 = 20;
const DECIMAL128_DIGITS: u8 = 38;
const DECIMAL256_DIGITS: u8 = 76;

/// The type both can be compared in.
pub(super) fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Date32, Date64, Dictionary, FixedSizeBinary, LargeBinary, LargeUtf8,
        Null, Timestamp, Utf8, Utf8View,
    };
    Some(match (a, b) {
        (a, b) if a == b && !matches!(a, Dictionary(..)) => a.clone(),
        (Null, other) | (other, Null) => other.clone(),
        (Dictionary(_, values), other) | (other, Dictionary(_, values)) => common(values, other)?,
        (Utf8View, Utf8 | LargeUtf8) | (Utf8 | LargeUtf8, Utf8View) => Utf8View,
        (Utf8, LargeUtf8) | (LargeUtf8, Utf8) => LargeUtf8,
        (BinaryView, Binary | LargeBinary | FixedSizeBinary(_))
        | (Binary | LargeBinary | FixedSizeBinary(_), BinaryView) => BinaryView,
        (Binary | FixedSizeBinary(_), LargeBinary) | (LargeBinary, Binary | FixedSizeBinary(_)) => {
            LargeBinary
        }
        (Binary, FixedSizeBinary(_)) | (FixedSizeBinary(_), Binary) => Binary,
        (Date32, Date64) | (Date64, Date32) => Date64,
        (Date32 | Date64, Timestamp(unit, zone)) | (Timestamp(unit, zone), Date32 | Date64) => {
            Timestamp(*unit, zone.clone())
        }
        (Timestamp(_, a), Timestamp(_, b)) if a == b => Timestamp(TimeUnit::Nanosecond, a.clone()),
        (a, b) if a.is_numeric() && b.is_numeric() => number(a, b),
        _ => return None,
    })
}

/// A type that has the values of both.
fn number(a: &DataType, b: &DataType) -> DataType {
    if a.is_floating() || b.is_floating() {
        return DataType::Float64;
    }
    if a.is_integer() && b.is_integer() {
        return match (a.is_signed_integer(), b.is_signed_integer()) {
            (true, true) => DataType::Int64,
            (false, false) => DataType::UInt64,
            _ if matches!(a, DataType::UInt64) || matches!(b, DataType::UInt64) => {
                DataType::Decimal128(INT64_DIGITS, 0)
            }
            _ => DataType::Int64,
        };
    }
    let digits = [a, b].map(|side| match side {
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => (i16::from(*digits), *scale),
        _ => (i16::from(INT64_DIGITS), 0),
    });
    let scale = digits[0].1.max(digits[1].1);
    let whole = digits.map(|(digits, scale)| digits - i16::from(scale));
    let wanted = whole[0].max(whole[1]) + i16::from(scale);
    let wide = |side: &DataType| matches!(side, DataType::Decimal256(..));
    if wide(a) || wide(b) || wanted > i16::from(DECIMAL128_DIGITS) {
        let digits = wanted.clamp(1, i16::from(DECIMAL256_DIGITS));
        DataType::Decimal256(digits as u8, scale)
    } else {
        DataType::Decimal128(wanted.max(1) as u8, scale)
    }
}

/// The type to calculate in: narrow integers would overflow.
pub(super) fn arithmetic(a: &DataType, b: &DataType) -> Option<DataType> {
    let common = common(a, b)?;
    Some(match common {
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => DataType::Int64,
        DataType::Float16 | DataType::Float32 => DataType::Float64,
        DataType::Null => DataType::Int64,
        other if other.is_numeric() => other,
        _ => return None,
    })
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The type behind a dictionary.
pub(super) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        other => other,
    }
}

/// A type of SQL in Arrow.
pub(super) fn named(sql: &ast::DataType) -> Result<DataType, String> {
    use ast::DataType as Sql;
    Ok(match sql {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) => DataType::Int8,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) | Sql::Int64 => DataType::Int64,
        Sql::TinyIntUnsigned(_) => DataType::UInt8,
        Sql::SmallIntUnsigned(_) => DataType::UInt16,
        Sql::IntUnsigned(_) | Sql::IntegerUnsigned(_) => DataType::UInt32,
        Sql::BigIntUnsigned(_) | Sql::UBigInt | Sql::UInt64 => DataType::UInt64,
        Sql::Real | Sql::Float4 => DataType::Float32,
        Sql::Float(_) | Sql::Double(_) | Sql::DoublePrecision | Sql::Float8 | Sql::Float64 => {
            DataType::Float64
        }
        Sql::Decimal(digits) | Sql::Numeric(digits) => decimal(digits)?,
        Sql::Varchar(_) | Sql::Char(_) | Sql::Text | Sql::String(_) => DataType::Utf8,
        Sql::Bytea | Sql::Blob(_) => DataType::Binary,
        Sql::Date => DataType::Date32,
        Sql::Timestamp(_, ast::TimezoneInfo::None) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        other => return Err(format!("the type {other} is not supported")),
    })
}

fn decimal(digits: &ExactNumberInfo) -> Result<DataType, String> {
    let (digits, scale) = match digits {
        ExactNumberInfo::None => (u64::from(DECIMAL128_DIGITS), 10),
        ExactNumberInfo::Precision(digits) => (*digits, 0),
        ExactNumberInfo::PrecisionAndScale(digits, scale) => (*digits, *scale),
    };
    let fits = (1..=u64::from(DECIMAL128_DIGITS)).contains(&digits);
    match i8::try_from(scale).ok().filter(|scale| fits && (0..=digits as i8).contains(scale)) {
        Some(scale) => Ok(DataType::Decimal128(digits as u8, scale)),
        None => Err(format!(
            "a decimal has 1 to {DECIMAL128_DIGITS} digits, and its scale at most as many"
        )),
    }
}
