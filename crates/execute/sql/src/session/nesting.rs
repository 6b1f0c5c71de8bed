//! How deep a statement nests: planning, optimising and evaluating one recurse level by level, on a
//! stack that ends.

use std::ops::ControlFlow;
use std::thread::JoinHandle;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::sql::parser::{CopyToSource, CreateExternalTable, DFParser, Statement};
use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, TableFactor, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use tokio::sync::oneshot;

use super::STACK_BYTES;

/// Statements that nest deeper are refused. Each level takes at most 30 KiB of stack.
const LEVELS_MAX: usize = 500;
/// Brackets that may be open at a place: DataFusion's parser takes expressions of 50 levels, and up
/// to 35 KiB of stack for a level of a type.
const OPEN_MAX: usize = 128;
/// Sets that a `CUBE` makes are two to the power of this at most.
const CUBE_MAX: usize = 12;
/// Room that a text's own length may take on the stack while its parsed form is dropped: two bytes
/// of text are a level at most.
const STACK_BYTES_A_BYTE: usize = 256;

/// A text that is being parsed, on a thread of its own: its stack is as deep as the text needs, and
/// nobody has to wait for its end.
pub(super) struct Parsing {
    thread: JoinHandle<Result<Vec<Statement>>>,
    done: oneshot::Receiver<()>,
}

/// Begins to parse a text.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn parse(sql: String) -> Result<Parsing> {
    let deep = STACK_BYTES.saturating_add(sql.len().saturating_mul(STACK_BYTES_A_BYTE));
    let (done, waits) = oneshot::channel();
    let thread = std::thread::Builder::new().stack_size(deep).spawn(move || {
        // Dropped at the end, also by a panic.
        let _done: oneshot::Sender<()> = done;
        check_words(&sql)?;
        let statements = DFParser::parse_sql(&sql)?;
        statements.iter().try_for_each(check)?;
        Ok(Vec::from(statements))
    })?;
    Ok(Parsing { thread, done: waits })
}

impl Parsing {
    /// Waits for its end.
    pub(super) async fn wait(&mut self) {
        // An error says that the thread ended.
        let _ = (&mut self.done).await;
    }

    /// The statements, when it has ended.
    ///
    /// # Errors
    /// When the text is not valid SQL, or nests deeper than [`LEVELS_MAX`].
    pub(super) fn finish(self) -> Result<Vec<Statement>> {
        self.thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
    }
}

/// Words and signs that nest what no visitor sees: types, intervals, explanations, turned tables,
/// patterns. Hundreds of one in a statement, or [`OPEN_MAX`] brackets that are open at a place, are
/// refused unparsed, since the parser recurses over some.
fn check_words(sql: &str) -> Result<()> {
    // The parser refuses text that can't be read.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return Ok(()) };
    let tokens = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_)));
    // A type in a text is parsed by recursion too.
    let of_texts = sql.to_ascii_lowercase().contains("arrow_");
    let (mut nesting, mut open, mut before) = (0, 0_usize, &Token::EOF);
    // Brackets that are open, and as which of some in a row: `int[][]` is an array of arrays.
    let (mut brackets, mut row) = (Vec::new(), 0);
    for token in tokens {
        match token {
            Token::LParen | Token::LBrace => open += 1,
            Token::RParen | Token::RBrace => open = open.saturating_sub(1),
            Token::LBracket => {
                row = if *before == Token::RBracket { row + 1 } else { 1 };
                brackets.push(row);
            }
            Token::RBracket => row = brackets.pop().unwrap_or(0),
            _ => {}
        }
        if open + brackets.len() > OPEN_MAX {
            return plan_err!(
                "a statement nests deeper than {OPEN_MAX} open brackets: write parts of it to tables"
            );
        }
        let nests = match token {
            Token::SemiColon => {
                (nesting, open) = (0, 0);
                0
            }
            Token::Word(word) => usize::from(matches!(
                word.keyword,
                Keyword::INTERVAL | Keyword::EXPLAIN | Keyword::PIVOT | Keyword::UNPIVOT
            )),
            Token::Lt => usize::from(matches!(before, Token::Word(word)
                if matches!(word.keyword, Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP))),
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::NationalStringLiteral(text)
            | Token::UnicodeStringLiteral(text)
                if of_texts =>
            {
                text.matches(['(', '<']).count()
            }
            Token::DollarQuotedString(text) if of_texts => text.value.matches(['(', '<']).count(),
            _ => 0,
        };
        nesting += nests;
        if nesting.max(row) > LEVELS_MAX {
            return too_deep();
        }
        before = token;
    }
    Ok(())
}

fn too_deep<T>() -> Result<T> {
    plan_err!(
        "a statement nests deeper than {LEVELS_MAX} levels: write chains of operators as lists \
         (`IN (…)`), and parts of it to tables"
    )
}

