//! Conditions without literals: the same query with other parameters has the same plan.
//!
//! Replaced by `?`: numbers, quoted strings (with a cast behind, `'1995-01-01'::date`), parameters
//! (`$1`), lists of them. Dropped: positions behind `@` (DataFusion's `a@0`), repeated blanks.

/// A condition, normalised.
pub(super) fn condition(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        let continues_name = before.is_alphanumeric() || before == '_' || before == '#';
        match c {
            '\'' => {
                quoted(&mut rest);
                cast(&mut rest);
                literal(&mut out);
            }
            '@' | '$' if rest.peek().is_some_and(char::is_ascii_digit) => {
                number(&mut rest);
                if c == '$' {
                    literal(&mut out);
                }
            }
            c if c.is_ascii_digit() && !continues_name => {
                number(&mut rest);
                cast(&mut rest);
                literal(&mut out);
            }
            c if c.is_whitespace() => {
                if !out.ends_with(' ') && !out.is_empty() {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
        before = out.chars().next_back().unwrap_or(' ');
    }
    out.trim_end().to_owned()
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// One `?` for a literal, its sign, and those before it in a list.
fn literal(out: &mut String) {
    let before_sign = out.strip_suffix('-').map(str::trim_end);
    if before_sign.is_some_and(|before| before.ends_with(['=', '<', '>', '(', ','])) {
        out.pop();
    }
    match out.trim_end().strip_suffix(',') {
        Some(list) if list.ends_with('?') => out.truncate(list.len()),
        _ => out.push('?'),
    }
}

/// To the closing quote; a doubled one is part of the text.
fn quoted(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next() {
        if c == '\'' && rest.next_if_eq(&'\'').is_none() {
            break;
        }
    }
}

/// Digits, a fraction, an exponent with its sign.
fn number(rest: &mut Rest<'_>) {
    let mut last = '0';
    loop {
        let is_part = |c: &char| {
            let is_sign = matches!(c, '+' | '-') && matches!(last, 'e' | 'E');
            c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || is_sign
        };
        match rest.next_if(is_part) {
            Some(c) => last = c,
            None => return,
        }
    }
}

/// `::date`, `::numeric(15,2)`, `::timestamp without time zone`, `::text[]`.
fn cast(rest: &mut Rest<'_>) {
    loop {
        let mut ahead = rest.clone();
        if (ahead.next(), ahead.next()) != (Some(':'), Some(':')) {
            return;
        }
        *rest = ahead;
        while rest.next_if(|c| c.is_alphanumeric() || *c == '_' || *c == '"').is_some() {}
        for words in [" without time zone", " with time zone", " varying", " precision"] {
            let mut ahead = rest.clone();
            if words.chars().all(|word| ahead.next() == Some(word)) {
                *rest = ahead;
            }
        }
        if rest.next_if_eq(&'(').is_some() {
            while rest.next().is_some_and(|c| c != ')') {}
        }
        while rest.next_if(|c| *c == '[' || *c == ']').is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::condition;

    #[test]
    fn literals_go_and_names_stay() {
        let cases = [
            ("(a2 > 9999) AND (a2 < 12000)", "(a2 > ?) AND (a2 < ?)"),
            ("((a2 > $1) AND (a2 < $2))", "((a2 > ?) AND (a2 < ?))"),
            ("(l_shipdate <= '1998-09-02'::date)", "(l_shipdate <= ?)"),
            ("(x = '1995-01-01 00:00:00'::timestamp without time zone)", "(x = ?)"),
            ("(n = 'it''s (5)'::bpchar)", "(n = ?)"),
            ("(k = ANY ('{1,2,3}'::integer[]))", "(k = ANY (?))"),
            ("k IN (1, 2, -3)", "k IN (?)"),
            ("x BETWEEN 0.05 AND 1e-3", "x BETWEEN ? AND ?"),
            ("a2@1 > 9999 AND t1.a1@0 = t2.a1@3", "a2 > ? AND t1.a1 = t2.a1"),
            ("(x > -5)", "(x > ?)"),
            ("(x - 5) > y", "(x - ?) > y"),
            ("#2  =\n #3", "#2 = #3"),
            ("p_size::numeric", "p_size::numeric"),
        ];
        for (given, expected) in cases {
            assert_eq!(condition(given), expected, "{given}");
        }
    }

    #[test]
    fn nothing_is_too_broken() {
        for text in ["'", "'a''", "$", "@", "1::", "'x'::numeric(", "", "  "] {
            condition(text);
        }
    }
}
