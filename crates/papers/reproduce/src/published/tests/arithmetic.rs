//! Sums of the printed figures, by hand, and their contradictions.

use crate::published::{
    Agreement, Contradiction, Nature, RecomputedFigure, contradictions, derived,
};

/// The one that says this, to this number of decimals.
fn gives(says: &str, ours: f64, decimals: i32) {
    let found: Vec<RecomputedFigure> =
        derived().into_iter().filter(|of| of.says.contains(says)).collect();
    assert_eq!(found.len(), 1, "{says}: {} of them", found.len());
    let half = 0.5 * 10f64.powi(-decimals) + 1e-9;
    assert!((found[0].ours - ours).abs() <= half, "{says}: {} is not {ours}", found[0].ours);
    assert!(found[0].range.0 <= found[0].ours && found[0].ours <= found[0].range.1);
}

fn agreement(says: &str) -> Agreement {
    let found = derived().into_iter().find(|of| of.says.contains(says));
    found.unwrap_or_else(|| panic!("none says {says}")).agreement
}

#[test]
fn decompositions_of_table_10() {
    gives("sum of the parts (Table 10, Computed, CPI, DB)", 2.55, 2);
    gives("sum of the parts (Table 10, Computed, CPI, OS)", 6.04, 2);
    gives("sum of the parts (Table 10, Computed, CPI, Overall)", 2.90, 2);
    gives("Database, 1 MB: computed against measured CPI, %", 1.2, 1);
    gives("OS, 1 MB: computed against measured CPI, %", -5.8, 1);
    gives("Overall, 1 MB: computed against measured CPI, %", 0.0, 1);
    // 2.90 where it prints 2.89: the parts are rounded too.
    assert_eq!(agreement("(Table 10, Computed, CPI, Overall)"), Agreement::WithinRounding);
    assert_eq!(agreement("(Table 10, Computed, CPI, DB)"), Agreement::Same);
}

#[test]
fn computation_of_table_17() {
    gives("the example's computation µCPI", 0.535, 3);
    gives("computation µCPI with 0.33 (Table 10, Computation, CPµ, Overall)", 0.533, 3);
    gives("computation µCPI with 0.33 (Table 10, Computation, CPµ, DB)", 0.527, 3);
    gives("computation µCPI with 0.33 (Table 10, Computation, CPµ, OS)", 0.554, 3);
    for column in ["Overall", "DB", "OS"] {
        let says = format!("computation µCPI with 1/3 (Table 10, Computation, CPµ, {column})");
        assert_ne!(agreement(&says), Agreement::Disagrees, "{column}");
    }
}

#[test]
fn bars_of_figure_8() {
    gives("256 KB: non-overlapped CPI that Figure 8 implies", 6.23, 2);
    gives("512 KB: non-overlapped CPI that Figure 8 implies", 4.88, 2);
    gives("1 MB: non-overlapped CPI that Figure 8 implies", 4.14, 2);
    gives("256 KB: what Figure 8 leaves for ITLB and minor stalls", 0.21, 2);
}

#[test]
fn mixtures() {
    gives("CPIs mixed by time", 2.91, 2);
    assert_eq!(agreement("CPIs mixed by time"), Agreement::WithinRounding);
    gives(
        "database's and system's by instructions (Table 11, Instruction fetches, 1 MB)",
        1585.4,
        1,
    );
    gives("share of cycles in the database by µCPI, %", 77.8, 1);
}

#[test]
fn profiles_of_tables_15_to_17() {
    gives("CPI out of the retire profile (Table 10, Measured, CPI, Overall)", 2.84, 2);
    gives("µCPI out of the retire profile (Table 10, Measured, CPµ, Overall)", 1.57, 2);
    gives("decoded over retired (Table 5, Speculative exec. factor, Overall)", 1.42, 2);
    let shares: Vec<RecomputedFigure> =
        derived().into_iter().filter(|of| of.says.starts_with("out of the shares")).collect();
    assert_eq!(shares.len(), 27);
    assert!(shares.iter().all(RecomputedFigure::agrees), "their own % of instructions");
}

