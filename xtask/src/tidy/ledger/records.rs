//! The last full runs that are kept, `bench/record/papers/PAPER-TIER.json` as `reproduce --json`
//! prints them, held against the accounting: each row's two words are those of its entry.

use serde::Deserialize;

use super::{Entry, line_of};
use crate::tidy::{File, Finding, Tree};

const FOLDER: &str = "bench/record/papers/";

/// A reproduction, as far as the accounting reads it.
#[derive(Deserialize)]
struct Reproduction {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    row: String,
    measured: Judgement,
    modelled: Option<Judgement>,
}

#[derive(Deserialize)]
struct Judgement {
    direction: String,
    size: String,
}

impl Judgement {
    fn words(&self) -> String {
        format!("{}, {}", self.direction.replace('_', " "), self.size)
    }
}

pub(super) fn check(tree: &Tree, ledger: &File, entries: &[Entry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut kept: [Vec<(String, String)>; 2] = [Vec::new(), Vec::new()];
    let files = tree.files.iter().filter(|file| file.path.starts_with(FOLDER));
    for file in files.filter(|file| file.path.ends_with(".json")) {
        let rows = match serde_json::from_str::<Reproduction>(&file.text) {
            Ok(reproduction) => reproduction.rows,
            Err(error) => {
                findings.push(Finding::of_file(file, error.to_string()));
                continue;
            }
        };
        let is_modelled = file.path.ends_with("-modelled.json");
        for Row { row, measured, modelled } in rows {
            let said = if is_modelled { modelled } else { Some(measured) };
            kept[usize::from(is_modelled)].extend(said.map(|said| (row, said.words())));
        }
    }
    for entry in entries.iter().filter(|entry| entry.row.starts_with('E')) {
        let tiers = [("measured", &entry.measured), ("modelled", &entry.modelled)];
        for ((tier, ours), kept) in tiers.into_iter().zip(&kept) {
            let of_row = kept.iter().find(|(row, _)| *row == entry.row);
            let kept = of_row.map_or("", |(_, words)| words.as_str());
            if ours != kept {
                let says = match kept {
                    "" => format!("row {}: no kept run has {tier} it", entry.row),
                    kept => format!("row {}: the kept run has {tier} = \"{kept}\"", entry.row),
                };
                findings.push(Finding::at(ledger, line_of(ledger, &entry.row), says));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::ledger::{PATH, entries};

    const KEPT: &str = r#"{"rows": [{"row": "E4.6",
        "measured": {"direction": "cannot_be_said_here", "size": "no figure"},
        "modelled": {"direction": "agrees", "size": "within 10 %"}}]}"#;

    fn found(words: &str, file: &str) -> Vec<String> {
        let ledger = format!("[[entry]]\nrow = \"E4.6\"\nwords = \"x\"\n{words}\n");
        let path = format!("{FOLDER}zhou-{file}.json");
        let tree = Tree::of(&[(PATH, &ledger), (&path, KEPT)]);
        let ledger = tree.file(PATH).unwrap();
        let entries = entries(ledger).unwrap();
        check(&tree, ledger, &entries).into_iter().map(|finding| finding.says).collect()
    }

    #[test]
    fn entries_say_what_was_kept() {
        assert!(found("modelled = \"agrees, within 10 %\"", "modelled").is_empty());
        assert!(found("measured = \"cannot be said here, no figure\"", "measured").is_empty());
        let other = ["row E4.6: the kept run has modelled = \"agrees, within 10 %\""];
        assert_eq!(found("modelled = \"agrees, beyond\"", "modelled"), other);
        let never = found("measured = \"agrees, beyond\"", "modelled");
        assert_eq!(never[0], "row E4.6: no kept run has measured it");
    }
}
