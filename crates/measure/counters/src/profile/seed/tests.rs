//! The built-in file, and a profile of today read by it.

use super::*;
use crate::profile::table::tests::profile;

#[test]
fn the_file_reads_and_holds_what_the_paper_names() {
    let names: Vec<&str> = seed_names().iter().map(|seed| seed.name.as_str()).collect();
    assert_eq!(names.len(), 17);
    let seen_in = |workload: &str| {
        seed_names().iter().filter(|seed| seed.seen_in.iter().any(|w| w == workload)).count()
    };
    // Seven and nine, nine: figures 7b, 17a and 17b. uNJ's ninth is heapgettup.
    assert_eq!((seen_in("uTPC-C"), seen_in("uSS"), seen_in("uNJ")), (7, 9, 9));
    for seed in seed_names() {
        assert!(!seed.today.is_empty() && !seed.role.is_empty(), "{}", seed.name);
        for share in &seed.shares {
            assert!(["time", "l2-misses", "dtlb-misses"].contains(&share.of.as_str()));
            assert!(seed.seen_in.contains(&share.workload), "{}", seed.name);
            assert!(share.percent > 0.0 && share.percent < 100.0);
        }
        for workload in seed.less_time_under_ht.iter().chain(&seed.more_time_under_ht) {
            assert!(seed.seen_in.contains(workload), "{}", seed.name);
        }
    }
}

#[test]
fn shares_of_one_workload_fit_into_the_whole() {
    for workload in ["uTPC-C", "uSS", "uNJ"] {
        for of in ["time", "l2-misses", "dtlb-misses"] {
            let shares = seed_names().iter().flat_map(|seed| &seed.shares);
            let same = shares.filter(|share| share.workload == workload && share.of == of);
            assert!(same.map(|share| share.percent).sum::<f64>() <= 100.0);
        }
    }
    for together in seed_together() {
        let seen = |seed: &&SeedFunction| seed.seen_in.contains(&together.workload);
        assert_eq!(seed_names().iter().filter(seen).count(), together.functions);
    }
}

#[test]
fn todays_names_get_their_seed() {
    let table = profile(&[
        ("main;HeapTupleSatisfiesMVCC", 20),
        ("main;heapgettup.isra.0", 10),
        ("main;heapgettup_pagemode", 10),
        ("main;ExecInterpExpr", 30),
        ("main;else", 30),
    ]);
    let rows = table.seed_rows();
    let row = |name: &str| rows.iter().find(|row| row.seed.name == name).expect("a row");
    assert_eq!(row("HeapTupleSatisfiesSnapshot").share, Some(0.2));
    assert_eq!(row("heapgettup").share, Some(0.2));
    assert_eq!(row("heapgettup").found.len(), 2);
    assert_eq!(row("ExecQual").share, Some(0.3));
    assert_eq!(row("ExecQual").with, ["ExecMakeFunctionResultNoSets"]);
    assert_eq!(row("PinBuffer").share, None);
}
