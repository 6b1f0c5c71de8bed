//! The page of a reproduction: well formed, and open from a disk without a network.

#[path = "../../../measure/report/tests/alone/mod.rs"]
mod alone;

use workahead_reproduce::page::{Parts, Reproduction};
use workahead_reproduce::paper::Paper;
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
