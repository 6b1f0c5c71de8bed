//! The queries of a read-only attachment: one plain query, of built-in functions that only compute.
//!
//! ```text
//! text ─► no hidden text ─► sqlparser ─► one query? ─► all inside only reads? ─► written anew
//! ```
//!
//! The server is sent what the parser understood and not what it read, so that it does not matter
//! where both see a quote or a comment end.
//!
//! The server's read-only transaction refuses to change tables; it lets through what acts outside
//! of them: `COPY … TO PROGRAM`, `INTO OUTFILE`, settings, notifications, functions that open other
//! connections. These are refused here, by what is allowed and not by what is known to be wrong.
//! Functions are sent with their schema, so that none of the same name is called. This is the outer
//! one of two walls: a function that a view, a cast or an operator calls is only stopped by the
//! inner one.

mod functions;
mod quotes;

use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query,
    Select, SetExpr, Statement, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect};
use sqlparser::parser::Parser;
use workahead_workloads::session::Dialect;

/// Longer texts are data. The parser nests what a text nests, so this bounds the stack too.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// The parser tries some constructs in two ways on each level: `cast(cast(cast(…` takes it twice to
/// four times as long with each. Deeper queries are not written by hand.
const LEVELS_MAX: usize = 12;
/// Parentheses, those of each level counted three times as those of the one before: all together
/// take as long as one that has all levels.
const WORK_MAX: u64 = 1 << 20;
/// Room for an expression of as many operators as fit into [`TEXT_BYTES_MAX`].
const STACK_BYTES: usize = 512 << 20;

/// Which functions a query may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Functions {
    /// All on the list of its dialect.
    All,
    /// MariaDB's without those that MySQL lacks: there they would be a user's.
    OfMySql,
}

/// Checks a text. Returns what the server may be sent: the same query, without comments.
///
/// # Errors
/// In words, what of it may do more than read.
pub fn check(text: &str, dialect: Dialect, functions: Functions) -> Result<String, String> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("{} bytes are too many for a query: at most 64 KiB", text.len()));
    }
    let (levels, work) = parentheses(text);
    if levels > LEVELS_MAX || work > WORK_MAX {
        return Err(format!(
            "it has more than {LEVELS_MAX} levels of parentheses, or too many that lie deep: write \
             it flatter"
        ));
    }
    plain(text, dialect)?;
    // A long chain of operators is a deep tree.
    std::thread::scope(|scope| {
        let deep = std::thread::Builder::new().stack_size(STACK_BYTES);
        let checked = deep.spawn_scoped(scope, || parsed(text, dialect, functions));
        let checked = checked.map_err(|error| format!("no thread to check the query: {error}"))?;
        checked.join().unwrap_or_else(|_| Err("the query can't be parsed".to_owned()))
    })
}

/// How deep parentheses lie in each other, those in texts included, and the work of their levels.
fn parentheses(text: &str) -> (usize, u64) {
    let (mut open, mut most, mut work) = (0_usize, 0, 0_u64);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' => {
                open += 1;
                work = work.saturating_add(3_u64.saturating_pow(open as u32));
            }
            b')' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    (most, work)
}

/// Refuses what the parser and a server may not see alike.
fn plain(text: &str, dialect: Dialect) -> Result<(), String> {
    if let Some(hidden) = hidden(text, dialect) {
        return Err(format!("`{hidden}` may do more than read"));
    }
    match ambiguous(text, dialect) {
        Some(what) => Err(format!("servers do not agree on its meaning: {what}")),
        None => Ok(()),
    }
}

/// Text that a server may read where the parser sees a comment or a text in quotes.
fn hidden(text: &str, dialect: Dialect) -> Option<&'static str> {
    let words: &[&str] = match dialect {
        Dialect::MariaDb => &["/*!", "/*m!", "outfile", "dumpfile"],
        _ => &[],
    };
    let text = text.to_ascii_lowercase();
    words.iter().find(|word| text.contains(**word)).copied()
}

