//! Phrases that are refused, with the plain form.

use crate::tidy::{File, Finding};

/// A phrase in lower case, and what to write instead. Words match whole; a line's end is a space.
const PHRASES: [(&str, &str); 31] = [
    ("so many", "name the number or the thing: `n rows`, `for a table of this size`"),
    ("of so few", "name the number or the thing: `of few rows`"),
    ("whoever", "name the role: the user, the caller, the function, the process"),
    ("whom", "name the role: the target, the user, the caller"),
    ("is told", "`receives`, `is reported`, `is notified`, `is normalised by`"),
    ("are told", "`receive`, `are reported`, `are notified`"),
    ("was told", "`received`, `was reported`, `was notified`"),
    ("were told", "`received`, `were reported`, `were notified`"),
    ("be told", "`receive`, `be reported`, `be distinguished from`"),
    ("been told", "`has received`, `has been reported`"),
    ("is asked", "`is requested`, `is queried`, or say who calls what"),
    ("are asked", "`are requested`, `are queried`, or say who calls what"),
    ("was asked", "`the requested …`, `was queried`"),
    ("were asked", "`the requested …`, `were queried`"),
    ("be asked", "`be requested`, `be queried`"),
    ("be had", "`is unavailable`, `is available from`"),
    ("is no other", "`is the same as`"),
    ("in no way", "`not`"),
    ("is no more", "`is gone`, `has ended`; `no longer`"),
    ("is no", "`is not a …`, `there is no …`"),
    ("are no", "`are not …`, `there are no …`"),
    ("was no", "`was not a …`, `there was no …`"),
    ("were no", "`were not …`, `there were no …`"),
    ("may i believe", "`is the difference significant`"),
    ("goes on as if", "`continues as if`"),
    ("lets them in again", "`re-enables them`"),
    ("let in again", "`re-enabled`"),
    ("is let go", "`is dropped`, `is freed`, `is released`"),
    ("are let go", "`are dropped`, `are freed`, `are released`"),
    ("how to have it", "`Install`"),
    ("what is there is taken", "`finished results are reused`"),
];

/// After `is no`: a comparison, and not a noun.
const COMPARED: &str = "better cheaper deeper different earlier farther faster fewer further \
                        greater harder higher larger later less longer lower more other shorter \
                        slower smaller wider worse";

/// Kinds of files that people read.
const ENDINGS: [&str; 10] =
    [".md", ".rs", ".toml", ".py", ".pyi", ".h", ".c", ".sh", ".html", ".service"];

/// Figures as they were recorded, and this table itself.
const NEVER: [&str; 2] = ["bench/record/", "xtask/src/tidy/words"];

pub(super) fn refused(file: &File) -> Vec<Finding> {
    let read = ENDINGS.iter().any(|ending| file.ends_with(ending));
    if !read || NEVER.iter().any(|start| file.path.starts_with(start)) {
        return Vec::new();
    }
    let prose = Prose::of(file);
    let mut findings = Vec::new();
    for (phrase, instead) in PHRASES {
        for line in prose.lines_with(phrase) {
            findings.push(Finding::at(file, line, format!("`{phrase}`: write {instead}")));
        }
    }
    findings
}

/// The text of a file in lower case, as one line: a phrase may be broken across lines.
struct Prose {
    text: String,
    /// Where each line begins in `text`.
    starts: Vec<usize>,
}

impl Prose {
    fn of(file: &File) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for (_, line) in file.lines() {
            starts.push(text.len());
            let line = line.trim().trim_end_matches(['\\', ' ']);
            // Names of keys in files, those of earlier versions too.
            let line = if line.starts_with("#[serde(") { "" } else { line };
            let line = line.trim_start_matches(['/', '!', '#', '*', '>', '-', ' ']);
            text.push_str(&line.to_lowercase().replace('’', "'"));
            text.push(' ');
        }
        Self { text, starts }
    }

    /// The one-based lines in which the phrase begins as whole words.
    fn lines_with<'a>(&'a self, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
        let bytes = self.text.as_bytes();
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        self.text.match_indices(phrase).filter_map(move |(at, _)| {
            let end = at + phrase.len();
            let whole = (at == 0 || !part(bytes[at - 1])) && !part(bytes[end]);
            let plain = is_plain(phrase, &self.text[..at], &self.text[end..]);
            (whole && !plain).then(|| self.starts.partition_point(|start| *start <= at))
        })
    }
}

/// Whether the words around a phrase make it plain English.
fn is_plain(phrase: &str, before: &str, after: &str) -> bool {
    if phrase.ends_with(" told") {
        return after.starts_with(" apart");
    }
    let next = after.trim_start().split(|character: char| !character.is_alphabetic()).next();
    let compared = next.is_some_and(|word| COMPARED.split(' ').any(|one| one == word));
    phrase.ends_with(" no") && (compared || before.ends_with("there "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.into(), text: text.into() };
        refused(&file).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn refused_phrases_are_found_wherever_people_read() {
        assert_eq!(lines("docs/a.md", "# A\n\nFor whoever runs a database.\n"), [3]);
        assert_eq!(lines("a.rs", "/// Bytes of so many rows.\nfn f() {}"), [1]);
        assert_eq!(lines("a.rs", "let says = format!(\"{n} CPUs can't be had\");"), [1]);
        assert_eq!(lines("a.py", "# What is asked of it.\n"), [1]);
        assert_eq!(lines("a.md", "CPUs that can’t be had"), [1]);
        assert_eq!(lines("a.md", "They are told apart, and one is told."), [1]);
    }

    #[test]
    fn a_phrase_may_be_broken_across_lines() {
        assert_eq!(lines("a.rs", "//! The prober is\n//! told of it."), [1]);
        assert_eq!(lines("a.rs", "\"it is \\\n    told\""), [1]);
    }

    #[test]
    fn every_phrase_is_found_and_only_as_whole_words() {
        for (phrase, _) in PHRASES {
            assert!(!lines("a.md", &format!("It {phrase}, now.")).is_empty(), "{phrase}");
            assert!(lines("a.md", &format!("It x{phrase}x now.")).is_empty(), "{phrase}");
        }
    }

    #[test]
    fn a_noun_is_not_negated_by_no() {
        assert_eq!(
            lines("a.rs", "// A folder is no file,\n// and these are\n// no files."),
            [1, 2]
        );
        assert_eq!(lines("a.rs", "format!(\"`{word}` is no number\")"), [1]);
        assert_eq!(lines("a.service", "# It is no\n# daemon."), [1]);
        let plain = "There is no file. It is no\nlonger there, and is no larger than before.\n";
        assert!(lines("a.md", plain).is_empty());
        assert_eq!(lines("a.md", "Where is no file, it is no larger file.").len(), 1);
    }

    #[test]
    fn records_and_data_are_left_alone() {
        assert!(lines("bench/record/a/b.md", "whoever").is_empty());
        assert!(lines("a.json", "whoever").is_empty());
        assert!(lines("a.rs", "#[serde(alias = \"whom\")]").is_empty());
    }
}
