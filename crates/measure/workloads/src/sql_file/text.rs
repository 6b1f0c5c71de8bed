//! A file's text cut into statements, and whether a statement only reads.
//!
//! A semicolon ends a statement unless it stands in one of these (PostgreSQL 15, section 4.1;
//! MariaDB's and DuckDB's manuals alike):
//!
//! ```text
//! '…'  "…"        the quote doubled is itself; MariaDB, and E'…' of the others: also after \
//! E'…' ⏎ '…'      PostgreSQL, DuckDB: one string, with the escapes of its beginning
//! `…`             MariaDB
//! $tag$ … $tag$   PostgreSQL, DuckDB, DataFusion
//! -- …   # …      to the end of the line; # in MariaDB only, where -- needs a space after it
//! /* … */         nested in PostgreSQL and DuckDB
//! ```
//!
//! Reading is decided by words outside of these, on the safe side: a statement is taken to write
//! when one of its words could mean that. What functions do, no words tell; a session that only
//! reads is the engine's part.

use crate::session::Dialect;

/// A statement of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text without its semicolon and without comments around it.
    pub text: String,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Whether it surely only reads.
    pub only_reads: bool,
}

/// The kind of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Words and signs.
    Code,
    /// In quotes.
    Quoted,
    Comment,
    /// A semicolon.
    End,
}

/// Cuts a text into statements.
///
/// # Errors
/// When a quote or a comment has no end; the text says where it began.
pub fn split(text: &str, dialect: Dialect) -> Result<Vec<Statement>, String> {
    let mut statements = Vec::new();
    let mut partial = Partial::default();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let (piece, length) = piece(rest, dialect).ok_or_else(|| {
            format!("line {line}: unterminated text begins here: {}", start(rest))
        })?;
        let (found, lines) = (&rest[..length], rest[..length].matches('\n').count());
        if piece == Piece::End {
            statements.extend(std::mem::take(&mut partial).finish());
        } else {
            partial.push(found, piece, line);
        }
        at += length;
        line += lines;
    }
    statements.extend(partial.finish());
    Ok(statements)
}

fn start(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(40).collect()
}

/// A statement as far as it was read.
#[derive(Default)]
struct Partial {
    text: String,
    /// Its code, with a blank for everything else.
    code: String,
    line: usize,
}

impl Partial {
    fn push(&mut self, text: &str, piece: Piece, line: usize) {
        let blank = text.trim().is_empty();
        if self.text.is_empty() && (piece == Piece::Comment || blank) {
            return;
        }
        if self.text.is_empty() {
            self.line = line;
        }
        self.text.push_str(text);
        self.code.push_str(if piece == Piece::Code { text } else { " " });
    }

    fn finish(self) -> Option<Statement> {
        let text = self.text.trim().to_owned();
        let only_reads = only_reads(&self.code);
        (!text.is_empty()).then_some(Statement { text, line: self.line, only_reads })
    }
}

/// The piece that begins a text, and its length; none when it has no end.
fn piece(rest: &str, dialect: Dialect) -> Option<(Piece, usize)> {
    let mariadb = dialect == Dialect::MariaDb;
    let first = rest.chars().next()?;
    if first.is_alphabetic() || first == '_' || !first.is_ascii() {
        return word(rest, dialect);
    }
    let dashes = rest.strip_prefix("--");
    let dashed = dashes.is_some_and(|after| {
        !mariadb || after.is_empty() || after.starts_with(|next: char| next.is_whitespace())
    });
    if dashed || (mariadb && first == '#') {
        // PostgreSQL's and DuckDB's also end with a carriage return.
        let ends = |next: char| next == '\n' || next == '\r' && !mariadb;
        return Some((Piece::Comment, rest.find(ends).map_or(rest.len(), |end| end + 1)));
    }
    if rest.starts_with("/*") {
        // MariaDB runs what stands in such a comment.
        let runs = mariadb && (rest.starts_with("/*!") || rest.starts_with("/*M!"));
        let piece = if runs { Piece::Code } else { Piece::Comment };
        return block_comment(rest, dialect).map(|length| (piece, length));
    }
    let piece = match first {
        ';' => return Some((Piece::End, 1)),
        '\'' => quoted(rest, '\'', mariadb)?,
        '"' => quoted(rest, '"', mariadb)?,
        '`' if mariadb => quoted(rest, '`', false)?,
        '$' if !mariadb => match dollars(rest) {
            Some(end) => end?,
            None => return Some((Piece::Code, 1)),
        },
        other => return Some((Piece::Code, other.len_utf8())),
    };
    Some((Piece::Quoted, piece))
}

