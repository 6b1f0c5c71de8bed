//! Text outside of quotes and comments has to be plain, so that the parser and a server agree
//! on where the next of them begins and ends.
//!
//! ```text
//! outside ─' " `─► quoted ─ the same again ─► outside      '' within is two quoted texts in a row
//!    └──── -- /* ─► comment ─ newline, */ ──► outside      nested in PostgreSQL
//! ```

use workahead_workloads::session::Dialect;
use workahead_workloads::sql_file::block_comment;

/// PostgreSQL cuts longer names, which then are others (NAMEDATALEN).
const NAME_BYTES_MAX: usize = 63;
const TOO_LONG: &str = "a name of more than 63 bytes";

/// The first ambiguity, in words.
pub(super) fn ambiguous(text: &str, dialect: Dialect) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        match (byte, next) {
            (b'\'' | b'"' | b'`', _) => {
                // Its end is not there: the parser says so.
                let length = bytes[at + 1..].iter().position(|other| *other == byte)?;
                let quoted = &bytes[at + 1..][..length];
                if byte == b'`' && !quoted.is_ascii() {
                    // In some character sets a letter swallows what ends it.
                    return Some("a name in `…` that is not ASCII");
                }
                if byte == b'"' && name_bytes(&text[at + 1..]) > NAME_BYTES_MAX {
                    return Some(TOO_LONG);
                }
                at += length + 1;
            }
            (b'-', Some(b'-')) => {
                let ends =
                    |byte: &u8| *byte == b'\n' || *byte == b'\r' && dialect != Dialect::MariaDb;
                at += bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
            }
            // Where a comment has no end the parser says so too.
            (b'/', Some(b'*')) => at += block_comment(&text[at..], dialect)? - 1,
            (b'$', next) => {
                let begins = at == 0 || !is_of_name(bytes[at - 1]);
                if !begins || !next.is_some_and(|next| next.is_ascii_digit()) {
                    return Some("a dollar sign: write texts in '…'");
                }
            }
            // To the parser `@` takes in what follows it, and `#` begins a comment.
            (b'@' | b'#', _) if dialect == Dialect::MariaDb => {
                return Some("`@` or `#`");
            }
            (byte, _) if is_of_name(byte) => {
                let is_more = |byte: &&u8| is_of_name(**byte) && **byte != b'$';
                let more = bytes[at..].iter().take_while(is_more).count();
                if more > NAME_BYTES_MAX {
                    return Some(TOO_LONG);
                }
                at += more - 1;
            }
            (byte, _) if !byte.is_ascii() => {
                return Some("letters or white space that are not ASCII: write them in quotes");
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The most bytes that a server keeps of the name whose text begins here, up to its last quote.
fn name_bytes(quoted: &str) -> usize {
    let mut bytes = 0;
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        if character == '"' && characters.next() != Some('"') {
            break;
        }
        // Letters have up to four bytes in the encodings of servers.
        bytes += if character.is_ascii() { 1 } else { 4 };
    }
    bytes
}

/// The first operator that is neither PostgreSQL's own nor one of `more`: to the server all of
/// `+ - * / < > = ~ ! @ # % ^ & | ?` in a row are one.
pub(super) fn unknown_operator<'a>(text: &'a str, more: &[&str]) -> Option<&'a str> {
    let mut rest = text;
    while let Some(at) = rest.find(|c| OF_OPERATORS.contains(c) || "'\"".contains(c)) {
        rest = &rest[at..];
        if let Some(quote) = rest.chars().next().filter(|c| "'\"".contains(*c)) {
            let end = rest[1..].find(quote)? + 2;
            rest = &rest[end..];
            continue;
        }
        let end = rest.find(|c| !OF_OPERATORS.contains(c)).unwrap_or(rest.len());
        let operator = &rest[..end];
        if !super::OPERATORS.contains(&operator) && !more.contains(&operator) {
            return Some(operator);
        }
        rest = &rest[end..];
    }
    None
}

const OF_OPERATORS: &str = "+-*/<>=~!@#%^&|?`";

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_characters_stand_outside() {
        let plain = [
            "select 'a$b €' -- $ € '\n, $1, \"é\", 'it''s' /* $ ' /* € */ \" */ from t",
            "select '$€$', $12",
        ];
        for text in plain {
            assert_eq!(ambiguous(text, Dialect::Postgres), None, "{text}");
        }
        let strange = [
            "select $€$ , ' $€$, pg_sleep(0.3) , $€$ ' , $€$",
            "select $$a$$",
            "select $_$a$_$",
            "select a$b$ from t",
            "select É.a from t",
            "select 1 --\u{a0}\n, $x$",
            "select '' $1a$",
            "select 1\u{a0}",
        ];
        for text in strange {
            assert!(
                ambiguous(text, Dialect::Postgres).is_some() || text.ends_with("$1a$"),
                "{text}"
            );
        }
        let swallowed = "select 1 as `あ`, 2 as ` , sleep(1) -- `";
        assert!(ambiguous(swallowed, Dialect::MariaDb).is_some());
        // Comments of MariaDB do not nest: the second one ends the first.
        assert!(ambiguous("select 1 /* /* */ , $ , ' */ '", Dialect::MariaDb).is_some());
    }

    #[test]
    fn unterminated_text_is_left_to_the_parser() {
        for text in ["select 'a", "select /* /* */", "select \"", "/*", "-", "/", "$1", ""] {
            assert_eq!(ambiguous(text, Dialect::Postgres), None, "{text}");
        }
    }
}
