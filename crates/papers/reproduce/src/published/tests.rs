//! The files: complete, named, and in step with the ledger. What their figures give is
//! [`arithmetic`]'s.

use std::collections::BTreeSet;

use super::*;
use crate::ledger::entries;
use workahead_counters::event::Privilege;

mod arithmetic;

/// Rows of the accounting that comes with the project.
fn ledger() -> BTreeSet<String> {
    entries().iter().map(|entry| entry.row.clone()).collect()
}

fn papers() -> [&'static Paper; 2] {
    [keeton(), hassanein()]
}

#[test]
fn tables_are_rectangles_with_names() {
    for table in papers().iter().flat_map(|paper| paper.tables()) {
        let names: BTreeSet<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), table.rows.len(), "{}: two rows of one name", table.id);
        let columns: BTreeSet<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(columns.len(), table.columns.len(), "{}", table.id);
        for row in &table.rows {
            assert_eq!(row.values.len(), table.columns.len(), "{}, {}", table.id, row.name);
            if let Metric::None { none, .. } = &row.metric {
                assert!(none.len() > 10, "{}, {}: why?", table.id, row.name);
            }
        }
    }
    for number in 1..=18 {
        assert!(keeton().table(&format!("Table {number}")).is_some(), "Table {number}");
    }
}

#[test]
fn every_row_of_the_ledger_is_there() {
    let known = ledger();
    let mut named = BTreeSet::new();
    for paper in papers() {
        named.extend(paper.tables().iter().flat_map(|table| table.ledger.clone()));
        named.extend(paper.claims().iter().map(|claim| claim.ledger.clone()));
    }
    let computed = derived();
    let said = contradictions();
    let rows = computed.iter().map(|of| of.row).chain(said.iter().map(|of| of.row));
    for row in rows.chain(named.iter().map(String::as_str)) {
        assert!(known.contains(row), "{row} is not in the ledger");
    }
    let experiments = known.iter().filter(|row| row.starts_with("E0.") || row.starts_with("E2."));
    for row in experiments {
        assert!(named.contains(row), "{row} has no table and no claim");
    }
}

#[test]
fn claims_are_complete() {
    let ids: BTreeSet<(u8, &str)> = (0u8..)
        .zip(papers())
        .flat_map(|(paper, of)| of.claims().iter().map(move |claim| (paper, claim.id.as_str())))
        .collect();
    assert_eq!(ids.len(), keeton().claims().len() + hassanein().claims().len());
    for claim in papers().iter().flat_map(|paper| paper.claims()) {
        assert_eq!(claim.quantity().is_some(), !claim.unit.is_empty(), "{}", claim.id);
        let says_something = claim.quantity().is_some() || claim.direction.is_some();
        assert!(says_something || claim.is_quoted(), "{}", claim.id);
    }
}

#[test]
fn quoted_lines_have_a_source_and_a_metric() {
    let lines: Vec<&Claim> = reference_lines().collect();
    let rows: BTreeSet<&str> = lines.iter().map(|line| line.ledger.as_str()).collect();
    assert_eq!(rows, BTreeSet::from(["S0.20", "S2.19"]));
    assert!(lines.iter().all(|line| line.metric.is_some() && line.source.is_some()));
    let alpha = keeton().claim("alpha-cpi").unwrap();
    assert!(alpha.source.as_ref().unwrap().contains("Alpha"));
    assert_eq!(alpha.quantity().unwrap().value(), Some(3.7));
    let spec = keeton().claim("spec-cpi").unwrap().quantity().unwrap();
    assert_eq!(spec.to_string(), "0.5 to 1.5");
    let waiting = hassanein().claim("waiting").unwrap().quantity().unwrap();
    assert_eq!(waiting.to_string(), "50 to 80");
    assert!(!keeton().claim("idle").unwrap().is_quoted());
}

#[test]
fn cells_say_what_they_stand_for() {
    let table = keeton().table("Table 12").unwrap();
    let row = table.row("Overall L2 misses").unwrap();
    assert_eq!(row.metric.name(), Some("l2_mpki"));
    let at = table.configuration(row, &table.columns[1]);
    assert_eq!(at.privilege, Some(Privilege::User));
    assert_eq!((at.l2_kib, at.processors, at.width), (Some(512), Some(4), None));
    assert_eq!(table.figure("Overall L2 misses", "512 KB").unwrap().to_string(), "11");

    let table = keeton().table("Table 18").unwrap();
    let row = table.row("Store, 2 P").unwrap();
    let at = table.configuration(row, &table.columns[0]);
    assert_eq!((at.access, at.state), (Some(Access::Store), Some(State::Modified)));
    assert_eq!(at.processors, Some(2));
    assert_eq!(row.metric.name(), None);

    let table = keeton().table("Table 16").unwrap();
    assert_eq!(table.cell("0-instruction retire, % inst.", "OS"), Some(&Cell::NotApplicable));
    assert_eq!(table.figure("0-instruction retire, % inst.", "OS"), None);
    assert_eq!(table.cell("no such row", "OS"), None);
    let three = keeton().table("Table 2").unwrap();
    let outstanding = three.cell("Outstanding bus transactions, uniprocessor", "Third");
    assert_eq!(outstanding, Some(&Cell::Blank));
    let words = keeton().table("Table 3").unwrap().cell("Associativity", "L1 Data");
    assert_eq!(words, Some(&Cell::Words("2-way".into())));
}

#[test]
fn figures_are_found_by_metric() {
    let of = |privilege, l2_kib| {
        let is_at = move |found: &PublishedFigure<'_>| {
            found.at.privilege == Some(privilege) && found.at.l2_kib == Some(l2_kib)
        };
        let found = keeton().of_metric("cpi").filter(is_at);
        found.map(|found| (found.table.id.as_str(), found.printed.to_string())).collect::<Vec<_>>()
    };
    let kernel = [("Table 10", "6.41"), ("Table 14", "6.41"), ("Figure 3", "6.41")];
    assert_eq!(of(Privilege::Kernel, 1024), kernel.map(|(id, cpi)| (id, cpi.to_owned())));
    let small = [("Table 4", "3.08"), ("Table 4", "3.02"), ("Table 14", "3.86")];
    assert_eq!(of(Privilege::Both, 256), small.map(|(id, cpi)| (id, cpi.to_owned())));
    assert_eq!(keeton().of_metric("no such metric").count(), 0);
    let usual: Vec<f64> =
        hassanein().of_metric("uops_per_instruction").map(|found| found.printed.value).collect();
    assert_eq!(usual, [1.6, 1.65, 1.62]);
}

#[test]
fn papers_name_themselves() {
    assert_eq!(hassanein().name(), "Hassanein, Rashid, Hammad 2008");
    assert!(keeton().source().contains("CSD-98-1001") && keeton().title().contains("Quad"));
}
