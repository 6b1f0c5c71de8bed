//! Dates that follow from other dates, put into the queries.
//!
//! An order's lines are shipped within 121 days and received within 30 more (TPC-H 3.0.1, clause
//! 4.2.3): `l_shipdate = o_orderdate + 1..=121`, `l_receiptdate = l_shipdate + 1..=30`. A bound on
//! one date is therefore one on the others, and a query with a bound on each side has both bounds
//! on the key by which lineitem is clustered ([`Layout::ByShipDate`](super::Layout)). SQL Server
//! derives them (`DATE_CORRELATION_OPTIMIZATION`); Chang (2013) prefers writing them out, which is
//! what is done here. Answers are the same, by the clause; rows to look at are fewer.

use std::borrow::Cow;

use super::query;

/// Query, the condition that bounds a date, and what follows from it.
const BOUNDS: [(usize, &str, &str); 7] = [
    (
        3,
        "and l_shipdate > date '1995-03-15'",
        "and l_shipdate <= date '1995-03-15' + interval '120' day
    and o_orderdate > date '1995-03-15' - interval '121' day",
    ),
    (
        4,
        "and l_commitdate < l_receiptdate",
        "and l_shipdate > date '1993-07-01'
            and l_shipdate < date '1993-07-01' + interval '3' month + interval '121' day",
    ),
    (
        5,
        "and o_orderdate < date '1994-01-01' + interval '1' year",
        "and l_shipdate > date '1994-01-01'
    and l_shipdate < date '1994-01-01' + interval '1' year + interval '121' day",
    ),
    (
        7,
        "and l_shipdate between date '1995-01-01' and date '1996-12-31'",
        "and o_orderdate >= date '1995-01-01' - interval '121' day
        and o_orderdate < date '1996-12-31'",
    ),
    (
        8,
        "and o_orderdate between date '1995-01-01' and date '1996-12-31'",
        "and l_shipdate > date '1995-01-01'
        and l_shipdate <= date '1996-12-31' + interval '121' day",
    ),
    (
        10,
        "and o_orderdate < date '1993-10-01' + interval '3' month",
        "and l_shipdate > date '1993-10-01'
    and l_shipdate < date '1993-10-01' + interval '3' month + interval '121' day",
    ),
    (
        12,
        "and l_receiptdate < date '1994-01-01' + interval '1' year",
        "and l_shipdate >= date '1994-01-01' - interval '30' day
    and l_shipdate < date '1994-01-01' + interval '1' year
    and o_orderdate >= date '1994-01-01' - interval '151' day
    and o_orderdate < date '1994-01-01' + interval '1' year",
    ),
];

/// The text of a query with the bounds that follow from its own; none for a number that no query
/// has. Most queries bound one date only, and stay as they are.
#[must_use]
pub fn correlated_query(number: usize) -> Option<Cow<'static, str>> {
    let text = query(number)?;
    let bounds = BOUNDS.iter().find(|(of, ..)| *of == number);
    Some(bounds.map_or(Cow::Borrowed(text), |(_, bound, follows)| {
        Cow::Owned(text.replacen(bound, &format!("{bound} {follows}"), 1))
    }))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Int64Type};

    use super::*;
    use crate::tpch::{Part, QUERIES, Table, Tpch};

    #[test]
    fn seven_queries_have_more_bounds_and_no_other_changes() {
        let changed: Vec<usize> = (1..=QUERIES)
            .filter(|number| correlated_query(*number).unwrap() != query(*number).unwrap())
            .collect();
        assert_eq!(changed, BOUNDS.map(|(number, ..)| number));
        for (number, bound, follows) in BOUNDS {
            let text = correlated_query(number).unwrap();
            assert_eq!(text.replacen(&format!(" {follows}"), "", 1), query(number).unwrap());
            assert_eq!(text.matches(bound).count(), 1);
        }
        assert_eq!(correlated_query(0), None);
    }

    /// The clause, on the rows that are made.
    #[test]
    fn dates_lie_as_far_apart_as_the_bounds_say() {
        let tpch = Tpch::new(0.005).unwrap();
        let mut ordered = std::collections::HashMap::new();
        for batch in tpch.batches(Table::Orders, Part::WHOLE, 8192) {
            let keys = batch["o_orderkey"].as_primitive::<Int64Type>().values().iter();
            let days = batch["o_orderdate"].as_primitive::<Date32Type>().values().iter();
            ordered.extend(keys.copied().zip(days.copied()));
        }
        let (mut shipping, mut receiving) = ((i32::MAX, 0), (i32::MAX, 0));
        let widen = |span: &mut (i32, i32), days: i32| {
            *span = (span.0.min(days), span.1.max(days));
        };
        for batch in tpch.batches(Table::LineItem, Part::WHOLE, 8192) {
            let date = |name: &str| batch[name].as_primitive::<Date32Type>();
            let keys = batch["l_orderkey"].as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let shipped = date("l_shipdate").value(row);
                widen(&mut shipping, shipped - ordered[&keys.value(row)]);
                widen(&mut receiving, date("l_receiptdate").value(row) - shipped);
            }
        }
        assert_eq!((shipping, receiving), ((1, 121), (1, 30)));
    }
}
