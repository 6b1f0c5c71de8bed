//! `--filter EXPR`: a further condition on pairs whose keys are equal, in SQL.
//!
//! ```text
//! text ──sqlparser──► syntax ──names, types──► Typed ──Arrow's kernels──► true, false or null
//! ```
//!
//! What can't be is said before a row is read: a column that is not there, types that do not go
//! together. As the `ON` clause of an outer join it decides what is a match, not what comes out.

mod evaluated;
mod names;
mod syntax;
mod typed;
mod types;

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use workahead_join::{Filter, ResidualPredicate};

use crate::errors::WrongUse;
use names::Names;
use typed::Typed;

/// The filter that a text describes, of inputs with these columns.
pub(crate) fn compiled(text: &str, left: &Schema, right: &Schema) -> anyhow::Result<Filter> {
    let wrong = |why: String| WrongUse::error(format!("--filter {text:?}: {why}"));
    let mut names = Names::new(left, right);
    let syntax = syntax::parsed(text).map_err(wrong)?;
    let condition = syntax::typed(&syntax, &mut names)
        .and_then(|typed| typed.of_type(&DataType::Boolean))
        .map_err(wrong)?;
    let (columns, fields) = names.used();
    let filter = Arc::new(Condition { text: text.to_owned(), condition });
    Ok(Filter { columns, schema: Arc::new(Schema::new(fields)), filter })
}

struct Condition {
    text: String,
    condition: Typed,
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
