//! The page of a reproduction: well formed, and open from a disk without a network.

#[path = "../../../measure/report/tests/alone/mod.rs"]
mod alone;

use std::path::Path;

use workahead_reproduce::page::{Parts, Reproduction};
use workahead_reproduce::paper::Paper;
use workahead_reproduce::published::{Configuration, keeton};
use workahead_reproduce::tables::{Figure, FilledTable, Source, fill};
use workahead_reproduce::verdicts;

#[test]
fn a_page_without_studies() {
    let paper = Paper::find("hassanein").unwrap();
    let page = Reproduction::new(Parts {
        paper,
        machine: "a machine <b>".to_owned(),
        tier: Some("C".to_owned()),
        scale: None,
        rows: verdicts::rows(paper, &[]),
        tables: Vec::new(),
        studies: Vec::new(),
    });
    let html = page.html().unwrap();
    assert_eq!(alone::faults(&html), [""; 0]);
    assert!(html.contains("24 cannot be said here"), "{html}");
    assert!(html.contains("it takes hardware counters"));
}

/// Half of everything.
struct Half;

impl Source for Half {
    fn figure(&self, _: &str, _: &Configuration) -> Result<Figure, String> {
        Ok(Figure { value: 0.5, noisy: false, instead: None })
    }

    fn is_modelled(&self) -> bool {
        true
    }
}

/// Each cell has its size, each table its words, and the list of figures has them too.
#[test]
fn a_page_with_tables_judges_their_cells() {
    let paper = Paper::find("keeton").unwrap();
    let tables = fill(keeton(), &Half).into_iter();
    let page = Reproduction::new(Parts {
        paper,
        machine: "a machine".to_owned(),
        tier: None,
        scale: None,
        rows: verdicts::rows(paper, &[]),
        tables: tables
            .map(|table| FilledTable { table: table.judged(true), modelled: true })
            .collect(),
        studies: Vec::new(),
    });
    let html = page.html().unwrap();
    assert_eq!(alone::faults(&html), [""; 0]);
    let said = "2 of 9 cells within 25 %; farthest: 1 MB, 1 P, 50.0 for 14.6";
    assert_eq!(html.matches(said).count(), 2, "in the list, and below its table");
    assert!(html.contains("50.0<br><small>beyond</small>"));
    assert!(html.contains("an input of the model, which is not judged"));
    let table = page.tables.iter().find(|table| table.table.id == "Table 6").unwrap();
    assert_eq!(table.cells.as_ref().unwrap().words(), "disagrees, beyond");
    // To look at it.
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("tables.html"), html).unwrap();
}
