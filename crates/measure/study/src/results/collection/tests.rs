//! Collections: merged over repetitions, kept small, missing data with its reason.

use workahead_counters::event::{Code, Event, Place, Privilege, Software};
use workahead_counters::profile::{Clock, Frame, Function, Kind, Profile, Stack};
use workahead_counters::source::Reading;
use workahead_counters::stream::{Group, Header, OnCpu, Slot, Spoilt, Stream, UncountedEvent};

use crate::cell::Cell;
use crate::collection::Collection;
use crate::results::Results;
use crate::testing::{self, Mock};

const STUDY: &str = r#"
title = "Demo"
question = "Where?"
engine = "mock"
workload = { rows = 1000 }
[[cases]]
name = "one"
[[cases]]
name = "two"
[method]
repetitions = 3
warmup = 0
counters = ["system"]
profile_hz = 99
"#;

fn event(software: Software, name: &str) -> Event {
    Event { name: name.to_owned(), code: Code::Software(software), place: Place::None }
}

fn group(names: &[(Software, &str)]) -> Group {
    let events = names.iter().map(|(software, name)| event(*software, name)).collect();
    Group { events, privilege: Privilege::Both }
}

/// One slot a group, with a task clock of 1 s and `count` of the other event.
fn stream(groups: Vec<Group>, count: u64) -> Stream {
    let slot = |(at, group): (usize, &Group)| Slot {
        group: at,
        begun_s: at as f64,
        wall_s: 1.0,
        cpus: vec![OnCpu {
            cpu: Some(0),
            reading: Reading {
                enabled_ns: 1_000_000_000,
                running_ns: 1_000_000_000,
                values: group
                    .events
                    .iter()
                    .map(|event| match event.name.as_str() {
                        "task_clock" => 1_000_000_000,
                        _ => count,
                    })
                    .collect(),
            },
        }],
        spoilt: None,
    };
    let slots = groups.iter().enumerate().map(slot).collect();
    let header = Header { metrics: vec!["system".to_owned()], groups, ..Header::default() };
    Stream { header, slots }
}

const CLOCK: (Software, &str) = (Software::TaskClock, "task_clock");
const SWITCHES: (Software, &str) = (Software::ContextSwitches, "context_switches");
const MOVES: (Software, &str) = (Software::CpuMigrations, "cpu_migrations");

fn profile(samples: u64, clock: Clock) -> Profile {
    let frame = Frame { name: "scan".to_owned(), module: "demo".to_owned(), kind: Kind::User };
    Profile {
        clock,
        frequency_hz: 99,
        duration_s: 1.0,
        samples,
        events: samples * 10,
        kernel_samples: Some(1),
        lost: 0,
        truncated: 0,
        unsampled_threads: 0,
        functions: vec![Function {
            frame: frame.clone(),
            self_samples: samples,
            total_samples: samples,
            self_events: samples * 10,
            total_events: samples * 10,
        }],
        frames: vec![frame],
        stacks: vec![Stack { frames: vec![0], samples, events: samples * 10 }],
    }
}

fn results(collection: Option<fn(&Cell, u64) -> Collection>) -> Results {
    let dir = tempfile::tempdir().unwrap();
    let mut mock = Mock::new();
    mock.collection = collection;
    testing::results(dir.path(), STUDY, &mut mock)
}

/// Groups may come in another order, or be others, in every repetition.
#[test]
fn slots_of_all_repetitions_are_one_stream() {
    let seen = results(Some(|_, count| {
        let (one, two) = (group(&[CLOCK, SWITCHES]), group(&[CLOCK, MOVES]));
        let groups = if count == 2 { vec![two, one] } else { vec![one] };
        let mut counts = stream(groups, count * 10);
        let left = UncountedEvent { event: "major_faults".to_owned(), why: "not here".to_owned() };
        counts.header.left_out.push(left);
        Collection { counts: Some(counts), ..Collection::default() }
    }));
    let counts = seen.counts(0).unwrap();
    assert_eq!(counts.header.groups.len(), 2);
    assert_eq!(counts.visits(), [3, 1]);
    assert_eq!(counts.header.left_out.len(), 1);
    let order: Vec<usize> = counts.slots.iter().map(|slot| slot.group).collect();
    assert_eq!(order, [0, 1, 0, 0]);
    let begun: Vec<f64> = counts.slots.iter().map(|slot| slot.begun_s).collect();
    assert_eq!(begun, [0.0, 1.0, 2.0, 3.0]);
    // 10, 20 and 30 in a second each; of three values the ends are trimmed.
    let metrics = seen.metrics(0).unwrap();
    let value = metrics.get("context_switches_per_second", Privilege::Both, None).unwrap();
    assert!((value.value.unwrap() - 20.0).abs() < 1e-9, "{value:?}");
    assert_eq!(value.slots, 3);
}

