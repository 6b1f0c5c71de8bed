//! `cargo xtask tidy`: the rules of the house that a program can check.
//!
//! A rule is a function from the tracked files to findings; it never reads the disk itself, so
//! that each has a test that shows it failing on a bad example.

mod checkouts;
mod code;
mod components;
mod dead;
mod edges;
mod finding;
pub(crate) mod ledger;
mod lengths;
pub(crate) mod links;
mod manifests;
mod modules;
mod packages;
mod pages;
mod places;
mod prints;
mod stubs;
mod tree;
mod unsafety;
mod unused;
mod words;

pub(crate) use finding::{Finding, Weight};
pub(crate) use tree::{File, Tree, host_name};

use anyhow::Result;

use crate::workspace::Workspace;

/// The rules, by the name that the summary gives them.
type Rule = fn(&Tree) -> Vec<Finding>;
const RULES: [(&str, Rule); 16] = [
    ("checkouts", checkouts::check),
    ("components", components::check),
    ("dead files", dead::check),
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
    ("unused", unused::check),
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