/// Text that the parser and a server may understand differently, by the server's settings: where
/// a text or a comment ends.
fn ambiguous(text: &str, dialect: Dialect) -> Option<&'static str> {
    if text.contains('\\') {
        return Some("a backslash");
    }
    if let Some(what) = quotes::ambiguous(text, dialect) {
        return Some(what);
    }
    if dialect != Dialect::MariaDb {
        return None;
    }
    if text.contains('"') {
        return Some("a double quote: write texts in '…' and names in `…`");
    }
    let begins = |(at, _)| !text[at + 2..].starts_with([' ', '\t', '\n', '\r']);
    let dashes = text.match_indices("--").filter(|(at, _)| text.len() > at + 2).any(begins);
    dashes.then_some("`--` without a space")
}

fn parsed(text: &str, dialect: Dialect, allowed: Functions) -> Result<String, String> {
    let grammar: &dyn Grammar = match dialect {
        Dialect::MariaDb => &MySqlDialect {},
        _ => &PostgreSqlDialect {},
    };
    let statements = Parser::parse_sql(grammar, text)
        .map_err(|error| format!("it is not a query that can be checked ({error})"))?;
    let [statement] = statements.as_slice() else {
        return Err(format!("it is {} statements: a query is one", statements.len()));
    };
    let mut functions = TableFunctions::default();
    let _ = statement.visit(&mut functions);
    let mut check = Check { dialect, allowed, statements: 0, functions: functions.0 };
    if let ControlFlow::Break(says) = statement.visit(&mut check) {
        return Err(*says);
    }
    let mut statements = statements;
    if dialect == Dialect::Postgres {
        let _ = VisitMut::visit(&mut statements, &mut Qualify);
    }
    let anew = statements.iter().map(ToString::to_string).collect::<String>();
    plain(&anew, dialect)?;
    if dialect == Dialect::Postgres
        && let Some(operator) = quotes::unknown_operator(&anew, &OPERATORS_OF_ONE)
    {
        return Err(format!("`{operator}` is not an operator of the server's own"));
    }
    match Parser::parse_sql(grammar, &anew) {
        Ok(again) if again == statements => Ok(anew),
        _ => Err("it can't be written anew: write it in another way".to_owned()),
    }
}

/// Names the server's own functions in full, so that none of the same name is taken for one. Those
/// of the grammar can't be named so, and need not.
struct Qualify;

impl Qualify {
    fn name(name: &mut ObjectName) {
        let [part] = name.0.as_slice() else { return };
        let ident = part.as_ident().map(folded);
        if ident.is_some_and(|ident| !functions::OF_GRAMMAR.contains(&ident.as_ref())) {
            name.0.insert(0, ObjectNamePart::Identifier(Ident::new("pg_catalog")));
        }
    }
}

impl VisitorMut for Qualify {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } =
            table
        {
            Self::name(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) if function.args != FunctionArguments::None => {
                Self::name(&mut function.name);
            }
            // `substring(a FROM 1)` is the server's own, `substring(a, 1)` is looked for by name.
            Expr::Substring { special, shorthand, .. } => (*special, *shorthand) = (false, false),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A function in `FROM`, with the names of its columns if they are given.
struct TableFunction {
    name: Ident,
    columns: Vec<Ident>,
}

/// All of them in a text.
#[derive(Default)]
struct TableFunctions(Vec<TableFunction>);

impl Visitor for TableFunctions {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let (own, alias) = match table {
            TableFactor::Table { name, args: Some(_), alias, .. }
            | TableFactor::Function { name, alias, .. } => (name.0.last(), alias),
            TableFactor::UNNEST { alias, .. } | TableFactor::TableFunction { alias, .. } => {
                (None, alias)
            }
            _ => return ControlFlow::Continue(()),
        };
        let name = alias.as_ref().map(|alias| alias.name.clone());
        let name = name.or_else(|| own.and_then(|part| part.as_ident().cloned()));
        // Without an alias, it is named like its function.
        let name = name.unwrap_or_else(|| Ident::new("unnest"));
        let columns = alias.iter().flat_map(|alias| &alias.columns);
        let columns = columns.map(|column| column.name.clone()).collect();
        self.0.push(TableFunction { name, columns });
        ControlFlow::Continue(())
    }
}

