//! The pairs of columns of `--on`.

use crate::errors::WrongUse;

/// A column of the left file, and one of the right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct On {
    pub(crate) left: String,
    pub(crate) right: String,
}

impl On {
    /// `LEFT=RIGHT`, or one name for both sides; `"a=b"` is a name with `=` in it, as SQL quotes.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let pair = name(text).and_then(|(left, rest)| match rest.strip_prefix('=') {
            None if rest.is_empty() => Some(Self { right: left.clone(), left }),
            None => None,
            Some(right) => match name(right)? {
                (right, "") => Some(Self { left, right }),
                _ => None,
            },
        });
        pair.ok_or_else(|| {
            WrongUse::error(format!(
                "--on {text:?} is not a pair of columns: write --on LEFT=RIGHT, and a name with \
                 `=` in it or nothing in double quotes"
            ))
        })
    }
}

/// A name, and the text after it.
fn name(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find('=').unwrap_or(text.len());
        return (end > 0).then(|| (text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            // Two of them are one.
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_in_sql() {
        let pair = |text: &str| On::parse(text).map(|on| (on.left, on.right)).ok();
        let names = |left: &str, right: &str| Some((left.to_owned(), right.to_owned()));
        assert_eq!(pair("id"), names("id", "id"));
        assert_eq!(pair("a=b c"), names("a", "b c"));
        assert_eq!(pair("\"a=b\"=c"), names("a=b", "c"));
        assert_eq!(pair("a=\"b=c\""), names("a", "b=c"));
        assert_eq!(pair("\"\""), names("", ""));
        assert_eq!(pair("\"say \"\"a\"\"\"=\"\""), names("say \"a\"", ""));
        for wrong in ["", "=", "a=", "=b", "a=b=c", "\"a", "\"a\"b", "a=\"b\"c"] {
            assert_eq!(pair(wrong), None, "{wrong}");
        }
    }
}
