//! What a read-only attachment runs: one plain query, of built-in functions that only compute.
//!
//! ```text
//! text ─► no hidden text ─► sqlparser ─► one query? ─► all inside only reads? ─► the server
//! ```
//!
//! The server's read-only transaction refuses to change tables; it lets through what acts outside
//! of them: `COPY … TO PROGRAM`, `INTO OUTFILE`, settings, notifications, functions that open other
//! connections. These are refused here, by what is allowed and not by what is known to be wrong.
//! This is the outer one of two walls: a function that takes the name of a built-in one, or that a
//! view or an operator calls, is only stopped by the inner one.

mod functions;

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Visit,
    Visitor,
};
use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;
use workahead_workloads::session::Dialect;

/// Longer texts are data. The parser nests what a text nests, so this bounds the stack too.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Room for an expression of as many operators as fit into [`TEXT_BYTES_MAX`].
const STACK_BYTES: usize = 512 << 20;

/// Checks a text.
///
/// # Errors
/// In words, what of it may do more than read.
pub(super) fn check(text: &str, dialect: Dialect) -> Result<(), String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("{} bytes are too many for a query: at most 64 KiB", text.len()));
    }
    if let Some(hidden) = hidden(text, dialect) {
        return Err(format!("`{hidden}` may do more than read"));
    }
    // A long chain of operators is a deep tree.
    std::thread::scope(|scope| {
        let deep = std::thread::Builder::new().stack_size(STACK_BYTES);
        let checked = deep.spawn_scoped(scope, || parsed(text, dialect));
        let checked = checked.map_err(|error| format!("no thread to check the query: {error}"))?;
        checked.join().unwrap_or_else(|_| Err("the query can't be parsed".to_owned()))
    })
}

/// What a server may read where the parser sees a comment or a text in quotes.
fn hidden(text: &str, dialect: Dialect) -> Option<&'static str> {
    let words: &[&str] = match dialect {
        Dialect::MariaDb => &["/*!", "/*m!", "outfile", "dumpfile"],
        _ => &[],
    };
    let text = text.to_ascii_lowercase();
    words.iter().find(|word| text.contains(**word)).copied()
}

fn parsed(text: &str, dialect: Dialect) -> Result<(), String> {
    let grammar: &dyn Grammar = match dialect {
        Dialect::MariaDb => &MySqlDialect {},
        _ => &PostgreSqlDialect {},
    };
    let statements = Parser::parse_sql(grammar, text)
        .map_err(|error| format!("it is not a query that can be checked ({error})"))?;
    let [statement] = statements.as_slice() else {
        return Err(format!("it is {} statements: a query is one", statements.len()));
    };
    let mut check = Check { dialect, statements: 0 };
    match statement.visit(&mut check) {
        ControlFlow::Break(says) => Err(*says),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Check {
    dialect: Dialect,
    statements: usize,
}

/// Boxed, for the parser's sake: its frames hold it.
type Refusal = ControlFlow<Box<String>>;

fn refused(says: impl Into<String>) -> Refusal {
    ControlFlow::Break(Box::new(says.into()))
}

impl Check {
    fn function(&self, name: &ObjectName) -> Refusal {
        let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
        let allowed = match parts.as_deref() {
            Some([function]) => self.is_allowed(function),
            Some([schema, function]) if self.dialect == Dialect::Postgres => {
                self.is(schema, "pg_catalog") && self.is_allowed(function)
            }
            _ => false,
        };
        if allowed {
            return ControlFlow::Continue(());
        }
        refused(format!("`{name}` is not among the built-in functions that only compute"))
    }

    fn is_allowed(&self, function: &Ident) -> bool {
        functions::ALLOWED.iter().any(|name| self.is(function, name))
    }

    /// Whether an identifier is this one, which is in small letters.
    fn is(&self, given: &Ident, name: &str) -> bool {
        // PostgreSQL knows capitals within quotes.
        let exact = given.quote_style.is_some() && self.dialect == Dialect::Postgres;
        if exact { given.value == name } else { given.value.eq_ignore_ascii_case(name) }
    }
}

/// Whether a query, with the queries that it is set together of, reads.
fn reads(body: &SetExpr) -> bool {
    match body {
        SetExpr::SetOperation { left, right, .. } => reads(left) && reads(right),
        // Those below are visited too.
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) | SetExpr::Table(_) => true,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => false,
    }
}

impl Visitor for Check {
    type Break = Box<String>;

    fn pre_visit_statement(&mut self, statement: &Statement) -> Refusal {
        self.statements += 1;
        if self.statements == 1 && matches!(statement, Statement::Query(_)) {
            return ControlFlow::Continue(());
        }
        let text = statement.to_string();
        let word = text.split_whitespace().next().unwrap_or_default();
        refused(format!("`{word}` is not a query"))
    }

    fn pre_visit_query(&mut self, query: &Query) -> Refusal {
        if !reads(&query.body) {
            return refused("a part of it changes rows");
        }
        if !query.locks.is_empty() {
            return refused("it locks the rows that it reads");
        }
        let more = query.settings.is_some()
            || query.format_clause.is_some()
            || query.for_clause.is_some()
            || !query.pipe_operators.is_empty();
        if more { refused("it is more than a query") } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_select(&mut self, select: &Select) -> Refusal {
        if select.into.is_some() {
            return refused("`INTO` puts its rows somewhere");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Refusal {
        match table {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.function(name)
            }
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::TableFunction { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            other => refused(format!("`{other}` is not a table or a query")),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> Refusal {
        match expression {
            Expr::Function(function) => self.function(&function.name),
            Expr::BinaryOp {
                op: BinaryOperator::Custom(_) | BinaryOperator::PGCustomBinaryOperator(_),
                ..
            } => refused(format!("`{expression}` has an operator of its own")),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests;
