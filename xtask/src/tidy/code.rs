//! Rust source without its comments and the insides of its strings, line for line.
//!
//! A rule about words in code ("unsafe", "println!") must not stumble over the same words in a
//! comment or a message. This is a lexer of five states, not a parser.

/// Blanks comments and literals; every line keeps its number.
pub(crate) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = if rest.starts_with("//") {
            at + rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            at + block_comment(rest)
        } else if let Some(length) = raw_string(rest, bytes, at) {
            at + length
        } else if bytes[at] == b'"' {
            at + quoted(rest, '"')
        } else if bytes[at] == b'\'' && is_character(rest) {
            at + quoted(rest, '\'')
        } else {
            let character = rest.chars().next().expect("not at the end");
            code.push(character);
            at += character.len_utf8();
            continue;
        };
        code.extend(text[at..end].chars().filter(|character| *character == '\n'));
        code.push(' ');
        at = end;
    }
    code
}

/// Length of a block comment; they nest.
fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Length of a raw string (`r"…"`, `br#"…"#`) that starts here, if one does.
fn raw_string(rest: &str, bytes: &[u8], at: usize) -> Option<usize> {
    let inside_a_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if inside_a_name {
        return None;
    }
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let opening = rest.len() - body.len();
    Some(opening + body.find(&closing).map_or(body.len(), |end| end + closing.len()))
}

/// Length of a quoted literal, escapes heeded.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Tells `'x'` and `'\n'` from the lifetime `'x`.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::code_only;

    #[test]
    fn comments_and_literals_go_and_lines_stay() {
        let text = "a // unsafe\nb /* unsafe /* deep */ \n unsafe */ c\n\"unsafe \\\" unsafe\" d\n";
        let code = code_only(text);
        assert!(!code.contains("unsafe"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
        for kept in ["a", "b", "c", "d"] {
            assert!(code.contains(kept));
        }
    }

    #[test]
    fn raw_strings_characters_and_lifetimes() {
        let text = r##"let a = r#"unsafe " x"#; let b = '"'; fn f<'a>(x: &'a str) { unsafe {} }"##;
        let code = code_only(text);
        assert_eq!(code.matches("unsafe").count(), 1, "{code}");
        assert!(code.contains("<'a>"));
        assert!(code_only("let quote = '\\''; unsafe").contains("unsafe"));
        assert!(code_only("for r in \"unsafe\" {}").contains("for r in"));
    }
}