/// An identifier as PostgreSQL compares it: without quotes it is ASCII here.
fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_ascii_lowercase() }
}

/// Functions that are written without parentheses, in FROM too.
const BARE_FUNCTIONS: [&str; 12] = [
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "system_user",
    "user",
];

/// PostgreSQL's own operators, of those that the parser has a name for.
const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "%", "^", "||", ">", "<", ">=", "<=", "=", "<>", "AND", "OR", "#", "&",
    "|", "<<", ">>", "~", "~*", "!~", "!~*", "~~", "~~*", "!~~", "!~~*", "^@", "@>", "<@", "->",
    "->>", "#>", "#>>", "#-", "@?", "@@", "?", "?&", "?|", "&&", "<->", "&<", "&>", "##",
    "OVERLAPS",
];

/// Those that stand before one value, and signs that are not operators.
const OPERATORS_OF_ONE: [&str; 8] = ["@", "@-@", "|/", "||/", "!!", "?-", "=>", "!="];

struct Check {
    dialect: Dialect,
    allowed: Functions,
    statements: usize,
    functions: Vec<TableFunction>,
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

    /// In quotes `coalesce` is a user's function, as is every stored one of MariaDB.
    fn is_allowed(&self, function: &Ident) -> bool {
        function.quote_style.is_none()
            && functions::allowed(self.dialect, self.allowed).any(|name| self.is(function, name))
    }

    /// `a.b` is `b(a)` to PostgreSQL if `a` is a value and `b` no column of it (PostgreSQL manual,
    /// 8.16.5), as it is of a function in `FROM`.
    fn column(&self, names: &[Ident]) -> Refusal {
        let [.., of, column] = names else { return ControlFlow::Continue(()) };
        for function in &self.functions {
            let is_column = |known: &Ident| folded(known) == folded(column);
            let known = function.columns.iter().any(is_column);
            // Without an alias it has a name of the server's choice.
            let is_meant = folded(of) == folded(&function.name) || function.columns.is_empty();
            if is_meant && !known {
                let says = "may call a function: name the columns of what is in FROM, as in \
                            `f(1) AS x(a, b)`";
                return refused(format!("`{of}.{column}` {says}"));
            }
        }
        ControlFlow::Continue(())
    }

    fn is_bare_function(&self, name: &ObjectName) -> bool {
        let [part] = name.0.as_slice() else { return false };
        let ident = part.as_ident().filter(|ident| ident.quote_style.is_none());
        self.dialect == Dialect::Postgres
            && ident.is_some_and(|ident| BARE_FUNCTIONS.iter().any(|bare| self.is(ident, bare)))
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
        if !select.optimizer_hints.is_empty() {
            // They set what they like, and a server may see more in them than a hint.
            return refused("it has a hint in a comment");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Refusal {
        match table {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.function(name)
            }
            TableFactor::Table { name, .. } if self.is_bare_function(name) => {
                refused(format!("`{name}` is a function there: write it after SELECT"))
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
            // What the parser takes for a type is a value there, and may be a call.
            Expr::Convert { .. } if self.dialect == Dialect::Postgres => {
                refused("`convert` is not among the built-in functions that only compute")
            }
            Expr::BinaryOp {
                op: BinaryOperator::Custom(_) | BinaryOperator::PGCustomBinaryOperator(_),
                ..
            } => refused(format!("`{expression}` has an operator of its own")),
            Expr::BinaryOp { op, .. }
                if self.dialect == Dialect::Postgres
                    && !OPERATORS.contains(&op.to_string().as_str()) =>
            {
                refused(format!("`{op}` is not an operator of the server's own"))
            }
            Expr::CompoundFieldAccess { access_chain, .. }
                if access_chain.iter().any(|access| matches!(access, AccessExpr::Dot(_))) =>
            {
                refused(format!("`{expression}` may call a function"))
            }
            Expr::CompoundIdentifier(names) if self.dialect == Dialect::Postgres => {
                self.column(names)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests;
