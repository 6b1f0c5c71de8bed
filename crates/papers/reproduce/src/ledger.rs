//! The accounting of the five papers, as it comes with the command: `docs/ledger.toml`.
//!
//! A paper's experiments are rows `E0.1`, `E0.2`, …; a study names the rows it answers, and a row
//! that no study answers says why.

use std::sync::OnceLock;

use serde::Deserialize;

static TEXT: &str = include_str!("../ledger.toml");

/// One row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// Its name: `E0.4`.
    pub row: String,
    /// Its statement, in our words.
    pub words: String,
    /// Where it is carried: paths when done, the crate that is to bring it otherwise.
    #[serde(default, rename = "where")]
    pub places: Vec<String>,
    /// Why nothing answers it yet.
    #[serde(default)]
    pub reason: String,
}

impl Entry {
    /// Whether the paper only draws it: then the direction is all that can be compared (D12).
    pub fn is_curve_only(&self) -> bool {
        self.words.contains("curve only")
    }

    /// Why no study here says anything of the row.
    pub fn unanswered(&self) -> String {
        let of = |crate_name: &str| self.places.iter().any(|place| place.contains(crate_name));
        let reason = self.reason.strip_prefix("not yet: ").unwrap_or(&self.reason);
        match () {
            // Written for this row; what follows is guessed from where it lies.
            () if !reason.is_empty() => reason.to_owned(),
            // Published tables of counters, which nothing fills but counters.
            () if of("crates/measure/counters") || of("crates/papers/reproduce/published") => {
                "it takes hardware counters".to_owned()
            }
            () if of("crates/papers/simulator") => "it takes a modelled machine".to_owned(),
            () if of("crates/schedule/scheduler") => {
                "it takes the aggregating scheduler".to_owned()
            }
            () => "no study of this version measures it".to_owned(),
        }
    }
}

/// Every row.
pub fn entries() -> &'static [Entry] {
    #[derive(Deserialize)]
    struct Ledger {
        entry: Vec<Entry>,
    }
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let ledger: Ledger = toml::from_str(TEXT).expect("the tests read the same text");
        ledger.entry
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_they_wait_for() {
        let row = |name: &str| entries().iter().find(|entry| entry.row == name).unwrap();
        assert_eq!(row("E0.6").unanswered(), "it takes hardware counters");
        assert_eq!(row("E1.14").unanswered(), "it takes a modelled machine");
        // The ledger's own reason goes before a guess from the row's path.
        for (name, reason) in [
            ("E0.1", "an input: "),
            ("E0.13", "no kept run answers it: shares of the misses by function"),
            ("E1.7", "its study runs"),
            ("E3.10", "worked by hand"),
        ] {
            let said = row(name).unanswered();
            assert!(said.starts_with(reason), "{name}: {said}");
        }
        assert!(row("E0.10").is_curve_only() && !row("E0.4").is_curve_only());
    }
}
