//! The five papers that the project reproduces.

use workahead_study::catalogue::EmbeddedFile;
use workahead_study::{catalogue, nearest};

use crate::error::ReproduceError;
use crate::ledger::{Entry, entries};
use crate::published;

/// One of the five papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    /// Its name, and the folder of its studies.
    pub name: &'static str,
    /// Authors and year.
    pub authors: &'static str,
    /// The prefix of its experiments' rows.
    pub prefix: &'static str,
}

/// All five, in the ledger's order.
pub const PAPERS: [Paper; 5] = [
    Paper { name: "hassanein", authors: "Hassanein, Rashid, Hammad 2008", prefix: "E0." },
    Paper { name: "chang", authors: "Chang 2013", prefix: "E1." },
    Paper { name: "keeton", authors: "Keeton, Patterson, He, Raphael, Baker 1998", prefix: "E2." },
    Paper { name: "yamada", authors: "Yamada, Kusakabe 2010", prefix: "E3." },
    Paper { name: "zhou", authors: "Zhou, Cieslewicz, Ross, Shah 2005", prefix: "E4." },
];

impl Paper {
    /// The paper of a name.
    pub fn find(name: &str) -> Result<Paper, ReproduceError> {
        let found = PAPERS.iter().find(|paper| paper.name == name);
        found.copied().ok_or_else(|| {
            let known = PAPERS.map(|paper| paper.name);
            ReproduceError::UnknownPaper {
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

    /// Its printed figures, where its tables are kept.
    pub fn published(&self) -> Option<&'static published::Paper> {
        match self.name {
            "keeton" => Some(published::keeton()),
            "hassanein" => Some(published::hassanein()),
            _ => None,
        }
    }

    /// Ids of the studies that come with the command and belong to it: those in its folder, and
    /// others that claim something of its experiments.
    pub fn studies(&self) -> Vec<&'static str> {
        let is_own = |id: &str| id.split_once('/').is_some_and(|(folder, _)| folder == self.name);
        let (own, others): (Vec<&EmbeddedFile>, Vec<&EmbeddedFile>) =
            catalogue::all().iter().partition(|study| is_own(study.id));
        let claims = |text: &str| {
            let claimed = format!("row = \"{}", self.prefix);
            text.lines().any(|line| line.starts_with(&claimed))
        };
        let others = others.into_iter().filter(|study| claims(study.text));
        own.into_iter().chain(others).map(|study| study.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_has_experiments() {
        let counted = PAPERS.map(|paper| paper.rows().count());
        assert_eq!(counted, [24, 14, 18, 10, 23]);
        assert!(Paper::find("zhou").unwrap().studies().contains(&"zhou/hash_join"));
        let chang = Paper::find("chang").unwrap().studies();
        assert!(chang.contains(&"beyond/index_latches") && !chang.contains(&"beyond/roles"));
        let unknown = Paper::find("zuo").unwrap_err().to_string();
        assert!(unknown.contains("zhou"), "{unknown}");
    }
}
