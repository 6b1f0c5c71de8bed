//! The order of rows, as a query's text states it.

use datafusion::sql::sqlparser::ast::{Expr, OrderByKind, Statement, Value};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// The columns of the answer that a query orders by, up to the first key that is none of them.
pub(crate) fn columns(query: &str, names: &[&str]) -> Vec<usize> {
    let parsed = Parser::parse_sql(&GenericDialect {}, query).expect("SQL");
    let Some(Statement::Query(query)) = parsed.first() else { panic!("not a query: {query}") };
    let Some(order) = &query.order_by else { return Vec::new() };
    let OrderByKind::Expressions(expressions) = &order.kind else { return Vec::new() };
    expressions.iter().map_while(|by| column(&by.expr, names)).collect()
}

fn column(by: &Expr, names: &[&str]) -> Option<usize> {
    let named = |name: &str| names.iter().position(|column| column.eq_ignore_ascii_case(name));
    match by {
        Expr::Identifier(name) => named(&name.value),
        Expr::CompoundIdentifier(path) => named(&path.last()?.value),
        Expr::Value(value) => match &value.value {
            // The first is 1.
            Value::Number(place, _) => place.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn columns_are_found_by_name_and_by_place() {
    let query = "select t.a, sum(b) as c, d from t group by 1, d order by 3, t.a desc, C, b, d";
    assert_eq!(columns(query, &["a", "c", "d"]), [2, 0, 1]);
    assert!(columns("select a from t", &["a"]).is_empty());
}