/// A word to its end, within which a dollar quotes nothing; with the text that follows an `E`,
/// which is only a word to MariaDB.
fn word(rest: &str, dialect: Dialect) -> Option<(Piece, usize)> {
    let inside = |next: char| next.is_alphanumeric() || "_$".contains(next) || !next.is_ascii();
    let end = rest.find(|next| !inside(next)).unwrap_or(rest.len());
    let escapes = dialect != Dialect::MariaDb
        && rest[..end].eq_ignore_ascii_case("e")
        && rest[end..].starts_with('\'');
    match escapes {
        true => Some((Piece::Quoted, end + escaping(&rest[end..], dialect)?)),
        false => Some((Piece::Code, end)),
    }
}

/// Length of an `E'…'` behind its letter.
fn escaping(rest: &str, dialect: Dialect) -> Option<usize> {
    let mut end = quoted(rest, '\'', true)?;
    while let Some(gap) = continued(&rest[end..], dialect) {
        end += gap;
        end += quoted(&rest[end..], '\'', true)?;
    }
    Some(end)
}

/// Bytes after which a string goes on that has just ended: none where its quote is doubled, or
/// white space and comments with a line break among them (PostgreSQL 15, section 4.1.2.1; DuckDB's
/// reader of SQL is PostgreSQL's).
fn continued(rest: &str, dialect: Dialect) -> Option<usize> {
    let mut after = rest;
    if dialect != Dialect::DataFusion {
        loop {
            after = after.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
            if !after.starts_with("--") {
                break;
            }
            after = after.find(['\n', '\r']).map_or("", |end| &after[end..]);
        }
    }
    let gap = &rest[..rest.len() - after.len()];
    let goes_on = gap.is_empty() || gap.contains(['\n', '\r']);
    (goes_on && after.starts_with('\'')).then_some(gap.len())
}

/// Length of quoted text. A doubled quote is two quoted texts one after the other.
fn quoted(rest: &str, quote: char, backslashes: bool) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' if backslashes => escaped = true,
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Length of the block comment that begins a text; none when it has no end.
#[must_use]
pub fn block_comment(rest: &str, dialect: Dialect) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (mut at, mut depth) = (2, 1);
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'*', b'/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            (b'/', b'*') if dialect != Dialect::MariaDb => {
                depth += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    None
}

/// Length of a dollar-quoted text, none inside when it has no end; none when it is a parameter or
/// a plain dollar.
fn dollars(rest: &str) -> Option<Option<usize>> {
    let tag = &rest[1..];
    let end = tag.find('$')?;
    let name = &tag[..end];
    let word = |next: char| next.is_ascii_alphanumeric() || next == '_' || !next.is_ascii();
    let is_tag = name.chars().all(word) && !name.starts_with(|first: char| first.is_ascii_digit());
    is_tag.then(|| {
        let quote = &rest[..end + 2];
        rest[quote.len()..].find(quote).map(|at| at + 2 * quote.len())
    })
}

/// First words of statements that read.
const READING: [&str; 8] =
    ["select", "with", "values", "table", "show", "explain", "describe", "desc"];
/// Words that may write, lock or run something, wherever they stand.
const WRITING: [&str; 24] = [
    "insert", "update", "delete", "merge", "into", "truncate", "create", "drop", "alter", "call",
    "copy", "lock", "grant", "revoke", "execute", "do", "vacuum", "reindex", "cluster", "rename",
    "load", "attach", "install", "share",
];

fn only_reads(code: &str) -> bool {
    let code = code.to_lowercase();
    let mut words = code
        .split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    READING.contains(&first) && !words.any(|word| WRITING.contains(&word))
}
