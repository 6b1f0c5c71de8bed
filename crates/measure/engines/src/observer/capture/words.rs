//! Texts without the secrets that may be in them: statements without their values, which also
//! makes two of them the same statement, and settings.

use workahead_workloads::session::Dialect;
use workahead_workloads::sql_file::block_comment;

/// A part of a statement.
enum Piece {
    /// White space, or a comment: programs write values there too.
    Gap,
    /// A quoted text, or a number.
    Value,
    /// Anything else.
    Plain,
}

/// A text whose quoted texts and numbers are `?`, and whose white space and comments are single
/// spaces. Where the end of a quoted text is unknown, as in one that was cut, all of the rest is
/// one.
pub(super) fn without_values(text: &str, dialect: Dialect) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, bytes) = first_piece(rest, dialect);
        let (taken, left) = rest.split_at(bytes);
        match piece {
            Piece::Gap if !(out.is_empty() || out.ends_with(' ')) => out.push(' '),
            Piece::Value if !out.ends_with('?') => out.push('?'),
            Piece::Gap | Piece::Value => {}
            Piece::Plain => out.push_str(taken),
        }
        rest = left;
    }
    without_setting(out.trim_end_matches([' ', ';']))
}

/// A statement that sets something, to a bare word maybe, ends before what it sets it to.
fn without_setting(text: &str) -> String {
    let mut words = text.split(' ');
    let first = words.next().unwrap_or_default();
    let sets = first.eq_ignore_ascii_case("set")
        || first.eq_ignore_ascii_case("alter")
            && words.any(|word| word.eq_ignore_ascii_case("set"));
    let lower = text.to_ascii_lowercase();
    let to = lower.find(" to ").map(|at| at + 4);
    let value = lower.find('=').map(|at| at + 1).into_iter().chain(to).min();
    match value {
        Some(value) if sets => format!("{}?", &text[..value]),
        _ => text.to_owned(),
    }
}

/// The first piece of a text, and its length in bytes. What the server takes as one piece
/// must be one here too: a quote in a name or in a comment would turn what is quoted inside out.
fn first_piece(text: &str, dialect: Dialect) -> (Piece, usize) {
    let is_mariadb = dialect == Dialect::MariaDb;
    let mut all = text.chars();
    // No character stands for the end.
    let [first, second, third] = std::array::from_fn(|_| all.next().unwrap_or('\0'));
    let is_line_comment = match (first, second) {
        ('#', _) => is_mariadb,
        // Two signs of a number in MariaDB, unless white space follows.
        ('-', '-') => !is_mariadb || third.is_ascii_whitespace() || third.is_ascii_control(),
        _ => false,
    };
    // To servers all that is not ASCII is of names.
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    let whole = text.len();
    match first {
        _ if is_line_comment => {
            (Piece::Gap, span(text, |c| c != '\n' && (c != '\r' || is_mariadb)))
        }
        // MariaDB runs what is in such a comment.
        '/' if is_mariadb && (text.starts_with("/*!") || text.starts_with("/*M!")) => {
            (Piece::Value, whole)
        }
        '/' if second == '*' => (Piece::Gap, block_comment(text, dialect).unwrap_or(whole)),
        '\'' => (Piece::Value, text_end(text, false).unwrap_or(whole)),
        '"' if is_mariadb => (Piece::Value, text_end(text, false).unwrap_or(whole)),
        'e' | 'E' if second == '\'' && !is_mariadb => {
            (Piece::Value, text_end(&text[1..], true).map_or(whole, |end| end + 1))
        }
        '$' if !is_mariadb => dollar(text),
        '"' | '`' if (first == '`') == is_mariadb => match text[1..].find(first) {
            Some(length) => (Piece::Plain, length + 2),
            None => (Piece::Value, whole),
        },
        _ if first.is_ascii_digit() => {
            (Piece::Value, span(text, |c| c == '.' || is_word(c) && c != '$'))
        }
        _ if is_word(first) => (Piece::Plain, span(text, is_word)),
        _ if first.is_whitespace() => {
            (Piece::Gap, span(text, |c| c.is_ascii() && c.is_whitespace()))
        }
        _ => (Piece::Plain, first.len_utf8()),
    }
}

