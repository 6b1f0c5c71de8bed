//! `cargo xtask tidy`: the rules of the house that a program can check.
//!
//! A rule is a function from the tracked files to findings; it never reads the disk itself, so
//! that each has a test that shows it failing on a bad example.

mod code;
mod edges;
pub(crate) mod ledger;
mod lengths;
pub(crate) mod links;
mod manifests;
mod packages;
mod pages;
mod places;
mod prints;
mod stubs;
mod tree;
mod unsafety;
mod words;

pub(crate) use tree::{File, Tree, host_name};

use anyhow::Result;

use crate::workspace::Workspace;

/// Something a rule has to say about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// File, relative to the root; empty for the whole.
    pub(crate) path: String,
    /// One-based line, or 0 for the whole file.
    pub(crate) line: usize,
    /// What is wrong and what to do about it.
    pub(crate) says: String,
    pub(crate) weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Warning,
    Failure,
}

impl Finding {
    pub(crate) fn at(file: &File, line: usize, says: impl Into<String>) -> Self {
        let says = says.into();
        Self { path: file.path.clone(), line, says, weight: Weight::Failure }
    }

    pub(crate) fn of_file(file: &File, says: impl Into<String>) -> Self {
        Self::at(file, 0, says)
    }

    pub(crate) fn of_path(path: impl Into<String>, says: impl Into<String>) -> Self {
        Self { path: path.into(), line: 0, says: says.into(), weight: Weight::Failure }
    }

    pub(crate) fn warning(self) -> Self {
        Self { weight: Weight::Warning, ..self }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.weight {
            Weight::Warning => "warning",
            Weight::Failure => "error",
        };
        match self.line {
            0 => write!(f, "{}: {word}: {}", self.path, self.says),
            line => write!(f, "{}:{line}: {word}: {}", self.path, self.says),
        }
    }
}

/// The rules, by the name that the summary gives them.
type Rule = fn(&Tree) -> Vec<Finding>;
const RULES: [(&str, Rule); 12] = [
    ("edges", edges::check),
    ("ledger", ledger::check),
    ("lengths", lengths::check),
    ("links", links::check),
    ("manifests", manifests::check),
    ("packages", packages::check),
    ("pages", pages::check),
    ("places", places::check),
    ("prints", prints::check),
    ("stubs", stubs::check),
    ("unsafe", unsafety::check),
    ("words", words::check),
];

/// Checks the tracked files; true when nothing failed.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let tree = Tree::tracked(workspace)?;
    let findings: Vec<Finding> = RULES.iter().flat_map(|(_, rule)| rule(&tree)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    let failures = findings.iter().filter(|finding| finding.weight == Weight::Failure).count();
    let warnings = findings.len() - failures;
    let names: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
    println!(
        "tidy: {} files, rules {}: {failures} errors, {warnings} warnings",
        tree.files.len(),
        names.join(", "),
    );
    Ok(failures == 0)
}