/// Each group was looked for among all before it.
#[test]
fn other_groups_in_each_repetition_are_joined() {
    let named = |name: usize| Group {
        events: vec![event(Software::CpuClock, &format!("event_{name:06}"))],
        privilege: Privilege::Both,
    };
    let streams: Vec<Stream> = (0..120_usize)
        .map(|at| {
            let groups = (0..256).map(|group| named(256 * at + group)).collect();
            let mut counts = stream(groups, 1);
            counts.slots.truncate(1);
            counts
        })
        .collect();
    let all = super::joined(streams.iter()).unwrap();
    assert_eq!((all.header.groups.len(), all.slots.len()), (120 * 256, 120));
    assert_eq!(all.slots[119].group, 119 * 256);
}

#[test]
fn a_slot_that_was_spoilt_stays_spoilt() {
    let seen = results(Some(|_, count| {
        let mut counts = stream(vec![group(&[CLOCK, SWITCHES])], 10);
        counts.slots[0].spoilt = (count == 2).then_some(Spoilt::Multiplexed);
        Collection { counts: Some(counts), ..Collection::default() }
    }));
    assert_eq!(seen.counts(1).unwrap().spoilt(), 1);
}

#[test]
fn stacks_are_kept_once_and_functions_always() {
    let seen = results(Some(|_, count| Collection {
        profile: Some(profile(count, Clock::CpuClock)),
        ..Collection::default()
    }));
    for cell in 0..2 {
        let kept: Vec<&Profile> =
            seen.collections(cell).filter_map(|collection| collection.profile.as_ref()).collect();
        let stacks: Vec<usize> = kept.iter().map(|profile| profile.stacks.len()).collect();
        assert_eq!(stacks, [1, 0, 0]);
        assert!(kept.iter().all(|profile| profile.functions.len() == 1));
        let merged = seen.profile(cell).unwrap();
        assert_eq!((merged.samples, merged.events), (1 + 2 + 3, 60));
        assert_eq!(merged.top(1).unwrap().rows[0].share, 1.0);
        assert_eq!(seen.stacks(cell).unwrap().samples, 1);
    }
}

/// A share of cycles and a share of time are not added up.
#[test]
fn another_clock_is_left_out() {
    let seen = results(Some(|_, count| {
        let clock = if count == 2 { Clock::Cycles } else { Clock::CpuClock };
        Collection { profile: Some(profile(count, clock)), ..Collection::default() }
    }));
    assert_eq!(seen.profile(0).unwrap().samples, 1 + 3);
    let clocks: Vec<(Clock, u64)> =
        seen.profiles(0).into_iter().map(|profile| (profile.clock, profile.samples)).collect();
    assert_eq!(clocks, [(Clock::CpuClock, 1 + 3), (Clock::Cycles, 2)]);
}

#[test]
fn missing_data_has_a_reason() {
    let seen = results(None);
    assert_eq!(seen.uncollected(0), ["the engine collects nothing: it can only be timed"]);
    assert!(seen.counts(0).is_none() && seen.metrics(0).is_none() && seen.profile(0).is_none());
    let seen = results(Some(|_, count| {
        let mut counts = stream(vec![group(&[CLOCK, SWITCHES])], count);
        counts.header.lacks = Some("no event source".to_owned());
        let lacks = vec!["no function profile: forbidden".to_owned()];
        Collection { counts: Some(counts), profile: None, functions: None, lacks }
    }));
    assert_eq!(seen.uncollected(1), ["no function profile: forbidden", "no event source"]);
}

#[test]
fn only_requested_data_can_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let text = STUDY.replace("counters = [\"system\"]\nprofile_hz = 99", "");
    let seen = testing::results(dir.path(), &text, &mut Mock::new());
    assert!(seen.uncollected(0).is_empty());
}
