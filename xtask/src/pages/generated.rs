//! Pages that nobody writes: made from the ledger and from the command's own words.

use anyhow::{Context, Result, anyhow, ensure};

use super::program::Program;
use super::{papers, reference};
use crate::tidy::Tree;
use crate::tidy::ledger::{self, PATH};

/// Where they stand in the book. They are in `docs/SUMMARY.md` and not in `docs/`.
const PATHS: [&str; 4] = [
    "docs/papers.md",
    "docs/reference/commands.md",
    "docs/reference/studies.md",
    "docs/reference/metrics.md",
];

/// Whether a link to this page leads somewhere although no such file is tracked.
pub(crate) fn is_generated(path: &str) -> bool {
    PATHS.contains(&path)
}

/// Their texts, by path. An account with a fault (row A55) makes no page.
pub(super) fn pages(tree: &Tree, program: &Program) -> Result<Vec<(String, String)>> {
    let faults = ledger::check(tree);
    for fault in &faults {
        println!("{fault}");
    }
    ensure!(faults.is_empty(), "{PATH} has {} faults: see above", faults.len());
    let file = tree.file(PATH).with_context(|| format!("{PATH} is missing"))?;
    let entries = ledger::entries(file).map_err(|error| anyhow!("{PATH}: {error}"))?;
    let texts = [
        papers::page(tree, &entries),
        reference::commands(program)?,
        reference::studies(program)?,
        reference::metrics(program)?,
    ];
    Ok(PATHS.map(str::to_owned).into_iter().zip(texts).collect())
}

/// A text inside a table's cell.
pub(super) fn cell(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|");
    text.replace('*', "\\*").replace('_', "\\_").replace('\n', " ")
}
