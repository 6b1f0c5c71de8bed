//! What is kept of texts that may have secrets in them: statements without their values, which also
//! makes two of them the same statement, and settings.

/// A text whose quoted texts and numbers are `?`, and whose white space is single.
pub(super) fn without_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut last = ' ';
    while let Some(c) = rest.next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        if c == '\'' {
            // A doubled quote is two texts side by side, which is as well.
            while rest.next_if(|c| *c != '\'').is_some() {}
            rest.next();
            if last != '?' {
                out.push('?');
            }
            last = '?';
        } else if c.is_ascii_digit() && !is_word(last) {
            while rest.next_if(|c| is_word(*c) || *c == '.').is_some() {}
            out.push('?');
            last = '?';
        } else if c.is_whitespace() {
            if last != ' ' {
                out.push(' ');
            }
            last = ' ';
        } else {
            out.push(c);
            last = c;
        }
    }
    out.trim_end_matches([' ', ';']).to_owned()
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
    // What roles and databases set comes with their names.
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
    fn secrets_are_told_apart_and_not_kept() {
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
            ("", ""),
        ] {
            assert_eq!(without_values(text), without);
        }
    }
}
