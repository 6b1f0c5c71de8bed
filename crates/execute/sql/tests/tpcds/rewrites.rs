//! Texts that DataFusion can't take as DuckDB has them, and what it is given instead.

/// A part of one query's text.
struct Rewrite {
    query: usize,
    from: &'static str,
    to: &'static str,
}

/// DuckDB divides decimal numbers in floating point. DataFusion's quotient is a decimal that is cut
/// after a few places; where a query goes on to compute with it, what was cut grows.
const REWRITES: &[Rewrite] = &[
    Rewrite { query: 58, from: ")/3", to: ")/cast(3 as double)" },
    Rewrite { query: 61, from: "/cast(total AS decimal(15,4))", to: "/cast(total AS double)" },
    Rewrite { query: 66, from: "/w_warehouse_sq_ft", to: "/cast(w_warehouse_sq_ft as double)" },
];

/// The text for DataFusion.
pub(crate) fn for_datafusion(number: usize, text: &str) -> String {
    let mut text = text.to_owned();
    for rewrite in REWRITES.iter().filter(|rewrite| rewrite.query == number) {
        assert!(text.contains(rewrite.from), "q{number} has no {:?}", rewrite.from);
        text = text.replace(rewrite.from, rewrite.to);
    }
    text
}
