//! The built-in file, and a profile of today read by it.

use super::*;
use workahead_counters::profile::{Clock, Function};

#[test]
fn the_file_reads_and_holds_what_the_paper_names() {
    let names: Vec<&str> = all().iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names.len(), 17);
    let seen_in = |workload: &str| {
        all().iter().filter(|function| function.seen_in.iter().any(|w| w == workload)).count()
    };
    // Seven and nine, nine: figures 7b, 17a and 17b. uNJ's ninth is heapgettup.
    assert_eq!((seen_in("uTPC-C"), seen_in("uSS"), seen_in("uNJ")), (7, 9, 9));
    for function in all() {
        assert!(!function.today.is_empty() && !function.role.is_empty(), "{}", function.name);
        for share in &function.shares {
            assert!(["time", "l2-misses", "dtlb-misses"].contains(&share.of.as_str()));
            assert!(function.seen_in.contains(&share.workload), "{}", function.name);
            assert!(share.percent > 0.0 && share.percent < 100.0);
        }
        for workload in function.less_time_under_ht.iter().chain(&function.more_time_under_ht) {
            assert!(function.seen_in.contains(workload), "{}", function.name);
        }
    }
}

#[test]
fn shares_of_one_workload_fit_into_the_whole() {
    for workload in ["uTPC-C", "uSS", "uNJ"] {
        for of in ["time", "l2-misses", "dtlb-misses"] {
            let shares = all().iter().flat_map(|function| &function.shares);
            let same = shares.filter(|share| share.workload == workload && share.of == of);
            assert!(same.map(|share| share.percent).sum::<f64>() <= 100.0);
        }
    }
    for together in together() {
        let seen = |function: &&PublishedFunction| function.seen_in.contains(&together.workload);
        assert_eq!(all().iter().filter(seen).count(), together.functions);
    }
}

/// A profile of functions with this many samples of their own, ten events each.
fn profile(functions: &[(&str, u64)]) -> Profile {
    let function = |(name, samples): &(&str, u64)| Function {
        frame: Frame { name: (*name).to_owned(), module: "m".to_owned(), kind: Kind::User },
        self_samples: *samples,
        total_samples: *samples,
        self_events: samples * 10,
        total_events: samples * 10,
    };
    let samples = functions.iter().map(|(_, samples)| samples).sum();
    Profile { functions: functions.iter().map(function).collect(), ..empty_profile(samples) }
}

/// A profile of this many samples, ten events each, whose functions are not known.
pub(super) fn empty_profile(samples: u64) -> Profile {
    Profile {
        clock: Clock::CpuClock,
        frequency_hz: 99,
        duration_s: 1.0,
        samples,
        events: samples * 10,
        kernel_samples: None,
        lost: 0,
        truncated: 0,
        unsampled_threads: 0,
        functions: Vec::new(),
        frames: Vec::new(),
        stacks: Vec::new(),
    }
}

#[test]
fn functions_of_today_are_found_under_their_old_names() {
    let table = profile(&[
        ("HeapTupleSatisfiesMVCC", 20),
        ("heapgettup.isra.0", 10),
        ("heapgettup_pagemode", 10),
        ("ExecInterpExpr", 30),
        ("else", 30),
    ]);
    let rows = today(&table);
    let row = |name: &str| rows.iter().find(|row| row.function.name == name).expect("a row");
    assert_eq!(row("HeapTupleSatisfiesSnapshot").share, Some(0.2));
    assert_eq!(row("heapgettup").share, Some(0.2));
    assert_eq!(row("heapgettup").found.len(), 2);
    assert_eq!(row("ExecQual").share, Some(0.3));
    assert_eq!(row("ExecQual").with, ["ExecMakeFunctionResultNoSets"]);
    assert_eq!(row("PinBuffer").share, None);
}
