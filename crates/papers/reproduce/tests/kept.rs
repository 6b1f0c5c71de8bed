//! The last runs that are kept, as pages: a reader with a document in hand finds every figure
//! and table of it, with two words and, where one is bad, the reason.

#[path = "../../../measure/report/tests/alone/mod.rs"]
mod alone;

use std::path::Path;

use serde::Deserialize;
use workahead_reproduce::page::{Parts, Reproduction};
use workahead_reproduce::paper::{PAPERS, Paper};
use workahead_reproduce::verdicts::{self, ClaimVerdict};
use workahead_study::verdict::{Judgement, Word};

/// What is read back of `bench/record/papers/PAPER-modelled.json`.
#[derive(Deserialize)]
struct Record {
    rows: Vec<RecordRow>,
}

#[derive(Deserialize)]
struct RecordRow {
    row: String,
    figures: Vec<String>,
    modelled: Option<Judgement>,
    claims: Vec<ClaimVerdict>,
}

fn page(paper: Paper) -> Reproduction {
    let folder = manifest_folder().join("../../../bench/record/papers");
    let path = folder.join(format!("{}-modelled.json", paper.name));
    let kept: Record = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut rows = verdicts::rows(paper, &[]);
    assert_eq!(rows.len(), kept.rows.len());
    for (row, kept) in rows.iter_mut().zip(kept.rows) {
        assert_eq!((&row.row, &row.figures), (&kept.row, &kept.figures));
        (row.modelled, row.claims) = (kept.modelled, kept.claims);
    }
    Reproduction::new(Parts {
        paper,
        machine: "Modelled machines".to_owned(),
        tier: None,
        scale: None,
        rows,
        tables: Vec::new(),
        studies: Vec::new(),
    })
}

#[test]
fn every_figure_has_two_words_and_bad_ones_a_reason() {
    for paper in PAPERS {
        let page = page(paper);
        let html = page.html().unwrap();
        assert_eq!(alone::faults(&html), [""; 0]);
        for line in &page.figures {
            let (name, figure) = (paper.name, &line.figure);
            assert!(html.contains(&format!("<td class=\"w\">{figure}</td>")), "{name}, {figure}");
            let Some(said) = &line.modelled else {
                let description = line.description.as_ref().unwrap();
                assert!(html.contains("a description: "), "{name}, {figure}: {description}");
                continue;
            };
            let is_named = said.direction == Word::Agrees || said.reason.len() > 10;
            assert!(is_named, "{name}, {figure}: {said:?}");
        }
        for row in &page.rows {
            let at = format!("<tr class=\"row\" id=\"{}\">", row.row);
            assert_eq!(html.matches(&at).count(), 1, "{at}");
        }
        assert!(!html.contains("<td></td><td>–</td>") && !html.contains("no modelled study"));
        // To look at them.
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reproduce");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("{}.html", paper.name)), html).unwrap();
    }
}

/// The part of a figure that is cited decides, not the row that both parts are in.
#[test]
fn parts_of_one_row_have_words_of_their_own() {
    let page = page(Paper::find("zhou").unwrap());
    let said = |figure: &str| {
        let line = page.figures.iter().find(|line| line.figure == figure).unwrap();
        line.modelled.clone().unwrap()
    };
    assert_eq!(said("Figure 7a").direction, Word::Disagrees);
    assert_eq!(said("Figure 7b").direction, Word::CannotBeSaidHere);
    assert_eq!(said("Figure 15").words(), "agrees, within 10 %");
    assert_eq!(said("Table 2").words(), "cannot be said here, no figure");
    assert!(said("Table 2").reason.contains("it takes siblings"), "{:?}", said("Table 2"));
}

/// Cycles an instruction are not the mix of instructions.
#[test]
fn a_table_has_no_words_of_other_claims() {
    let page = page(Paper::find("hassanein").unwrap());
    let line = page.figures.iter().find(|line| line.figure == "Table 1").unwrap();
    let said = line.modelled.as_ref().unwrap();
    assert_eq!(said.direction, Word::CannotBeSaidHere);
    assert_eq!(said.reason, "no claim is about it: those of E0.2 cite text 4");
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