/// The length of a text's beginning of such characters.
fn span(text: &str, is_of_it: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !is_of_it(c)).unwrap_or(text.len())
}

/// Where the quoted text ends with which a text begins; none when that is not there, or unknown:
/// outside of `E'…'` it is for a session to say whether a backslash escapes a quote.
fn text_end(text: &str, escapes: bool) -> Option<usize> {
    let mut all = text.char_indices();
    let (_, quote) = all.next()?;
    while let Some((at, c)) = all.next() {
        if c == '\\' {
            let (_, escaped) = all.next()?;
            if escaped == quote && !escapes {
                return None;
            }
        } else if c == quote && all.next().is_none_or(|(_, next)| next != quote) {
            return Some(at + 1);
        }
    }
    None
}

/// The piece at a dollar sign in PostgreSQL: `$1`, `$$…$$`, `$tag$…$tag$`.
fn dollar(text: &str) -> (Piece, usize) {
    let digits = span(&text[1..], |c| c.is_ascii_digit());
    if digits > 0 {
        return (Piece::Plain, 1 + digits);
    }
    let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let end = 1 + span(&text[1..], is_tag);
    if !text[end..].starts_with('$') {
        return (Piece::Plain, 1);
    }
    let (quote, rest) = text.split_at(end + 1);
    let length = rest.find(quote).map_or(rest.len(), |at| at + quote.len());
    (Piece::Value, quote.len() + length)
}

