//! `--filter EXPR`: a further condition on rows with equal keys, in SQL.
//!
//! ```text
//! text ──sqlparser──► syntax ──names, types──► TypedExpression ──kernels──► true, false or null
//! ```
//!
//! Unknown columns and types that do not fit are errors before a row is read. Like the `ON` clause
//! of an outer join, the condition decides what matches, and not which rows are returned.

mod column_resolver;
mod evaluation;
mod syntax;
mod typed_expression;
mod types;

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use workahead_join::{Filter, ResidualPredicate};

use crate::errors::WrongUse;
use column_resolver::ColumnResolver;
use typed_expression::TypedExpression;

/// Compiles a filter over inputs with these columns.
pub(crate) fn compile(text: &str, left: &Schema, right: &Schema) -> anyhow::Result<Filter> {
    let wrong = |why: String| WrongUse::error(format!("--filter {text:?}: {why}"));
    let mut names = ColumnResolver::new(left, right);
    let syntax = syntax::parse(text).map_err(wrong)?;
    let condition = syntax::resolve(&syntax, &mut names)
        .and_then(|typed| typed.of_type(&DataType::Boolean))
        .map_err(wrong)?;
    let (columns, fields) = names.used();
    let filter = Arc::new(Condition { text: text.to_owned(), condition });
    Ok(Filter { columns, schema: Arc::new(Schema::new(fields)), filter })
}

struct Condition {
    text: String,
    condition: TypedExpression,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl ResidualPredicate for Condition {
    fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        self.condition.truth(rows)
    }
}

#[cfg(test)]
mod tests;
