//! The parts of a collection. Every machine that allows it has software events and samples by time;
//! where they are forbidden, the sample says so.

use std::collections::BTreeSet;

use workahead_counters::stream::{Group, Header, Slot};

use super::*;

fn options(counters: &[&str], profile_hz: u32) -> CollectionOptions {
    let counters = counters.iter().map(|group| (*group).to_owned()).collect();
    CollectionOptions { counters, slot_s: 0.01, profile_hz, ..CollectionOptions::default() }
}

/// Collects from this process for a moment.
fn collect(options: &CollectionOptions, part: Part, target: CollectionTarget) -> Collection {
    let mut collector = Collector::new(options, &[Privilege::User], None);
    let cpus = Machine::here().allowed_cpus().clone();
    let collecting = collector.begin(&CollectionScope {
        cell: "cell",
        window_s: None,
        target,
        cpus: &cpus,
        part,
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    collecting.end()
}

fn own() -> CollectionTarget {
    CollectionTarget::Theirs(std::process::id())
}

#[test]
fn every_part_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = Part::NAMED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["all", "counters", "nothing", "profile"].into());
    for (at, (_, part)) in Part::NAMED.iter().enumerate() {
        assert!(Part::NAMED[..at].iter().all(|(_, other)| other != part), "{part:?} twice");
    }
    assert_eq!(Part::default(), Part::All);
}

#[test]
fn a_cell_has_the_part_that_it_names() {
    let both = options(&["system"], 99);
    for (name, part) in Part::NAMED {
        let Collection { counts, profile, lacks, .. } = collect(&both, part, own());
        assert_eq!(counts.is_some(), ["all", "counters"].contains(&name), "{name}");
        let has_no = |what: &str| lacks.iter().any(|why| why.starts_with(what));
        let samples = ["all", "profile"].contains(&name);
        assert_eq!(
            profile.is_some() || has_no("no function profile"),
            samples,
            "{name}: {lacks:?}"
        );
        if name == "nothing" {
            assert!(lacks.is_empty(), "unrequested parts are not missing: {lacks:?}");
        }
    }
}

#[test]
fn only_requested_parts_are_collected() {
    let Collection { counts, profile, lacks, .. } = collect(&options(&[], 0), Part::All, own());
    assert!(counts.is_none() && profile.is_none() && lacks.is_empty());
    let counted = collect(&options(&["system"], 0), Part::All, own());
    assert!(counted.counts.is_some() && counted.profile.is_none());
    // The profile of a study with counters only is nothing.
    let nothing = collect(&options(&["system"], 0), Part::Profile, own());
    assert!(nothing.counts.is_none() && nothing.profile.is_none() && nothing.lacks.is_empty());
}

#[test]
fn an_invisible_server_is_named() {
    let both = options(&["system"], 99);
    let unseen = collect(&both, Part::All, CollectionTarget::Unseen);
    assert!(unseen.counts.is_none() && unseen.profile.is_none());
    assert!(unseen.lacks[0].contains("not visible"), "{:?}", unseen.lacks);
    assert!(collect(&both, Part::Nothing, CollectionTarget::Unseen).lacks.is_empty());
}

#[test]
fn a_rotation_goes_on_where_its_cell_stopped() {
    let mut collector = Collector::new(&options(&["system"], 0), &[Privilege::User], None);
    let events = Table::software().events().cloned().collect();
    let group = Group { events, privilege: Privilege::Both };
    let header = Header { groups: vec![group], ..Header::default() };
    let slot = Slot { group: 0, begun_s: 0.0, wall_s: 1.0, cpus: Vec::new(), spoilt: None };
    let slots = |n| Collection {
        counts: Some(Stream { header: header.clone(), slots: vec![slot.clone(); n] }),
        ..Collection::default()
    };
    let mut sample = Sample { wall_s: 1.0, tuples: 1, ..Sample::default() };
    collector.keep("a", slots(3), &mut sample);
    collector.keep("b", slots(1), &mut sample);
    collector.keep("a", slots(2), &mut sample);
    assert_eq!(collector.next, BTreeMap::from([("a".to_owned(), 5), ("b".to_owned(), 1)]));
    assert!(sample.collection.is_some());
}

const REQUESTED: [ProfileEvent; 3] =
    [ProfileEvent::Time, ProfileEvent::L3Misses, ProfileEvent::DtlbMisses];

#[test]
fn without_counters_there_is_time_and_one_line() {
    let mut machine = Machine::here();
    machine.counters.state = CounterState::HiddenByVirtualMachine;
    machine.counters.reason = "no event source".to_owned();
    let (by, not_by) = profiles_by(&REQUESTED, &machine);
    assert_eq!(by, [By::Time]);
    assert_eq!(not_by, ["no function profile by l3_misses, dtlb_misses: no event source"]);
    let (by, not_by) = profiles_by(&REQUESTED[1..], &machine);
    assert_eq!((by, not_by.len()), (vec![By::Time], 1), "time is left");
    assert_eq!(profiles_by(&[], &machine), (vec![By::Time], Vec::new()), "as ever");
}

#[test]
fn samples_of_a_cell_take_turns() {
    let options = CollectionOptions {
        profile_hz: 99,
        profile_by: REQUESTED.to_vec(),
        ..CollectionOptions::default()
    };
    let mut collector = Collector::new(&options, &[Privilege::User], None);
    let event = |wanted: ProfileEvent| wanted.by(Some(&Table::all()[0])).unwrap();
    collector.by = REQUESTED.map(event).to_vec();
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(collector.turn("one"));
        *collector.profiled.entry("one".to_owned()).or_default() += 1;
    }
    assert_eq!(turns[0], By::Time);
    assert_eq!(turns[3], turns[0]);
    assert!(turns[1] != turns[2] && turns[1] == event(ProfileEvent::L3Misses));
    assert_eq!(collector.turn("two"), By::Time, "each cell begins with the first");
}