/// Replaces the value of a setting that may be a secret by what tells it from another: a number of
/// 16 bits, by which nobody finds the value.
pub(super) fn hide_secret(name: &str, value: &mut String) {
    const SECRETS: [&str; 14] = [
        "conninfo",
        "password",
        "passphrase",
        "secret",
        "token",
        "auth",
        "credential",
        "filekey",
        "proxy",
        "_command",
        "init_connect",
        "init_replica",
        "init_slave",
        "provider_options",
    ];
    const WORDS: [&str; 6] = ["on", "off", "true", "false", "none", ""];
    const UNITS: [&str; 12] = ["", "b", "kb", "8kb", "mb", "gb", "tb", "us", "ms", "s", "min", "h"];
    let name = name.to_ascii_lowercase();
    // Settings of roles and databases come with their names.
    let setting = name.rsplit(": ").next().unwrap_or(&name);
    let plain = value.to_lowercase();
    let is_word = || WORDS.contains(&plain.as_str());
    // As the server prints it, with the unit of its own.
    let is_number = || {
        let (number, unit) = plain.split_once(' ').unwrap_or((&plain, ""));
        number.len() < 10 && number.parse::<f64>().is_ok() && UNITS.contains(&unit)
    };
    let hides = match SECRETS.iter().any(|secret| setting.contains(secret)) {
        true => !is_word(),
        // Of extensions and programs.
        false => setting.contains('.') && !is_word() && !is_number(),
    };
    if hides {
        let fnv = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = value.bytes().fold(0x811c_9dc5, fnv);
        *value = format!("(hidden, {:04x})", (hash >> 16) ^ (hash & 0xffff));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_distinguished_and_not_kept() {
        let hidden = |name: &str, value: &str| {
            let mut kept = value.to_owned();
            hide_secret(name, &mut kept);
            kept
        };
        for (name, value) in [
            ("primary_conninfo", "host=a password=b"),
            ("archive_command", "scp %p backup:"),
            ("of every role in shop: app.jwt_secret", "jwt"),
            ("of role ada: MY.KEY", "abc 17"),
            ("wsrep_sst_auth", "user:word"),
            ("of every role in shop: app.password", "0123456789"),
            ("of every role in shop: app.pin", "8734659283465"),
            ("of role owen: app.key", "20394hunter"),
            ("file_key_management_filekey", "hunter2secret"),
        ] {
            let kept = hidden(name, value);
            assert!(kept.starts_with("(hidden, ") && kept.len() == 14, "{name}: {kept}");
            assert_ne!(kept, hidden(name, &format!("{value} ")));
        }
        for (name, value) in [
            ("work_mem", "4096 kB"),
            ("pg_stat_statements.max", "5000"),
            ("auto_explain.log_min_duration", "-1 ms"),
            ("pg_stat_statements.save", "on"),
            ("archive_command", ""),
            ("shared_preload_libraries", "pg_stat_statements"),
        ] {
            assert_eq!(hidden(name, value), value);
        }
    }

    #[test]
    fn values_are_marks_and_names_stay() {
        for (text, without) in [
            ("SELECT abalance FROM t1 WHERE aid = 17;", "SELECT abalance FROM t1 WHERE aid = ?"),
            (
                "select *\n  from a_2 where b='it''s' and c = -1.5e7",
                "select * from a_2 where b=? and c = -?",
            ),
            ("select $1, 0x1F", "select $1, ?"),
            ("select 'without end", "select ?"),
            ("set app.token = hunter2bare;", "set app.token =?"),
            ("SET SESSION app.token TO hunter2bare, b", "SET SESSION app.token TO ?"),
            ("alter role a set app.token=hunter2bare", "alter role a set app.token=?"),
            ("update t set a = b", "update t set a = b"),
            ("", ""),
        ] {
            assert_eq!(without_values(text, Dialect::Postgres), without);
        }
    }

    #[test]
    fn values_of_postgres_are_marks() {
        for (text, without) in [
            ("ALTER ROLE app PASSWORD 'hunter2'", "ALTER ROLE app PASSWORD ?"),
            (
                "CREATE USER MAPPING FOR a SERVER b OPTIONS (password 'c''d', e 'f')",
                "CREATE USER MAPPING FOR a SERVER b OPTIONS (password ?, e ?)",
            ),
            (r"select E'it\'s secret', e'\\', 'C:\\', U&'\0441'", "select ?, ?, ?, U&?"),
            // It may be the end of the text or not.
            (r"select a, 'it\'s secret'", "select a, ?"),
            ("select E'cut \\", "select ?"),
            ("DO $$ it's secret $$ LANGUAGE sql", "DO ? LANGUAGE sql"),
            ("DO $a_1$ it's $$ secret $a$ $a_1$, $12", "DO ?, $12"),
            ("DO $é$ it's cut $", "DO ?"),
            ("select $1$$secret one$$, 1$$secret one$$", "select $1?, ?"),
            ("select a$$b, $, 'x'", "select a$$b, $, ?"),
            (r#"select "it's", "a""b'", 'x'"#, r#"select "it's", "a""b'", ?"#),
            (r#"select "secret"#, "select ?"),
            ("/* don't */ select 'x' -- it's\n, 'y'", "select ? , ?"),
            ("select /* ' /* secret */ ' */ 'x'", "select ?"),
            ("select /* secret", "select"),
            ("select `, 'x', é1", "select `, ?, é1"),
        ] {
            assert_eq!(without_values(text, Dialect::Postgres), without, "{text}");
        }
    }

    #[test]
    fn values_of_mariadb_are_marks() {
        for (text, without) in [
            (r#"UPDATE users SET token="s3cr3t""#, "UPDATE users SET token=?"),
            // It may be the end of the text or not.
            (r"select a, 'it\'s secret'", "select a, ?"),
            (r#"select "a\"b", 'secret'"#, "select ?"),
            (r"select '\\', 1, 'C:\data'", "select ?, ?, ?"),
            (r#"select "it's", 'say "x"', "a""b", E'x'"#, "select ?, ?, ?, E?"),
            (r"select 'cut \'", "select ?"),
            (r#"select a, "cut"#, "select a, ?"),
            ("select `it's`, 'x'", "select `it's`, ?"),
            ("select `cut", "select ?"),
            ("select 1 # it's\n, 'x' -- don't\n", "select ? , ?"),
            ("select 5--1, 5--'x\n', 'y'", "select ?--?, ?--?, ?"),
            ("select /* /* ' */ 'x'", "select ?"),
            ("select /*!40001 'secret' */ a", "select ?"),
            ("select $a, $$, 'x'", "select $a, $$, ?"),
        ] {
            assert_eq!(without_values(text, Dialect::MariaDb), without, "{text}");
        }
    }
}
