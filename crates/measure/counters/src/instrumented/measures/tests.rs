//! Ratios reckoned by hand from round counts, and what is unavailable rather than zero.

use super::*;
use crate::instrumented::program_counts::tests::counted;
use crate::instrumented::{FunctionCounts, Tool};

/// All events, with numbers that make every ratio another.
fn whole() -> ProgramCounts {
    let of = [
        ("Ir", 100_000),
        ("I1mr", 400),
        ("ILmr", 40),
        ("Dr", 30_000),
        ("D1mr", 600),
        ("DLmr", 90),
        ("Dw", 10_000),
        ("D1mw", 300),
        ("DLmw", 60),
        ("Bc", 15_000),
        ("Bcm", 700),
        ("Bi", 1000),
        ("Bim", 100),
    ];
    let counts: Vec<i64> = of.iter().map(|(_, count)| *count).collect();
    ProgramCounts {
        tool: Tool::Cachegrind,
        geometry: None,
        command: String::new(),
        processes: 1,
        events: of.iter().map(|(name, _)| (*name).to_owned()).collect(),
        totals: counts.clone(),
        functions: vec![FunctionCounts {
            name: "all".to_owned(),
            module: None,
            file: None,
            counts,
            inclusive: None,
        }],
    }
}

#[test]
fn metrics_are_those_computed_by_hand() {
    let by_hand = [
        ("instructions", 100_000.0),
        ("data_references", 40_000.0),
        ("l1i_misses", 400.0),
        ("l1d_misses", 900.0),
        ("last_level_misses", 190.0),
        ("load_share", 0.3),
        ("store_share", 0.1),
        ("branch_share", 0.16),
        ("branch_miss_ratio", 0.05),
        ("branch_mpki", 8.0),
        ("l1i_miss_ratio", 0.004),
        ("l1i_mpki", 4.0),
        ("l1d_miss_ratio", 0.0225),
        ("l1d_mpki", 9.0),
        ("l1d_load_miss_ratio", 0.02),
        ("l1d_load_mpki", 6.0),
        ("l1d_accesses_per_instruction", 0.4),
        ("last_level_miss_ratio", 190.0 / 1300.0),
        ("last_level_mpki", 1.9),
        ("last_level_instruction_miss_ratio", 0.1),
        ("last_level_instruction_mpki", 0.4),
        ("last_level_data_miss_ratio", 150.0 / 900.0),
        ("last_level_data_mpki", 1.5),
        ("last_level_load_miss_ratio", 0.15),
        ("last_level_load_mpki", 0.9),
        ("memory_reference_ratio", 190.0 / 140_000.0),
    ];
    let measures = whole().measures();
    assert_eq!(measures.len(), by_hand.len(), "{measures:?}");
    for (name, expected) in by_hand {
        let found = measures[name];
        assert!((found - expected).abs() < 1e-12 * expected, "{name}: {found}, not {expected}");
    }
}

#[test]
fn uncounted_measures_are_unavailable_and_never_zero() {
    let few = counted(&[("a", [1000, 50])]).measures();
    let names: Vec<&str> = few.keys().map(String::as_str).collect();
    assert_eq!(names, ["instructions", "l1d_load_mpki"]);
    // No branch at all: a ratio has nothing to be a share of, a rate is a true zero.
    let mut straight = whole();
    for event in 9..13 {
        straight.totals[event] = 0;
    }
    let measures = straight.measures();
    assert!(!measures.contains_key("branch_miss_ratio"));
    assert_eq!(measures["branch_mpki"], 0.0);
    straight.totals[4] = -1;
    assert!(!straight.measures().contains_key("l1d_load_mpki"));
}

#[test]
fn functions_are_ranked_by_the_requested_measure() {
    let run = counted(&[("a", [50, 0]), ("b", [30, 15]), ("c", [20, 5])]);
    let top = run.top(2, Quantity::Instructions).unwrap();
    let names = |top: &[FunctionShare]| top.iter().map(|one| one.name.clone()).collect::<String>();
    assert_eq!((names(&top).as_str(), top[0].count), ("ab", 50));
    let top = run.top(9, Quantity::L1dLoadMisses).unwrap();
    // The one without a miss is not in a list of misses.
    assert_eq!(names(&top), "bc");
    assert_eq!((top[0].share, top[1].share), (0.75, 0.25));
    let error = run.top(1, Quantity::LastLevelMisses).unwrap_err().to_string();
    assert!(error.starts_with("misses of the last level were not counted"), "{error}");
    let nothing = counted(&[("a", [5, 5]), ("b", [5, -5])]);
    assert!(nothing.top(1, Quantity::L1dLoadMisses).unwrap().is_empty());
}
