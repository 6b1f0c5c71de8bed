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
/// If its tables and lists are nested more than a hundred deep, parts of keys counted, or if it has
/// as many brackets and one is where none can be: in words. (How the parser goes on after such a
/// one is its own matter, and may be deeper than what is counted here.)
pub fn check(text: &str) -> Result<(), &'static str> {
    let mut brackets = Brackets::default();
    for token in Source::new(text).lex() {
        brackets.add(token.kind());
        if brackets.depth > DEEPEST {
            return Err("its tables are nested more than a hundred deep");
        }
        if brackets.misplaced && brackets.opened > DEEPEST {
            return Err("it has brackets where none can be");
        }
    }
    Ok(())
}

/// The brackets of a text, up to a token.
struct Brackets {
    /// Of each that is open, outermost first, its kind and the parts of the key at hand.
    open: Vec<(TokenKind, usize)>,
    /// The sum of these parts.
    depth: usize,
    opened: usize,
    /// Whether one of them opens or closes what can't be opened or closed there.
    misplaced: bool,
    /// The token before, blanks and comments left out.
    last: TokenKind,
}

impl Default for Brackets {
    fn default() -> Self {
        let text = (TokenKind::Newline, 0);
        let last = TokenKind::Newline;
        Self { open: vec![text], depth: 0, opened: 0, misplaced: false, last }
    }
}

impl Brackets {
    fn add(&mut self, kind: TokenKind) {
        use TokenKind::{
            Comma, Comment, Dot, Equals, LeftCurlyBracket, LeftSquareBracket, Newline,
            RightCurlyBracket, RightSquareBracket, Whitespace,
        };
        let innermost = self.open.len() - 1;
        let (within, parts) = self.open[innermost];
        match kind {
            LeftSquareBracket | LeftCurlyBracket => {
                let is_value = self.last == Equals
                    || within == LeftSquareBracket
                        && matches!(self.last, LeftSquareBracket | Comma);
                let is_head = kind == LeftSquareBracket && innermost == 0 && self.last == Newline;
                self.misplaced |= !is_value && !is_head;
                self.open.push((kind, 1));
                self.opened += 1;
                self.depth += 1;
            }
            RightSquareBracket | RightCurlyBracket if innermost == 0 => self.misplaced = true,
            RightSquareBracket | RightCurlyBracket => {
                self.misplaced |= (kind == RightSquareBracket) != (within == LeftSquareBracket);
                self.depth -= parts;
                self.open.pop();
            }
            Dot => {
                self.open[innermost].1 += 1;
                self.depth += 1;
            }
            Comma if innermost > 0 => {
                self.depth -= parts - 1;
                self.open[innermost].1 = 1;
            }
            Newline if innermost == 0 => {
                self.depth -= parts;
                self.open[0].1 = 0;
            }
            _ => {}
        }
        // Lists and inline tables go on over lines.
        if !matches!(kind, Whitespace | Comment) && (kind != Newline || innermost == 0) {
            self.last = kind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_too_deep(text: &str) -> bool {
        check(text).is_err()
    }

    #[test]
    fn brackets_are_not_believed_where_none_can_be() {
        // The parser takes each of these for one level more, and counts one less.
        for text in ["{{}a]=", "{{}a]=\n", "{[]a}=", "{a [", "[1 ["] {
            let text = format!("x = {}1", text.repeat(2000));
            assert!(check(&text).is_err(), "{}", &text[..20]);
        }
        // A short text has the parser's own words.
        assert_eq!(check("a = [1, 2}\nb = {c ]"), Ok(()));
    }

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
    fn values_side_by_side_are_not_deep() {
        for text in [
            "a.b.c = 1.5\n".repeat(200),
            format!("a = [{}]\n[b.c]\nd = {{ e.f = 1.5, g.h = 2.5 }}", "1.5, ".repeat(500)),
            format!("a = \"{}\" # {}", "{[.".repeat(200), "[".repeat(200)),
            "]}]}".repeat(100),
            "[[a]]\nb = [\n  [1, 2], # [\n  {c = [{}]},\n]\n".repeat(100),
        ] {
            assert!(!is_too_deep(&text), "{text}");
        }
    }
}
