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
        ("left.id IN (1)", [t, f, n]),
        ("left.id + 1 IN (2, 5)", [t, f, n]),
        ("left.id + 1 NOT IN (3, NULL)", [n, f, n]),
        ("left.id + 1 BETWEEN 2 AND small - 198", [t, f, n]),
        ("(left.id + 1 = 2) IN (left.id + 2 IN (3, 7))", [t, t, n]),
        ("'1970-01-01' IN (day, '2024-01-01')", [t, f, n]),
        ("'1970-01-01' BETWEEN day AND day", [t, f, n]),
        ("left.id = 1 AND (left.id = 2 OR share > 0 OR NULL) AND true", [t, f, n]),
        ("NULL OR true AND NULL OR false", [n, n, n]),
        ("NULL OR left.id = 1 OR false", [t, n, n]),
        ("true AND left.id = 1", [t, f, n]),
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

/// Works on a thread whose stack ends soon.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let small = std::thread::Builder::new().stack_size(256 << 10);
    small.spawn(work).unwrap().join().unwrap();
}

#[test]
fn lists_and_chains_are_as_long_as_they_like() {
    const TERMS: usize = 30_000;
    let (t, f, n) = (Some(true), Some(false), None);
    let items: Vec<_> = (2..2 + TERMS).map(|item| item.to_string()).collect();
    let texts = [
        (format!("left.id IN ({})", items.join(", ")), [f, t, n]),
        (format!("left.id = 7{} OR share > 1", " OR left.id = 7".repeat(TERMS)), [f, n, t]),
        (format!("left.id <> 7{} AND share > 0", " AND left.id <> 2".repeat(TERMS)), [t, f, n]),
    ];
    on_small_stack(move || {
        for (text, expected) in texts {
            assert_eq!(results(&text), Ok(expected.to_vec()), "{}", &text[..40]);
        }
    });
}

/// Filters that nest in different ways, by as many links.
fn nested(links: usize) -> [(&'static str, String); 8] {
    let around = |open: &str, of: &str, close: &str| {
        format!("{}{of}{}", open.repeat(links), close.repeat(links))
    };
    [
        ("brackets", around("(", "left.id = 1", ")")),
        ("not", around("NOT ", "left.id = 1", "")),
        ("sum", format!("left.id{} = 1", " + 0".repeat(links))),
        ("mixed sum", format!("left.id{} = 1", " + 0.0".repeat(links))),
        ("signs", around("- ", "left.id = 1", "")),
        ("between", format!("left.id = 1{}", " BETWEEN false AND true".repeat(links))),
        ("lists", format!("left.id = 1{}", " IN (true)".repeat(links))),
        ("casts", format!("left.id{} = 1", "::BIGINT::VARCHAR".repeat(links / 2))),
    ]
}

#[test]
fn what_nests_within_the_limit_has_room() {
    for (shape, text) in nested(nesting::LEVELS_MAX - 8) {
        let results = results(&text);
        match shape {
            // Decimals grow by a digit at each sum, or a text is not a number.
            "mixed sum" | "casts" => drop(results),
            "signs" | "brackets" | "not" | "sum" | "lists" => {
                assert_eq!(results, Ok(vec![Some(true), Some(false), None]), "{shape}");
            }
            _ => assert_eq!(results, Ok(vec![Some(true), Some(true), None]), "{shape}"),
        }
    }
}

#[test]
fn what_nests_deeper_is_refused() {
    on_small_stack(|| {
        let depths = [nesting::LEVELS_MAX + 2, 20_000];
        let deep = depths.into_iter().flat_map(nested);
        // Syntax that no filter has, and the parser recurses over.
        let around = |open: &str, of: &str, close: &str| {
            format!("{}{of}{}", open.repeat(10_000), close.repeat(10_000))
        };
        let others = [
            ("calls", around("f(", "1", ")")),
            ("cast calls", around("CAST(", "1", " AS INT)")),
            ("angles", format!("CAST(1 AS {})", around("ARRAY<", "INT", ">"))),
            ("types", format!("CAST(1 AS {})", around("Nullable(", "INT", ")"))),
            ("arrays", format!("1::INT{}", "[]".repeat(10_000))),
            ("intervals", format!("{}'1' DAY", "INTERVAL ".repeat(10_000))),
            ("subscripts", format!("word{}", "[1]".repeat(10_000))),
        ];
        for (shape, text) in deep.chain(others) {
            let error = results(&text).expect_err(shape);
            let says = "it nests deeper than 128 levels: only chains of AND or OR and lists of IN";
            assert!(error.contains(says), "{shape}: {error}");
            assert!(error.len() < 1_000 && !error.contains('\n'), "{shape}: {error}");
        }
    });
}

#[test]
fn a_wrong_text_takes_no_time_without_end() {
    // It is tried as SQL's POSITION and as a call, at each level.
    let text = format!("{}left.id = 1 1{}", "POSITION(".repeat(40), ")".repeat(40));
    let error = results(&text).unwrap_err();
    assert!(error.contains("can't be read within 10 s"), "{error}");
}

#[test]
fn unsupported_expressions_may_nest_too() {
    on_small_stack(|| {
        for text in [
            format!("f(left.id = 1{})", " OR left.id = 1".repeat(10_000)),
            format!("left.id IN (SELECT 1{})", " UNION SELECT 1".repeat(10_000)),
            format!("word{} = 'a'", " || word".repeat(10_000)),
        ] {
            let error = results(&text).unwrap_err();
            assert!(error.contains("is not supported; use "), "{error}");
            assert!(error.len() < 1_000, "{error}");
        }
    });
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
        (&"(".repeat(5000), "it nests deeper than 128 levels"),
    ] {
        let error = results(text).expect_err(text);
        assert!(error.contains(says) && !error.contains('\n'), "{text}: {error}");
    }
    // Errors of rows.
    assert!(results("left.id / 0 = 1").unwrap_err().contains("Divide by zero"));
    assert!(results("CAST(text AS INT) = 1").unwrap_err().contains("abc"));
}
