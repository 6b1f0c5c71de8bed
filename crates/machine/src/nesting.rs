//! How deep a TOML text nests.
//!
//! The parser limits the parts of a key and the depth of inline tables, but not their product:
//! 11 KB of `{a.a.a… = {a.a.a… = …` are thousands of tables in one another, and a function that
//! walks or drops them calls itself as often.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// The deepest nesting that is read: no file of ours has ten.
const DEEPEST: usize = 100;

/// Whether a text can be parsed.
///
/// # Errors
/// If its tables and lists are nested more than a hundred deep, parts of keys counted: in words.
pub fn check(text: &str) -> Result<(), &'static str> {
    match is_too_deep(text) {
        true => Err("its tables are nested more than a hundred deep"),
        false => Ok(()),
    }
}

fn is_too_deep(text: &str) -> bool {
    // Of each bracket that is open, outermost first, the parts of the key at hand; then their sum.
    let (mut open, mut depth) = (vec![0_usize], 0_usize);
    for token in Source::new(text).lex() {
        let innermost = open.len() - 1;
        match token.kind() {
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
                open.push(1);
                depth += 1;
            }
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket if innermost > 0 => {
                depth -= open.pop().unwrap_or(0);
            }
            TokenKind::Dot => {
                open[innermost] += 1;
                depth += 1;
            }
            TokenKind::Comma if innermost > 0 => {
                depth -= open[innermost] - 1;
                open[innermost] = 1;
            }
            TokenKind::Newline if innermost == 0 => {
                depth -= open[0];
                open[0] = 0;
            }
            _ => {}
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_keys_multiply_with_tables() {
        let nested = |tables: usize, parts: usize| {
            let key = vec!["a"; parts].join(".");
            (0..tables).fold("1".to_owned(), |value, _| format!("{{{key}={value}}}"))
        };
        assert!(is_too_deep(&format!("x = {}", nested(75, 75))));
        assert!(is_too_deep(&format!("x = {}", nested(101, 1))));
        assert!(!is_too_deep(&format!("x = {}", nested(20, 4))));
        assert!(is_too_deep(&"[".repeat(200)));
    }

    #[test]
    fn what_stands_side_by_side_is_not_deep() {
        for text in [
            "a.b.c = 1.5\n".repeat(200),
            format!("a = [{}]\n[b.c]\nd = {{ e.f = 1.5, g.h = 2.5 }}", "1.5, ".repeat(500)),
            format!("a = \"{}\" # {}", "{[.".repeat(200), "[".repeat(200)),
            "]}]}".repeat(100),
        ] {
            assert!(!is_too_deep(&text), "{text}");
        }
    }
}
