//! Filters have the meaning of SQL.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Int64Array, RecordBatch,
    StringArray, UInt8Array, UInt64Array,
};
use workahead_join::Side;

use super::*;

fn side(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn left() -> RecordBatch {
    let decimals = Decimal128Array::from(vec![Some(150), Some(250), None]);
    let words: DictionaryArray<Int8Type> = [Some("abc"), Some("Abd"), None].into_iter().collect();
    side(vec![
        ("id", Arc::new(Int64Array::from(vec![Some(1), Some(2), None]))),
        ("small", Arc::new(UInt8Array::from(vec![200, 100, 0]))),
        ("price", Arc::new(decimals.with_precision_and_scale(10, 2).unwrap())),
        ("word", Arc::new(words)),
        ("day", Arc::new(Date32Array::from(vec![Some(0), Some(19_723), None]))),
    ])
}

fn right() -> RecordBatch {
    side(vec![
        ("id", Arc::new(UInt64Array::from(vec![Some(1), Some(u64::MAX), Some(3)]))),
        ("share", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(2.0)]))),
        ("text", Arc::new(StringArray::from(vec![Some("abc"), Some("x%y"), None]))),
    ])
}

/// The results of a filter for three pairs of rows.
fn results(text: &str) -> Result<Vec<Option<bool>>, String> {
    let (left, right) = (left(), right());
    let filter = compile(text, &left.schema(), &right.schema()).map_err(|e| e.to_string())?;
    let columns = filter.columns.iter().map(|(side, column)| match side {
        Side::Left => left.column(*column).clone(),
        Side::Right => right.column(*column).clone(),
    });
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(3));
    let pairs =
        RecordBatch::try_new_with_options(filter.schema.clone(), columns.collect(), &options);
    let truths = filter.filter.evaluate(&pairs.unwrap()).map_err(|error| error.to_string())?;
    Ok(truths.iter().collect())
}

#[test]
fn expressions_have_the_meaning_of_sql() {
    let (t, f, n) = (Some(true), Some(false), None);
    for (text, expected) in [
        ("left.id = right.id", [t, f, n]),
        ("left.id <> right.id OR share > 1", [f, t, t]),
        ("left.id = 1 AND share = 0.5", [t, f, f]),
        ("share IS NULL", [f, t, f]),
        ("NOT (share IS NOT NULL)", [f, t, f]),
        ("small + small > 255", [t, f, f]),
        ("small - 201 < 0", [t, t, t]),
        ("-left.id < -1", [f, t, n]),
        ("price > 1.5", [f, t, n]),
        ("price * 2 = 3", [t, f, n]),
        ("price BETWEEN 1 AND 2", [t, f, n]),
        ("price NOT BETWEEN 1 AND 2", [f, t, n]),
        ("price > share", [t, n, n]),
        ("left.id % 2 = 0", [f, t, n]),
        ("left.id IN (2, 5, 7)", [f, t, n]),
        ("left.id NOT IN (2, NULL)", [n, f, n]),
        ("word = text", [t, f, n]),
        ("word LIKE 'ab_'", [t, f, n]),
        ("word ILIKE 'AB%'", [t, t, n]),
        ("word NOT LIKE '%d'", [t, f, n]),
        ("day >= '2024-01-01'", [f, t, n]),
        ("day = DATE '1970-01-01'", [t, f, n]),
        ("CAST(left.id AS VARCHAR) = '2'", [f, t, n]),
        ("TRY_CAST(text AS INT) IS NULL", [t, t, t]),
        ("left.id IS NOT DISTINCT FROM NULL", [f, f, t]),
        ("(left.id = 1) IS NOT TRUE", [f, t, t]),
        ("1 = 1", [t, t, t]),
        ("NULL", [n, n, n]),
        ("left.id > 1e0", [f, t, n]),
        ("right.id > 18446744073709551614", [f, t, f]),
        ("\"left\".\"id\" = 1", [t, f, n]),
    ] {
        assert_eq!(results(text), Ok(expected.to_vec()), "{text}");
    }
}

#[test]
fn errors_are_one_line() {
    for (text, says) in [
        ("id = 1", "both sides have a column \"id\": write left.id or right.id"),
        (
            "nothing = 1",
            "no column \"nothing\": choose from id, small, price, word, day of the left",
        ),
        ("left.share = 1", "the left side has no column \"share\": choose from id, small"),
        ("other.id = 1", "unknown side \"other\""),
        ("word = 1", "can't be compared: cast one of them"),
        ("word + 1 > 2", "no arithmetic on "),
        ("left.id", "expected Boolean, found Int64"),
        ("left.id AND true", "expected Boolean, found Int64"),
        ("left.id LIKE 'a'", "can't be compared"),
        ("day > 'yesterday'", "yesterday"),
        ("left.id = 1 1", "unexpected 1 after the expression"),
        ("left.id =", "Expected"),
        ("count(*) > 1", "count(*) is not supported"),
        ("left.id = (SELECT 1)", "is not supported"),
        ("CAST(word AS GEOMETRY) = 1", "not supported"),
        ("CAST(left.id AS DECIMAL(99, 2)) = 1", "a decimal has 1 to 38 digits"),
        ("left.id = ?", "the constant ? is not supported"),
        ("", "Expected"),
        (&"(".repeat(5000), "recursion"),
    ] {
        let error = results(text).expect_err(text);
        assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
    }
    // Errors of rows.
    assert!(results("left.id / 0 = 1").unwrap_err().contains("Divide by zero"));
    assert!(results("CAST(text AS INT) = 1").unwrap_err().contains("abc"));
}
