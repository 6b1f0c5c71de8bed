//! Series out of constructed recordings, and their components against the raw counts.

use super::*;
use crate::cycles::{Denominator, Origin, Penalty, Series, Stalls};
use crate::stream::{Group, OnCpu, Slot};

fn recorded(text: &str) -> Stream {
    Stream::read(&mut text.as_bytes()).unwrap()
}

const ZEN: &str = include_str!("../../recordings/amd-zen4.jsonl");
const WITHOUT: &str = include_str!("../../recordings/intel-sapphire-rapids.jsonl");

/// A stream whose every count is known: one slot, two cores of two CPUs, branches only.
fn known(counts: [(u32, [u64; 3]); 4]) -> Stream {
    let mut stream = recorded(ZEN);
    let table = Table::named(stream.header.table.as_deref().unwrap()).unwrap();
    let names = [table.work.as_str(), table.cycles(), "ex_ret_brn_misp"];
    let events = names.map(|name| table.event(name).unwrap().clone()).to_vec();
    stream.header.groups = vec![Group { events, privilege: Privilege::User }];
    let of = stream.slots[0].cpus[0].clone();
    let on = |(cpu, values): (u32, [u64; 3])| {
        let mut on = OnCpu { cpu: Some(cpu), ..of.clone() };
        on.reading.values = values.to_vec();
        on
    };
    let cpus = counts.map(on).to_vec();
    stream.slots = vec![Slot { group: 0, begun_s: 0.0, wall_s: 1.0, cpus, spoilt: None }];
    stream
}

#[test]
fn components_are_the_raw_counts_under_both_denominators() {
    // Cores (0, 1) and (2, 3): H0 is 0 and 2, H1 is 1 and 3, and the cores differ.
    let counts = [
        (0, [1_000_000, 900_000, 3_000]),
        (1, [500_000, 800_000, 7_000]),
        (2, [3_000_000, 2_000_000, 11_000]),
        (3, [250_000, 700_000, 1_300]),
    ];
    let stream = known(counts);
    let all = siblings(&stream, &Metrics::of(&stream), Privilege::User).unwrap();
    assert_eq!(all.iter().map(|one| one.cpus.clone()).collect::<Vec<_>>(), [[0, 2], [1, 3]]);
    let origin = Origin::Quoted("a test".to_owned());
    let penalties = [Penalty { cause: StallCause::Branch, cycles: 20.0, origin }];
    let counted: Vec<LogicalCpu> = all.into_iter().map(|one| one.counted).collect();
    let raw = [(4e6, 14_000.0), (0.75e6, 8_300.0)];
    for (denominator, per) in [(Denominator::Own, [4e6, 0.75e6]), (Denominator::All, [4.75e6; 2])] {
        let stalls = Stalls::of(&counted, &penalties, denominator);
        for ((of, (_, misses)), per) in stalls.iter().zip(raw).zip(per) {
            let expected = 20.0 * misses / per;
            let ours = of.components[0].1.clone().unwrap();
            assert!((ours - expected).abs() <= 1e-9 * expected, "{denominator:?}: {ours}");
        }
    }
}

#[test]
fn idle_and_uncounted_cpus_are_in_no_series() {
    let idle = [(0, [1000, 900, 3]), (1, [0, 0, 0]), (2, [700, 900, 3]), (3, [0, 0, 0])];
    let stream = known(idle);
    let all = siblings(&stream, &Metrics::of(&stream), Privilege::User).unwrap();
    assert_eq!(all.len(), 1, "siblings out of use are not a series");
    let counted = [all[0].counted.clone()];
    assert_eq!(Stalls::of(&counted, &[], Denominator::Own)[0].series, Series::Off);
    let l2 = counted[0].misses.iter().find(|(cause, _)| *cause == StallCause::L2).unwrap();
    assert!(l2.1.as_ref().is_err_and(|why| why.to_string().contains("l2_mpki")), "{l2:?}");

    let mut alone = recorded(WITHOUT);
    let all = siblings(&alone, &Metrics::of(&alone), Privilege::User).unwrap();
    assert_eq!(all.len(), 1, "no two CPUs share a core");
    alone.header.cores.clear();
    let why = siblings(&alone, &Metrics::of(&alone), Privilege::User).unwrap_err();
    assert_eq!(why, "which CPUs share a core was not recorded");
    alone.header.lacks = Some("the virtual machine is given no event source".to_owned());
    let why = siblings(&alone, &Metrics::of(&alone), Privilege::User).unwrap_err();
    assert_eq!(why, "the virtual machine is given no event source");
}

#[test]
fn a_recording_with_siblings_has_two_series() {
    let stream = recorded(ZEN);
    let all = siblings(&stream, &Metrics::of(&stream), Privilege::User).unwrap();
    assert_eq!(all.iter().map(|one| one.cpus.clone()).collect::<Vec<_>>(), [[0, 2], [1, 3]]);
    for one in &all {
        assert!(one.counted.misses.iter().all(|(_, misses)| misses.is_ok()), "{one:?}");
    }
}
