//! Public items that nothing outside of their crate names: they are the crate's own, or nobody's.
//!
//! A search for words, not for uses: a name that stands anywhere in another crate, in a test, a
//! bench or a page counts. A type counts as well where its own crate's code mentions it beside its
//! definition: what a public function returns need not be named by those who call it.

use std::collections::{HashMap, HashSet};

use super::code::code_only;
use super::modules::without_tests;
use super::{File, Finding, Tree};

/// Items called from outside of this repository, and programs, which have no outside.
const FACES: [(&str, &str); 10] = [
    ("machine", "a library of its own"),
    ("walks", "a library of its own"),
    ("lookup", "a library of its own"),
    ("join", "a library of its own"),
    ("datafusion", "a library of its own"),
    ("sql", "a library of its own"),
    ("cluster", "a library of its own"),
    ("python", "Python calls it"),
    ("python-sql", "Python calls it"),
    ("cli", "a program"),
];

/// Crates that have such items for now, and how many.
const STILL: &[(&str, usize)] = &[
    ("counters", 7),
    ("duckdb", 1),
    ("engines", 1),
    ("policy", 1),
    ("reproduce", 4),
    ("scheduler", 3),
    ("simulator", 16),
    ("study", 9),
    ("workloads", 6),
];

/// Words before `fn` that say how it is called.
const BEFORE_FN: [&str; 4] = ["const", "unsafe", "async", "extern"];
const TYPES: [&str; 4] = ["struct", "enum", "trait", "type"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    over(tree, STILL)
}

fn over(tree: &Tree, still: &[(&str, usize)]) -> Vec<Finding> {
    let owners = owners(tree);
    let mut findings = Vec::new();
    for manifest in tree.manifests().filter(|file| file.path.starts_with("crates/")) {
        let package = manifest.path.trim_end_matches("/Cargo.toml");
        let folder = package.rsplit('/').next().unwrap_or(package);
        if FACES.iter().any(|(face, _)| *face == folder) {
            continue;
        }
        let found = of_package(tree, package, &owners);
        let most = still.iter().find(|(of, _)| *of == folder).map_or(0, |(_, most)| *most);
        if found.len() > most {
            findings.extend(found);
        } else if found.len() < most {
            let count = found.len();
            let says = format!("{count} public items that nobody uses: lower STILL in unused.rs");
            findings.push(Finding::of_file(manifest, says).warning());
        }
    }
    findings
}

fn of_package(tree: &Tree, package: &str, owners: &HashMap<&str, Owners>) -> Vec<Finding> {
    let source = format!("{package}/src/");
    let is_source = |file: &&File| {
        file.path.starts_with(&source)
            && file.name() != "tests.rs"
            && !file.path.contains("/tests/")
    };
    let files: Vec<(&File, String)> = tree
        .rust()
        .filter(is_source)
        .map(|file| (file, without_tests(&code_only(&file.text))))
        .collect();
    let mentioned: HashSet<&str> = files.iter().flat_map(|(_, code)| mentions(code)).collect();
    let mut findings = Vec::new();
    for (file, code) in &files {
        for (index, line) in code.lines().enumerate() {
            let Some((kind, name)) = public(line) else { continue };
            let outside = owners.get(name).is_some_and(|owners| *owners != Owners::One(&source));
            let inside = TYPES.contains(&kind) && mentioned.contains(name);
            if !outside && !inside {
                let says = format!("nothing outside of its crate names `{name}`: `pub(crate)`");
                findings.push(Finding::at(file, index + 1, says));
            }
        }
    }
    findings
}

/// In whose files a word stands.
#[derive(PartialEq, Eq)]
enum Owners<'a> {
    /// A crate's source folder; a file elsewhere is its own owner.
    One(&'a str),
    Several,
}

fn owners(tree: &Tree) -> HashMap<&str, Owners<'_>> {
    let mut owners: HashMap<&str, Owners> = HashMap::new();
    for file in tree.files.iter().filter(|file| !file.path.contains("/record/")) {
        // Tests of a crate beside its sources see what is its own.
        let owner = match file.path.find("/src/") {
            Some(at) => &file.path[..at + "/src/".len()],
            None => file.path.as_str(),
        };
        for word in words(&file.text) {
            owners
                .entry(word)
                .and_modify(|owners| {
                    if *owners != Owners::One(owner) {
                        *owners = Owners::Several;
                    }
                })
                .or_insert(Owners::One(owner));
        }
    }
    owners
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| word.len() > 1)
}

/// Words of lines that are neither definitions of a type, nor imports, nor implementations.
fn mentions(code: &str) -> impl Iterator<Item = &str> {
    let counts = |line: &&str| {
        let line = line.trim_start().trim_start_matches("pub ");
        let first = line.split([' ', '<']).next().unwrap_or_default();
        !["use", "impl"].contains(&first) && !TYPES.contains(&first)
    };
    code.lines().filter(counts).flat_map(words)
}

/// `pub const fn name(` → `("fn", "name")`; nothing for `pub(crate)`, fields and imports.
fn public(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.trim_start().strip_prefix("pub ")?.split_whitespace().peekable();
    let mut kind = rest.next()?;
    while BEFORE_FN.contains(&kind) && rest.peek().is_some_and(|next| is_fn_word(next)) {
        kind = rest.next()?;
    }
    let known = TYPES.contains(&kind) || ["fn", "const", "static"].contains(&kind);
    let name = rest.next().filter(|_| known)?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    (end > 0).then(|| (kind, &name[..end]))
}

fn is_fn_word(word: &str) -> bool {
    word == "fn" || BEFORE_FN.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATE: (&str, &str) = ("crates/measure/study/Cargo.toml", "");

    fn found(files: &[(&str, &str)], still: &[(&str, usize)]) -> Vec<String> {
        let files: Vec<(&str, &str)> = files.iter().copied().chain([CRATE]).collect();
        over(&Tree::of(&files), still).into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn a_function_that_only_its_crate_calls_is_found() {
        let source =
            ("crates/measure/study/src/a.rs", "pub const fn alone() {}\nfn f() { alone() }");
        assert_eq!(found(&[source], &[]).len(), 1);
        for (path, text) in [
            ("crates/cli/src/main.rs", "study::alone();"),
            ("crates/measure/study/tests/a.rs", "study::alone();"),
            ("docs/studies.md", "call `alone`"),
        ] {
            assert!(found(&[source, (path, text)], &[]).is_empty(), "{path}");
        }
        let own = ("crates/measure/study/src/a.rs", "pub(crate) fn alone() {}\npub use b::C;");
        assert!(found(&[own], &[]).is_empty());
        let face = ("crates/execute/join/src/a.rs", "pub fn alone() {}");
        assert!(found(&[face, ("crates/execute/join/Cargo.toml", "")], &[]).is_empty());
    }

    #[test]
    fn a_type_that_a_function_returns_is_used() {
        let with = |more: &str| {
            let text = format!("pub struct Kept;\nimpl Kept {{}}\n{more}");
            found(&[("crates/measure/study/src/a.rs", &text)], &[]).len()
        };
        assert_eq!(with(""), 1);
        assert_eq!(with("fn f() -> Kept { g() }"), 0);
    }

    #[test]
    fn what_is_still_there_may_not_grow() {
        let source = ("crates/measure/study/src/a.rs", "pub fn alone() {}\npub fn lonely() {}");
        assert!(found(&[source], &[("study", 2)]).is_empty());
        assert_eq!(found(&[source], &[("study", 1)]).len(), 2);
        assert!(found(&[source], &[("study", 3)])[0].contains("lower"));
    }
}
