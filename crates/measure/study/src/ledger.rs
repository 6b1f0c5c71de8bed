//! The accounting of the seeds, as it comes with the command: `docs/ledger.toml`.
//!
//! A *seed* is one of the five papers that the project grew from. Its experiments are rows `E0.1`,
//! `E0.2`, …; a study names the rows it answers, and a row that no study answers says why.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::error::StudyError;
use crate::nearest;

static TEXT: &str = include_str!("../ledger.toml");

/// One of the five papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// Its name, and the folder of its studies.
    pub name: &'static str,
    /// Authors and year.
    pub paper: &'static str,
    /// What its experiments' rows begin with.
    pub prefix: &'static str,
}

/// All five, in the ledger's order.
pub const SEEDS: [Seed; 5] = [
    Seed { name: "hassanein", paper: "Hassanein, Rashid, Hammad 2008", prefix: "E0." },
    Seed { name: "chang", paper: "Chang 2013", prefix: "E1." },
    Seed { name: "keeton", paper: "Keeton, Patterson, He, Raphael, Baker 1998", prefix: "E2." },
    Seed { name: "yamada", paper: "Yamada, Kusakabe 2008", prefix: "E3." },
    Seed { name: "zhou", paper: "Zhou, Cieslewicz, Ross, Shah 2005", prefix: "E4." },
];

/// One row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// Its name: `E0.4`.
    pub row: String,
    /// What it says, in our words.
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
            () if of("crates/measure/counters") => "it takes hardware counters".to_owned(),
            () if of("crates/papers/simulator") => "it takes a modelled machine".to_owned(),
            () if of("crates/schedule/scheduler") => {
                "it takes the aggregating scheduler".to_owned()
            }
            () if reason.is_empty() => "no study of this version measures it".to_owned(),
            () => reason.to_owned(),
        }
    }
}

impl Seed {
    /// The seed of a name.
    pub fn find(name: &str) -> Result<Seed, StudyError> {
        let found = SEEDS.iter().find(|seed| seed.name == name);
        found.copied().ok_or_else(|| {
            let known = SEEDS.map(|seed| seed.name);
            StudyError::UnknownSeed {
                given: name.to_owned(),
                remedy: nearest::remedy(name, &known),
            }
        })
    }

    /// The rows of its experiments, in order.
    pub fn rows(&self) -> impl Iterator<Item = &'static Entry> {
        let prefix = self.prefix;
        entries().iter().filter(move |entry| entry.row.starts_with(prefix))
    }

    /// Ids of the studies that come with the command and belong to it.
    pub fn studies(&self) -> Vec<&'static str> {
        let ids = crate::catalogue::all().iter().map(|study| study.id);
        ids.filter(|id| id.split_once('/').is_some_and(|(folder, _)| folder == self.name)).collect()
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
    fn every_seed_has_experiments() {
        let counted = SEEDS.map(|seed| seed.rows().count());
        assert_eq!(counted, [24, 14, 18, 10, 23]);
        assert!(Seed::find("zhou").unwrap().studies().contains(&"zhou/hash_join"));
        let unknown = Seed::find("zuo").unwrap_err().to_string();
        assert!(unknown.contains("zhou"), "{unknown}");
    }

    #[test]
    fn rows_say_what_they_wait_for() {
        let row = |name: &str| entries().iter().find(|entry| entry.row == name).unwrap();
        assert_eq!(row("E0.6").unanswered(), "it takes hardware counters");
        assert_eq!(row("E0.1").unanswered(), "it takes a modelled machine");
        assert!(row("E0.10").is_curve_only() && !row("E0.4").is_curve_only());
    }
}
