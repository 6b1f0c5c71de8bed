//! The accounting (row A55): every row of the five papers has its place in `docs/ledger.toml`, and
//! what an entry claims to be there is there.
//!
//! ```text
//!  done      where = paths that exist, test = a path, study = ids that ship, an answer
//!  not yet   reason = what it waits for; where = the crate that is to bring it
//! ```
//!
//! An experiment that is done has a mark too (row D1): the engines of its studies say it, or
//! `mark = "arithmetic"` where its figures are computed from those that the paper prints.
//!
//! An experiment is done when a kept run answered it: `measured` and `modelled` are the words of
//! `bench/record/papers/` (each kept row against its entry), and one of them at least agrees or
//! disagrees. A study without any verdict is not an answer: such a row has a reason.
//!
//! A study names the rows it answers (`ledger = ["E4.6"]`, and the `row` of what the paper says);
//! the row's entry names the study. Each is held against the other.

mod marks;
mod records;
mod studies;

pub(crate) use marks::{Engines, MARKS, marks};

use serde::Deserialize;

use super::{File, Finding, Tree};

/// Where the entries are.
pub(crate) const PATH: &str = "docs/ledger.toml";

/// The rows, by prefix and last number. Rows count from 1 (HW, from 0).
const ROWS: [(&str, u32, u32); 19] = [
    ("S0.", 1, 20),
    ("S1.", 1, 23),
    ("S2.", 1, 20),
    ("S3.", 1, 29),
    ("S4.", 1, 31),
    ("E0.", 1, 24),
    ("E1.", 1, 14),
    ("E2.", 1, 18),
    ("E3.", 1, 10),
    ("E4.", 1, 23),
    ("HW", 0, 4),
    ("L0.", 1, 7),
    ("L1.", 1, 12),
    ("L2.", 1, 11),
    ("L3.", 1, 7),
    ("L4.", 1, 9),
    ("LX.", 1, 3),
    ("A", 1, 55),
    ("D", 1, 12),
];

/// Hardware that the papers name without a number.
const ROWS_UNNUMBERED: [&str; 3] = ["HW-SMP-NUMA", "HW-4T", "HW-VM"];

const DIRECTIONS: [&str; 3] = ["agrees", "disagrees", "cannot be said here"];
const SIZES: [&str; 5] = ["within 10 %", "within 25 %", "within 2×", "beyond", "no figure"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    entry: Vec<Entry>,
}

/// One row's account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) row: String,
    /// The row's statement, in our words.
    pub(crate) words: String,
    /// Code that carries it: paths when done, the crate to come otherwise.
    #[serde(rename = "where", default)]
    pub(crate) places: Vec<String>,
    /// The file that proves it.
    #[serde(default)]
    pub(crate) test: String,
    /// Ids of the studies that measure it.
    #[serde(default, rename = "study")]
    pub(crate) studies: Vec<String>,
    /// The verdict by measurement, where the row is an experiment: direction and size, as
    /// `agrees, within 25 %`.
    #[serde(default)]
    pub(crate) measured: String,
    /// The verdict by models.
    #[serde(default)]
    pub(crate) modelled: String,
    /// `arithmetic`, where figures are computed from published ones.
    #[serde(default)]
    pub(crate) mark: String,
    /// Why it is not done, or not done by measuring.
    #[serde(default)]
    pub(crate) reason: String,
}

impl Entry {
    /// An entry without a reason claims that its row is carried by what it names.
    pub(crate) fn done(&self) -> bool {
        self.reason.is_empty()
    }
}

/// The direction of a verdict's two words.
pub(crate) fn direction(verdict: &str) -> &str {
    verdict.split_once(", ").map_or(verdict, |(direction, _)| direction)
}

/// Whether something was said.
fn is_answer(verdict: &str) -> bool {
    matches!(direction(verdict), "agrees" | "disagrees")
}

