//! The benchmark's 22 queries, with the values by which results are validated.
//!
//! They are those of clauses 2.4.1 to 2.4.22 of the TPC Benchmark H Standard Specification,
//! Revision 3.0.1 (2022), © Transaction Processing Performance Council, copied by permission of
//! the TPC. The view of Q15 is a common table expression. Q11's fraction is that of scale 1 at
//! every scale. The text is plain SQL: engines that take TPC-H take it as it is.

/// How many there are.
pub const QUERIES: usize = TEXTS.len();

/// The text of a query, by its number from 1; none for a number that no query has.
#[must_use]
pub fn query(number: usize) -> Option<&'static str> {
    TEXTS.get(number.checked_sub(1)?).copied()
}

const TEXTS: [&str; 22] = [
    include_str!("queries/q01.sql"),
    include_str!("queries/q02.sql"),
    include_str!("queries/q03.sql"),
    include_str!("queries/q04.sql"),
    include_str!("queries/q05.sql"),
    include_str!("queries/q06.sql"),
    include_str!("queries/q07.sql"),
    include_str!("queries/q08.sql"),
    include_str!("queries/q09.sql"),
    include_str!("queries/q10.sql"),
    include_str!("queries/q11.sql"),
    include_str!("queries/q12.sql"),
    include_str!("queries/q13.sql"),
    include_str!("queries/q14.sql"),
    include_str!("queries/q15.sql"),
    include_str!("queries/q16.sql"),
    include_str!("queries/q17.sql"),
    include_str!("queries/q18.sql"),
    include_str!("queries/q19.sql"),
    include_str!("queries/q20.sql"),
    include_str!("queries/q21.sql"),
    include_str!("queries/q22.sql"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpch::Table;

    #[test]
    fn every_number_has_a_text_that_reads_a_table() {
        assert_eq!((query(0), query(QUERIES + 1)), (None, None));
        for number in 1..=QUERIES {
            let text = query(number).expect("a query");
            assert!(text.starts_with("select") || text.starts_with("with"), "{number}");
            assert!(Table::ALL.iter().any(|table| text.contains(table.name())), "{number}");
            assert!(!text.contains(';'), "one statement");
        }
    }
}
