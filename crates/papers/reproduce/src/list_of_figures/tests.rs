//! The list: complete, in step with the ledger and with what the studies cite.

use std::collections::BTreeSet;

use workahead_study::catalogue;
use workahead_study::claim::Claim;
use workahead_study::spec::Spec;

use super::*;
use crate::ledger::{Entry, entries};
use crate::paper::{PAPERS, Paper};
use crate::published::{self, Configuration};
use crate::tables::{self, FilledTable, Source, fill};
use crate::verdicts;

/// What each document has, by its numbers: a kind, the last number, and the numbers with parts.
type Numbered = (&'static str, u8, &'static [(u8, &'static str)]);

const HASSANEIN: &[Numbered] = &[
    ("Table", 2, &[]),
    (
        "Figure",
        17,
        &[(1, "ab"), (2, "ab"), (3, "ab"), (4, "ab"), (5, "ab"), (6, "ab"), (7, "ab"), (17, "ab")],
    ),
];
const CHANG: &[Numbered] = &[("Picture", 2, &[]), ("Plan", 2, &[]), ("Chart", 19, &[])];
const KEETON: &[Numbered] = &[("Table", 18, &[]), ("Figure", 9, &[])];
const YAMADA: &[Numbered] = &[("Table", 2, &[]), ("Figure", 10, &[])];
const ZHOU: &[Numbered] = &[
    ("Table", 2, &[]),
    ("Figure", 15, &[(4, "abc"), (6, "ab"), (7, "ab"), (11, "ab"), (14, "ab")]),
];

fn ids(numbered: &[Numbered]) -> BTreeSet<String> {
    let of_kind = |(kind, last, parts): &Numbered| {
        let of_number = |number: u8| {
            let letters = parts.iter().find(|(of, _)| *of == number).map(|(_, letters)| *letters);
            let of_letter = |letter| format!("{kind} {number}{letter}");
            match letters {
                Some(letters) => letters.chars().map(|one| of_letter(one.to_string())).collect(),
                None => vec![of_letter(String::new())],
            }
        };
        (1..=*last).flat_map(of_number).collect::<Vec<_>>()
    };
    numbered.iter().flat_map(of_kind).collect()
}

fn all() -> impl Iterator<Item = (Paper, &'static Figure)> {
    PAPERS.into_iter().flat_map(|paper| of(paper.name).iter().map(move |figure| (paper, figure)))
}

fn entry(row: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.row == row)
}

/// All claims on a paper of the studies that come with the command.
fn claims(paper: Paper) -> Vec<Claim> {
    let specs = paper.studies().into_iter().map(|id| {
        let (id, text) = catalogue::find(id.as_ref()).unwrap();
        Spec::parse(&id, &text).unwrap()
    });
    let of_paper = specs.flat_map(|spec| spec.claims);
    of_paper.filter(|claim| claim.row.starts_with(paper.prefix)).collect()
}

#[test]
fn every_figure_and_table_is_there_once() {
    for (paper, numbered) in PAPERS.iter().zip([HASSANEIN, CHANG, KEETON, YAMADA, ZHOU]) {
        let listed: Vec<String> = of(paper.name).iter().map(|figure| figure.id.clone()).collect();
        let once: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(once.len(), listed.len(), "{}: one is there twice", paper.name);
        assert_eq!(once, ids(numbered), "{}", paper.name);
    }
    assert_eq!(all().count(), 112);
    assert!(of("nobody").is_empty());
}

#[test]
fn every_row_that_holds_one_is_in_the_ledger() {
    for (paper, figure) in all() {
        let Figure { id, rows, describes, .. } = figure;
        let name = paper.name;
        assert!(rows.is_empty() != describes.is_empty(), "{name}, {id}: a result, or described");
        for row in rows {
            assert!(row.starts_with(paper.prefix), "{name}, {id}: {row} is of another paper");
        }
        for row in rows.iter().chain(describes) {
            assert!(entry(row).is_some(), "{name}, {id}: the ledger has no row {row}");
        }
    }
}

/// What a figure shows is either claimed, or the list or the ledger says why not.
#[test]
fn every_figure_is_cited_or_says_why_not() {
    let mut silent = Vec::new();
    for paper in PAPERS {
        let claims = claims(paper);
        for figure in of(paper.name).iter().filter(|figure| !figure.rows.is_empty()) {
            let of_rows = || claims.iter().filter(|claim| figure.rows.contains(&claim.row));
            let is_cited = of_rows().any(|claim| figure.is_cited(&claim.figure));
            let has_reason = |row: &String| entry(row).is_some_and(|row| !row.reason.is_empty());
            let is_waiting = figure.rows.iter().all(has_reason) && of_rows().next().is_none();
            if !is_cited && !is_waiting && figure.reason.is_none() {
                silent.push(format!("{}, {}", paper.name, figure.id));
            }
            assert!(!(is_cited && figure.reason.is_some()), "{}: it is cited", figure.id);
        }
    }
    assert_eq!(silent, [""; 0]);
}

/// No claim cites a figure that is not listed, or is of another row than the figure.
#[test]
fn what_claims_cite_is_listed() {
    for paper in PAPERS {
        for claim in claims(paper) {
            for cited in claim.figure.split(", ").filter(|cited| cited.starts_with("Fig. ")) {
                let holds =
                    |figure: &&Figure| figure.is_cited(cited) && figure.rows.contains(&claim.row);
                let found = of(paper.name).iter().find(holds);
                assert!(found.is_some(), "{}: {} cites {cited}", paper.name, claim.row);
            }
        }
    }
}

#[test]
fn a_part_of_a_figure_is_not_the_other_part() {
    let figure = |paper, id: &str| of(paper).iter().find(|figure| figure.id == id).unwrap();
    let small = figure("zhou", "Figure 7a");
    assert!(small.is_cited("§6.2, Fig. 7a") && small.is_cited("Fig. 7"));
    assert!(!small.is_cited("Fig. 7b"));
    let table = figure("keeton", "Table 1");
    assert!(!table.is_cited("Fig. 3, Tab. 10") && table.is_cited("Tab. 1"));
    assert_eq!(figure("keeton", "Table 10").short(), "Tab. 10");
    let chart = figure("chang", "Chart 12");
    assert!(chart.is_cited("elapsed, DOP 1, 2, 4") && !chart.is_cited("elapsed, DOP 1, 2, 4, 8"));
}

/// The list of a page without results.
fn empty(paper: Paper, measured: bool) -> Vec<Line> {
    let rows = verdicts::rows(paper, &[]);
    lines(paper, PageContents { rows: &rows, tables: &[], measured })
}

#[test]
fn a_page_without_results_has_a_line_for_each_and_a_reason() {
    for paper in PAPERS {
        for measured in [true, false] {
            let lines = empty(paper, measured);
            assert_eq!(lines.len(), of(paper.name).len());
            for line in lines {
                let said = if measured { &line.measured } else { &line.modelled };
                let Line { figure, description, .. } = &line;
                assert_eq!(description.is_some(), said.is_none(), "{}, {figure}", paper.name);
                let reason = said.as_ref().map_or("a description", |said| said.reason.as_str());
                assert!(!reason.is_empty(), "{}, {figure}", paper.name);
            }
        }
    }
    let zhou = Paper::find("zhou").unwrap();
    let lines = empty(zhou, false);
    let set = lines.iter().find(|line| line.figure == "Figure 1").unwrap();
    assert!(set.description.as_ref().unwrap().starts_with("S4.7, Work-ahead set"), "{set:?}");
}

/// Cells stand beside claims in the two words of a table, and alone where no claim cites it.
#[test]
fn judged_cells_are_words_of_their_table() {
    let keeton = Paper::find("keeton").unwrap();
    let rows = verdicts::rows(keeton, &[]);
    let tables: Vec<FilledTable> = fill(published::keeton(), &Half)
        .into_iter()
        .map(|table| FilledTable { table: table.judged(true), modelled: true })
        .collect();
    let lines = lines(keeton, PageContents { rows: &rows, tables: &tables, measured: true });
    let said = |figure: &str| lines.iter().find(|line| line.figure == figure).unwrap();
    // Measured tables have none of them.
    assert!(said("Table 6").measured.as_ref().unwrap().words().starts_with("cannot be said"));
    assert_eq!(said("Table 6").modelled, None, "no model was run");
    let modelled =
        super::lines(keeton, PageContents { rows: &rows, tables: &tables, measured: false });
    let said = |figure: &str| {
        let line = modelled.iter().find(|line| line.figure == figure).unwrap();
        line.modelled.clone().unwrap()
    };
    let use_of_memory = said("Table 6");
    assert_eq!(use_of_memory.words(), "disagrees, beyond");
    let farthest = "2 of 9 cells within 25 %; farthest: 1 MB, 1 P, 50.0 for 14.6";
    assert_eq!(use_of_memory.reason, farthest);
    // A figure without a table of its own has the cells of its rows in others.
    assert!(said("Figure 7").reason.contains("-µop retire, % inst."), "{:?}", said("Figure 7"));
    assert!(!said("Figure 6").reason.contains("% inst."), "{:?}", said("Figure 6"));
}

/// A half of everything.
struct Half;

impl Source for Half {
    fn figure(&self, _: &str, _: &Configuration) -> Result<tables::Figure, String> {
        Ok(tables::Figure { value: 0.5, noisy: false, instead: None })
    }

    fn is_modelled(&self) -> bool {
        true
    }
}