#[test]
fn the_other_paper() {
    gives("latency of L1 in cycles", 4.0, 1);
    gives("latency of L2 in cycles", 28.1, 1);
    gives("latency of Memory in cycles", 468.9, 1);
    for query in ["uTPC-C", "uSS", "uNJ"] {
        let says = format!("Memory instructions, in the text, {query}");
        assert_eq!(agreement(&says), Agreement::Same);
    }
}

/// The one of this place.
fn contradiction(place: &str) -> Contradiction {
    let found: Vec<Contradiction> =
        contradictions().into_iter().filter(|of| of.place.contains(place)).collect();
    assert_eq!(found.len(), 1, "{place}: {found:?}");
    found.into_iter().next().expect("one")
}

#[test]
fn where_the_paper_contradicts_itself() {
    for (place, text, table) in [
        ("L2 miss rates decrease by 31 %", "31", "43.75"),
        ("Table 11, L1 D-cache miss ratio, 256 KB", "7", "12.34"),
        ("Table 13, L1 D-cache miss ratio, 256 KB", "9", "31.25"),
        ("the example's computation CPI", "1.00", "0.9842"),
        ("about 90 L1 instruction-cache misses", "about 90", "0.09300"),
        ("about 50 L1 data-cache misses", "about 50", "0.05100"),
        ("Database, 1 MB: size of that error", "3 to 5", "1.190"),
        ("Database, 512 KB: size of that error", "3 to 5", "0.3460"),
        ("Table 9, Store, 4 P, all states, %", "100", "99.00"),
        ("Figure 8, caption", "Table 12", "Table 3"),
        ("instruction and data misses (Table 11, Overall L2 misses, 512 KB)", "11", "14.00"),
        ("by Table 8 (Table 11, Overall L2 misses, 512 KB)", "11", "13.58"),
        ("(Table 5, BTB miss ratio, Overall)", "55.7", "52.79"),
        ("only 0.33 % of database accesses", "0.33", "0.3723"),
        ("only 0.47 % of the system's accesses", "0.47", "0.5220"),
        ("Table 8, 1 MB, 2 P over Table 8, 1 MB, 1 P", "2", "10.18"),
        ("observations left of five runs", "at least 30", "28.00"),
        ("clients from 1 to 10", "1 to 10 by 2", "[1, 3, 5, 7, 9] never gets to 10"),
    ] {
        let found = contradiction(place);
        assert_eq!(found.text_says, text, "{place}");
        assert!(found.table_says.starts_with(table), "{place}: {}", found.table_says);
    }
}

#[test]
fn what_rounding_explains_is_no_contradiction() {
    let all = contradictions();
    for fits in [
        "Table 10, Computed",
        "Table 11, Overall L2 misses, 1 MB",
        "Table 15, Database, all widths",
        "Table 18, Store, 4 P",
        "by another 33 %",
        "with the overall µops per instruction",
        "data references out of the L1D ratio",
    ] {
        assert!(all.iter().all(|of| !of.place.contains(fits)), "{fits}");
    }
    // A slip is one thing, counters of different intervals another.
    let slips = all.iter().filter(|of| of.nature == Nature::Identity).count();
    let estimates = all.iter().filter(|of| of.nature == Nature::Estimate).count();
    assert!(slips > 0 && estimates > 0 && slips + estimates < all.len());
    let profile = all.iter().find(|of| of.place.starts_with("CPI out of the retire profile"));
    assert_eq!(profile.expect("2.84 is not 2.90").nature, Nature::Estimate);
}

#[test]
fn every_data_cache_ratio_is_off() {
    let off = contradictions().into_iter().filter(|of| of.place.contains("L1 D-cache miss ratio"));
    let off: Vec<Contradiction> = off.filter(|of| of.nature == Nature::Identity).collect();
    assert_eq!(off.len(), 9, "three tables, three sizes: {off:?}");
    assert!(off.iter().all(|of| of.note.is_some()));
}
