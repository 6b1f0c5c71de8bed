//! Results on standard output, as text or as JSON.
//!
//! `println!` panics when the reader has gone (`| head`); these functions return
//! [`ReaderGone`](crate::errors::ReaderGone) instead, which ends the command quietly.
//! Progress and remarks belong on standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;
use workahead_study::label;

use crate::errors::ReaderGone;

/// Characters of what a stranger says on a line; JSON and pages have all.
pub(crate) const CHARS_MAX: usize = 1_000;

/// Prints text, ending with one newline. Text in a pipe may reach a terminal too (`| less -R`).
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    bytes(escaped(text.trim_end_matches('\n')).as_bytes())?;
    bytes(b"\n")
}

/// A remark for people on standard error, which may be closed; its control characters are escaped.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escaped(text));
}

/// Text with control characters as `\u{1b}`: what a study or a server says must not steer the
/// terminal, nor turn the direction of what follows.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    escaped_by(text, |c, safe| safe.extend(c.escape_unicode()))
}

fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n' && c != '\t') || turns
}

fn escaped_by(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match steers(c) {
            true => escape(c, &mut safe),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// A text that has no lines of its own: one of a server or file must not pass for ours.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, cut where a stranger's file or server says too much.
pub(crate) fn short_line(text: &str) -> String {
    label::cut(&one_line(text), CHARS_MAX).into_owned()
}

/// Prints a result: as JSON for programs, or as its text.
pub(crate) fn show(
    as_json: bool,
    facts: &impl Serialize,
    words: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if as_json { json(facts) } else { text(&words()) }
}

/// Prints one value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    text(&json_text(value)?)
}

/// One value as indented JSON in which nothing steers the terminal: characters that would are in
/// its strings only, and have a form of JSON's there (`\u202e`).
pub(crate) fn json_text(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("can't write the result as JSON")?;
    let escaped = escaped_by(&text, |c, safe| safe.push_str(&format!("\\u{:04x}", u32::from(c))));
    Ok(escaped.into_owned())
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        Err(error) => Err(error).context("can't write to standard output"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert!(matches!(escaped("plain\ttext\nin Gr\u{fc}n"), Cow::Borrowed(_)));
        let title = "a\u{1b}]0;b\u{7}c\r\u{9b}2J\u{202e}d";
        assert_eq!(escaped(title), "a\\u{1b}]0;b\\u{7}c\\u{d}\\u{9b}2J\\u{202e}d");
    }

    #[test]
    fn json_that_does_not_steer_is_json() {
        let title = "a\u{1b}]0;b\u{7}c\r\n\u{7f}\u{9b}2J\u{202e}d\u{2069} in Gr\u{fc}n";
        let text = json_text(&[title]).unwrap();
        assert_eq!(escaped(&text), text);
        assert!(text.contains(r"\u007f\u009b2J\u202ed\u2069 in Grün"), "{text}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), [title]);
    }
}