/// Every row id, in the ledger's order.
pub(crate) fn rows() -> Vec<String> {
    let numbered = ROWS.iter().flat_map(|(prefix, first, last)| {
        (*first..=*last).map(move |number| format!("{prefix}{number}"))
    });
    numbered.chain(ROWS_UNNUMBERED.iter().map(|row| (*row).to_owned())).collect()
}

/// Reads the entries.
pub(crate) fn entries(file: &File) -> Result<Vec<Entry>, String> {
    let ledger: Ledger = toml::from_str(&file.text).map_err(|error| error.to_string())?;
    Ok(ledger.entry)
}

/// The faults of the ledger, row by row.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::of_path(PATH, "missing: every row of the papers is accounted there")];
    };
    let entries = match entries(file) {
        Ok(entries) => entries,
        Err(error) => return vec![Finding::of_file(file, error)],
    };
    let known = rows();
    let engines = Engines::of(tree);
    let mut findings = Vec::new();
    for row in &known {
        let count = entries.iter().filter(|entry| entry.row == *row).count();
        if count != 1 {
            findings.push(Finding::of_file(file, format!("row {row} has {count} entries")));
        }
    }
    for entry in &entries {
        if !known.contains(&entry.row) {
            let says = format!("row {}: the papers have no such row", entry.row);
            findings.push(Finding::of_file(file, says));
        }
        let line = line_of(file, &entry.row);
        findings.extend(
            faults(tree, entry, &engines)
                .map(|says| Finding::at(file, line, format!("row {}: {says}", entry.row))),
        );
    }
    findings.extend(studies::check(tree, file, &entries));
    findings.extend(records::check(tree, file, &entries));
    findings
}

fn line_of(file: &File, row: &str) -> usize {
    let line = format!("row = \"{row}\"");
    file.lines().find(|(_, text)| text.trim() == line).map_or(0, |(number, _)| number)
}

/// The faults of one entry.
fn faults(tree: &Tree, entry: &Entry, engines: &Engines) -> impl Iterator<Item = String> {
    let mut faults = Vec::new();
    if entry.words.trim().is_empty() {
        faults.push("no words".to_owned());
    }
    for verdict in [&entry.measured, &entry.modelled] {
        let known = match verdict.split_once(", ") {
            Some((direction, size)) => DIRECTIONS.contains(&direction) && SIZES.contains(&size),
            None => verdict.is_empty(),
        };
        if !known {
            faults.push(format!("verdict `{verdict}` is not a direction and a size"));
        }
    }
    let arithmetic = entry.mark == marks::ARITHMETIC;
    if !(arithmetic || entry.mark.is_empty()) || (arithmetic && !entry.row.starts_with('E')) {
        faults.push(format!("mark `{}`: an experiment may say `arithmetic`", entry.mark));
    }
    if !entry.done() {
        return faults.into_iter();
    }
    if entry.places.is_empty() {
        faults.push("says neither where it is nor a reason".to_owned());
    }
    for place in entry.places.iter().filter(|place| !tree.has(place)) {
        faults.push(format!("`{place}` does not exist"));
    }
    if !entry.test.is_empty() && !tree.has(&entry.test) {
        faults.push(format!("the test `{}` does not exist", entry.test));
    }
    if entry.row.starts_with('A') && entry.test.is_empty() {
        faults.push("an acceptance row names the test that proves it".to_owned());
    }
    let studied = arithmetic || !entry.studies.is_empty();
    let answered = is_answer(&entry.measured) || is_answer(&entry.modelled);
    if entry.row.starts_with('E') && !(answered && studied) {
        let says = "an experiment without a reason has a kept answer, and a study or `mark`";
        faults.push(says.to_owned());
    } else if entry.row.starts_with('E') && marks(entry, engines).is_empty() {
        faults.push("neither real nor modelled: its studies name no engine".to_owned());
    }
    faults.into_iter()
}

#[cfg(test)]
mod tests;
