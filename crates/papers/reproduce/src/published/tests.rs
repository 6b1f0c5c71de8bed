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
fn every_row_that_they_name_is_in_the_ledger() {
    let known = ledger();
    let mut named = BTreeSet::new();
    for paper in papers() {
        named.extend(paper.tables().iter().flat_map(|table| table.ledger.clone()));
        named.extend(paper.claims.iter().map(|claim| claim.ledger.clone()));
    }
    let computed = derived();
    let said = contradictions();
    let rows = computed.iter().map(|of| of.row).chain(said.iter().map(|of| of.row));
    for row in rows.chain(named.iter().map(String::as_str)) {
        assert!(known.contains(row), "{row} is not in the ledger");
    }
}

#[test]
fn claims_are_complete() {
    let ids: BTreeSet<(u8, &str)> = (0u8..)
        .zip(papers())
        .flat_map(|(paper, of)| of.claims.iter().map(move |claim| (paper, claim.id.as_str())))
        .collect();
    assert_eq!(ids.len(), keeton().claims.len() + hassanein().claims.len());
    for claim in papers().iter().flat_map(|paper| &paper.claims) {
        assert!(claim.quantity().is_some() && !claim.unit.is_empty(), "{}", claim.id);
    }
}

#[test]
fn cells_say_what_they_stand_for() {
    let table = keeton().table("Table 12").unwrap();
    let row = table.row("Overall L2 misses").unwrap();
    assert_eq!(row.metric.name(), Some("l2_mpki"));
    let at = table.configuration(row, &table.columns[1]);
    assert_eq!(at.privilege, Some(Privilege::User));
    assert_eq!((at.l2_kib, at.processors), (Some(512), Some(4)));
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
fn papers_name_themselves() {
    assert_eq!(hassanein().name(), "Hassanein, Rashid, Hammad 2008");
    assert!(keeton().source().contains("CSD-98-1001") && keeton().title().contains("Quad"));
}
