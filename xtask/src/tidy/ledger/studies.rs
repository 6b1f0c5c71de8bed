//! The studies that ship, held against the accounting: what a study claims to answer, the row's
//! entry must know, and the other way round.

use super::{Entry, line_of};
use crate::tidy::{File, Finding, Tree};

/// A study's claims.
struct Study<'a> {
    id: &'a str,
    file: &'a File,
    rows: Vec<String>,
    /// Rows whose figures it quotes (`[[paper]]`).
    quoted: Vec<String>,
}

pub(super) fn check(tree: &Tree, ledger: &File, entries: &[Entry]) -> Vec<Finding> {
    let studies: Vec<Study<'_>> = tree.files.iter().filter_map(study).collect();
    let mut findings = Vec::new();
    for study in &studies {
        findings.extend(study.rows.iter().filter_map(|row| claimed(study, row, ledger, entries)));
        for row in study.quoted.iter().filter(|row| !study.rows.contains(row)) {
            let says = format!("quotes {row}, which is not in its `ledger`");
            findings.push(Finding::of_file(study.file, says));
        }
    }
    for entry in entries {
        let line = line_of(ledger, &entry.row);
        for id in &entry.studies {
            let study = studies.iter().find(|study| study.id == id);
            let says = match study {
                Some(study) if study.rows.contains(&entry.row) => continue,
                Some(_) => format!("row {}: `{id}` does not name it in `ledger`", entry.row),
                None => format!("row {}: no study `{id}`", entry.row),
            };
            findings.push(Finding::at(ledger, line, says));
        }
    }
    findings
}

/// The faults of a study's claim to answer a row.
fn claimed(study: &Study<'_>, row: &str, ledger: &File, entries: &[Entry]) -> Option<Finding> {
    let Some(entry) = entries.iter().find(|entry| entry.row == *row) else {
        return Some(Finding::of_file(study.file, format!("the papers have no row {row}")));
    };
    let known = entry.studies.iter().any(|id| id == study.id);
    let says = format!("row {row}: `{}` answers it; add it to `study`", study.id);
    (!known).then(|| Finding::at(ledger, line_of(ledger, row), says))
}

/// A study that does not parse is refused by the crate that embeds it, with its own words.
fn study(file: &File) -> Option<Study<'_>> {
    let id = file.path.strip_prefix("studies/")?.strip_suffix(".toml")?;
    let table = file.text.parse::<toml::Table>().ok()?;
    let array = |name: &str| table.get(name).and_then(toml::Value::as_array).into_iter().flatten();
    let text = |value: &toml::Value| value.as_str().map(str::to_owned);
    let rows = array("ledger").filter_map(text).collect();
    let quoted = array("paper").filter_map(|claim| text(claim.get("row")?)).collect();
    Some(Study { id, file, rows, quoted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::ledger::{PATH, entries};

    fn found(studies: &str, file: &str) -> Vec<String> {
        let ledger = format!("[[entry]]\nrow = \"E4.6\"\nwords = \"x\"\nstudy = {studies}\n");
        let tree = Tree::of(&[(PATH, &ledger), ("studies/zhou/hash_join.toml", file)]);
        let ledger = tree.file(PATH).unwrap();
        let entries = entries(ledger).unwrap();
        check(&tree, ledger, &entries).into_iter().map(|finding| finding.says).collect()
    }

    const ANSWERS: &str = "ledger = [\"E4.6\"]\n";

    #[test]
    fn a_row_and_its_study_know_each_other() {
        assert!(found("[\"zhou/hash_join\"]", ANSWERS).is_empty());
        let unknown = ["row E4.6: `zhou/hash_join` answers it; add it to `study`"];
        assert_eq!(found("[]", ANSWERS), unknown);
        let silent = ["row E4.6: `zhou/hash_join` does not name it in `ledger`"];
        assert_eq!(found("[\"zhou/hash_join\"]", ""), silent);
        assert_eq!(found("[\"zhou/other\"]", ""), ["row E4.6: no study `zhou/other`"]);
    }

    #[test]
    fn a_study_answers_only_rows_that_exist() {
        assert_eq!(found("[]", "ledger = [\"E4.99\"]"), ["the papers have no row E4.99"]);
    }

    #[test]
    fn a_figure_that_is_quoted_is_answered() {
        let quotes = "[[paper]]\nrow = \"E4.6\"\n";
        assert_eq!(found("[]", quotes), ["quotes E4.6, which is not in its `ledger`"]);
        assert!(found("[\"zhou/hash_join\"]", &(ANSWERS.to_owned() + quotes)).is_empty());
    }
}