fn check(statement: &Statement) -> Result<()> {
    let mut levels = Levels { open: 0, cubed: 0 };
    let visited = match statement {
        Statement::Statement(statement) => statement.visit(&mut levels),
        Statement::Explain(explain) => return check(&explain.statement),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut levels),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::CreateExternalTable(table) => external(table, &mut levels),
        Statement::Reset(_) => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) if levels.cubed > CUBE_MAX => {
            plan_err!("more than {CUBE_MAX} expressions in CUBE make too many sets: name the sets")
        }
        ControlFlow::Break(()) => too_deep(),
    }
}

/// An order, a default or a check may be an expression of any depth.
fn external(table: &CreateExternalTable, levels: &mut Levels) -> ControlFlow<()> {
    table.columns.visit(levels)?;
    table.order_exprs.visit(levels)?;
    table.constraints.visit(levels)
}

/// Levels that are open at a place in a statement.
struct Levels {
    open: usize,
    /// Expressions in `CUBE`, of all of the statement.
    cubed: usize,
}

impl Levels {
    fn enter(&mut self, levels: usize) -> ControlFlow<()> {
        self.open += levels;
        match self.open > LEVELS_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Levels {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Cube(sets) = expr {
            self.cubed += sets.len();
            if self.cubed > CUBE_MAX {
                return ControlFlow::Break(());
            }
        }
        self.enter(1 + accesses(expr))
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.open -= 1 + accesses(expr);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.enter(joined(table))
    }

    fn post_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        self.open -= joined(table);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.enter(chained(query))
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.open -= chained(query);
        ControlFlow::Continue(())
    }
}

/// Fields and elements within each other that an expression takes.
fn accesses(expr: &Expr) -> usize {
    match expr {
        Expr::CompoundFieldAccess { access_chain, .. } => access_chain.len(),
        Expr::CompoundIdentifier(names) => names.len(),
        Expr::JsonAccess { path, .. } => path.path.len(),
        _ => 0,
    }
}

/// Joins in parentheses.
fn joined(table: &TableFactor) -> usize {
    match table {
        TableFactor::NestedJoin { table_with_joins, .. } => 1 + table_with_joins.joins.len(),
        _ => 0,
    }
}

