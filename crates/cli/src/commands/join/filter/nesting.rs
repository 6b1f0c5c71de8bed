//! How deep a filter nests: reading and evaluating one recurse level by level, and stacks end.
//!
//! ```text
//! a OR b OR c …, a AND b AND c …, v IN (1, 2, …)     one level, however long: loops
//! (((a))), NOT NOT a, a + a + …, a IS NULL IS NULL   a level each: at most LEVELS_MAX
//! ```
//!
//! The parser builds chains of operators without recursion, but drops them with it.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use workahead_statements::shape;

use super::syntax::SUPPORTED;

/// Filters that nest deeper are refused. A level is at most five typed expressions in each other,
/// and each of these takes less than 2 KiB of a worker's 2 MiB of stack.
pub(super) const LEVELS_MAX: usize = 128;
/// Expressions in each other that the parser takes. More than the limit: what it refuses, it tries
/// again as a name or a call at each level around it, so that time doubles with each.
pub(super) const PARSER_LEVELS_MAX: usize = 4 * LEVELS_MAX;
/// Room for such an expression while it is parsed, without optimisation.
const STACK_BYTES_A_LEVEL: usize = 64 << 10;
/// Room that a text's own length may take on the stack while its parsed form is dropped: two bytes
/// of text are a level at most.
const STACK_BYTES_A_BYTE: usize = 256;

pub(super) fn too_deep() -> String {
    format!(
        "it nests deeper than {LEVELS_MAX} levels: only chains of AND or OR and lists of IN may \
         be longer"
    )
}

/// Chains of a hundred thousand links are read in a second.
const READ_AT_MOST: Duration = Duration::from_secs(10);

/// Reads a text where there is room for any parsed form of it, and no longer than that takes: the
/// parser doubles its time with each level of a wrong text, and can't be stopped.
pub(super) fn on_deep_stack<T: Send + 'static>(
    text: &str,
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let deep = text.len().saturating_mul(STACK_BYTES_A_BYTE);
    let deep = deep.saturating_add(PARSER_LEVELS_MAX * STACK_BYTES_A_LEVEL);
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().stack_size(deep);
    let reading = thread.spawn(move || {
        let _ = sender.send(read());
    });
    let reading = reading.map_err(|error| format!("no thread to read it on: {error}"))?;
    match receiver.recv_timeout(READ_AT_MOST) {
        Ok(read) => read,
        Err(RecvTimeoutError::Timeout) => Err(format!(
            "it can't be read within {} s: look for a bracket or a word that is wrong",
            READ_AT_MOST.as_secs()
        )),
        Err(RecvTimeoutError::Disconnected) => match reading.join() {
            Ok(()) => Err("it can't be read".into()),
            Err(why) => std::panic::resume_unwind(why),
        },
    }
}

/// Refuses what the parser would recurse over without a limit of its own, or read as something else
/// at its limit: brackets, types in types, and words before an expression.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), String> {
    // Levels that are open: in all, and where each open bracket begins.
    let (mut open, mut starts) = (0_usize, Vec::<usize>::new());
    let mut types = 0_usize;
    let tokens = tokens.iter().map(|token| &token.token);
    let mut before = &Token::EOF;
    for token in tokens.filter(|token| !matches!(token, Token::Whitespace(_))) {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                open += 1;
                starts.push(open);
                // `INT[][]` is an array of arrays.
                types += usize::from(*token == Token::LBracket);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                open = starts.pop().map_or(0, |start| start - 1);
            }
            Token::Lt => types += usize::from(opens_type(before)),
            // Lists and chains go on beside what is before them.
            Token::Comma => open = starts.last().copied().unwrap_or(0),
            Token::Word(word) => match word.keyword {
                Keyword::AND | Keyword::OR => open = starts.last().copied().unwrap_or(0),
                Keyword::NOT | Keyword::INTERVAL => open += 1,
                _ => {}
            },
            _ => {}
        }
        if open + types > LEVELS_MAX {
            return Err(too_deep());
        }
        before = token;
    }
    Ok(())
}

/// Whether `<` after it begins the types that a type is made of.
fn opens_type(before: &Token) -> bool {
    let Token::Word(word) = before else { return false };
    matches!(word.keyword, Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP)
}

/// Why an expression is refused that filters do not have. It is shown if it is no deeper than a
/// filter may be: writing it recurses too.
pub(super) fn unsupported(of: &Expr) -> String {
    match shape::too_much(of, LEVELS_MAX) {
        None => format!("{of} is not supported; use {SUPPORTED}"),
        Some(what) => format!("{what} is not supported; use {SUPPORTED}"),
    }
}
