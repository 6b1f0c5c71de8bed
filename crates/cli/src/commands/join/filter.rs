//! `--filter EXPR`: a further condition on rows with equal keys, in SQL.
//!
//! ```text
//! text ──sqlparser──► syntax ──names, types──► TypedExpression ──kernels──► true, false or null
//! ```
//!
//! Chains of `AND` or `OR` and lists of `IN` are as long as they like; other nesting is bounded.
//!
//! Unknown columns and types that do not fit are errors before a row is read. Like the `ON` clause
//! of an outer join, the condition decides what matches, and not which rows are returned.

mod column_resolver;
mod evaluation;
mod nesting;
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

/// Characters of a filter that an error shows: enough to know it by, in one line.
const SHOWN_CHARACTERS: usize = 200;

/// Compiles a filter over inputs with these columns.
pub(crate) fn compile(text: &str, left: &Schema, right: &Schema) -> anyhow::Result<Filter> {
    let wrong = |why: String| WrongUse::error(format!("--filter {}: {why}", shown(text)));
    let (owned, left, right) = (text.to_owned(), left.clone(), right.clone());
    let read = nesting::on_deep_stack(text, move || {
        let mut names = ColumnResolver::new(&left, &right);
        let syntax = syntax::parse(&owned)?;
        let condition = syntax::resolve(&syntax, &mut names)?.of_type(&DataType::Boolean)?;
        Ok((condition, names.used()))
    });
    let (condition, (columns, fields)) = read.map_err(wrong)?;
    let filter = Arc::new(Condition { text: text.to_owned(), condition });
    Ok(Filter { columns, schema: Arc::new(Schema::new(fields)), filter })
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
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