/// Levels of a query's own plan, without its subqueries: joins, set operations and steps of a pipe
/// lie in each other there, and so may queries that it names.
fn chained(query: &Query) -> usize {
    let queries = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
    let mut levels = 1 + queries + query.pipe_operators.len();
    let mut rest = vec![query.body.as_ref()];
    while let Some(body) = rest.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => {
                levels += 1;
                rest.extend([left.as_ref(), right.as_ref()]);
            }
            SetExpr::Select(select) => {
                levels += select.from.iter().map(|from| 1 + from.joins.len()).sum::<usize>();
            }
            _ => {}
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::session::{Options, Session, SessionError};

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn rows(session: &Session, sql: &str) -> Result<usize, SessionError> {
        let mut rows = 0;
        for statement in session.statements(sql, &NEVER)? {
            let mut answer = session.run(&statement, &NEVER)?;
            while let Some(batch) = answer.next_batch()? {
                rows += batch.num_rows();
            }
        }
        Ok(rows)
    }

    /// Texts of one row that nest in different ways, by as many links.
    fn texts(links: usize) -> [(&'static str, String); 10] {
        // The types of hundreds take a minute to be found.
        let slices = if links > LEVELS_MAX { links } else { 40 };
        let joins: String = (0..links).map(|n| format!(" cross join t t{n}")).collect();
        let queries: String =
            (1..links).map(|n| format!(", q{n} as (select a + 1 as a from q{})", n - 1)).collect();
        [
            ("sum", format!("select a{} from t", " + a".repeat(links))),
            ("or", format!("select a from t where a = 1{}", " or a * 2 = 7".repeat(links))),
            ("text", format!("select 'x'{} from t", " || a".repeat(links))),
            ("is", format!("select a from t where a is not null{}", " is not null".repeat(links))),
            ("cast", format!("select a{} from t", "::int::bigint".repeat(links / 2))),
            ("joins", format!("select t.a from t{joins}")),
            ("joins in parentheses", format!("select t.a from (t{joins})")),
            ("pipe", format!("select a from t{}", " |> where a < 7".repeat(links))),
            ("slices", format!("select [a]{} from t", "[1:1]".repeat(slices))),
            ("queries", format!("with q0 as (select a from t){queries} select a from q1")),
        ]
    }

    fn session() -> Session {
        let options = Options { threads: NonZero::new(2).unwrap(), ..Options::default() };
        let session = Session::new(&options).unwrap();
        assert_eq!(rows(&session, "create table t as values (1); ").unwrap(), 0);
        let renamed = "create table t2 as select column1 as a from t; drop table t; \
                       create table t as select * from t2";
        assert_eq!(rows(&session, renamed).unwrap(), 0);
        session
    }

    #[test]
    fn what_is_let_through_has_room() {
        let session = session();
        for (shape, text) in texts(LEVELS_MAX - 10) {
            assert_eq!(rows(&session, &text).unwrap(), 1, "{shape}");
        }
    }

    #[test]
    fn what_is_deeper_is_refused_on_any_thread() {
        let session = session();
        let small = std::thread::Builder::new().stack_size(128 << 10);
        let tried = small.spawn(move || {
            for links in [LEVELS_MAX + 10, 20_000] {
                for (shape, text) in texts(links) {
                    let says = rows(&session, &text).unwrap_err().to_string();
                    assert!(says.contains("nests deeper than"), "{shape}: {says}");
                }
            }
            let nested = |open: &str, of: &str, close: &str| {
                format!("{}{of}{}", open.repeat(5_000), close.repeat(5_000))
            };
            let long = |first: &str, link: &str| format!("{first}{}", link.repeat(20_000));
            let external = |columns: &str, order: &str| {
                format!("create external table e ({columns}) stored as csv {order} location 'e'")
            };
            for text in [
                format!("explain {}", texts(1000)[0].1),
                unions(1000),
                external("a int", &format!("with order ({})", long("a", " + a"))),
                external(&format!("a int default {}", long("1", " + 1")), ""),
                external(&format!("a int check ({} > 1)", long("a", " + a")), ""),
                external(&format!("a int, check ({} > 1)", long("a", " + a")), ""),
                format!("select cast(null as {})", nested("array<", "int", ">")),
                format!("select cast(null as {})", nested("struct<a ", "int", ">")),
                format!("select cast(null as int{})", "[]".repeat(5_000)),
                format!("select cast(null as {})", nested("Nullable(", "int", ")")),
                format!("select cast(null as {})", nested("Tuple(a ", "int", ")")),
                format!("select cast(null as {})", nested("table(a ", "int", ")")),
                format!("create user u with tag {}", nested("(a=", "1", ")")),
                format!(
                    "select * from t match_recognize(pattern ({}) define a as true)",
                    nested("(", "a", ")")
                ),
                format!(
                    "select * from json_table('', '$' columns({}))",
                    nested("nested path '$' columns(", "a int path '$'", ")")
                ),
                format!("select cast(null as int{})", "[1]".repeat(5_000)),
                format!("select arrow_cast(null, '{}')", nested("List(", "Int32", ")")),
                format!("select arrow_try_cast(null, $${}$$)", nested("List(", "Int32", ")")),
                format!("select {} '1' day", "interval ".repeat(5_000)),
                format!("{} select 1", "explain ".repeat(5_000)),
            ] {
                let says = rows(&session, &text).unwrap_err().to_string();
                assert!(says.contains("nests deeper than"), "{}: {says}", &text[..40]);
            }
        });
        tried.unwrap().join().unwrap();
    }

    #[test]
    fn a_wrong_text_is_given_up_in_time() {
        let session = session().with_timeout(Some(std::time::Duration::from_millis(300)));
        // Each level triples the time: this takes seconds, and a few more would take hours.
        let text = format!("select {}1 1{}", "position(".repeat(12), ")".repeat(12));
        assert!(matches!(rows(&session, &text), Err(SessionError::TooLong { .. })));
        let stopped = session.statements("select 1", &AtomicBool::new(true));
        assert!(matches!(stopped, Err(SessionError::Stopped)));
    }

    #[test]
    fn cubes_have_bounds() {
        let session = session();
        let cube = |columns: usize| {
            let names: Vec<_> = (0..columns).map(|n| format!("a + {n}")).collect();
            format!("select count(*) from t group by cube({})", names.join(", "))
        };
        assert_eq!(rows(&session, &cube(3)).unwrap(), 8);
        let says = rows(&session, &cube(40)).unwrap_err().to_string();
        assert!(says.contains("make too many sets"), "{says}");
    }

    fn unions(count: usize) -> String {
        vec!["select a from t"; count].join(" union all ")
    }

    #[test]
    fn unions_and_lists_are_as_long_as_they_like() {
        let session = session();
        assert_eq!(rows(&session, &unions(LEVELS_MAX / 2 - 5)).unwrap(), LEVELS_MAX / 2 - 5);
        // Words that are names here, though SQL knows them.
        let years = vec!["(select year from (select a as year from t) where year < 2)"; 200];
        assert_eq!(rows(&session, &years.join(" union all ")).unwrap(), 200);
        let list = vec!["1"; 100_000].join(", ");
        assert_eq!(rows(&session, &format!("select a from t where a in ({list})")).unwrap(), 1);
    }
}
