//! The order of slots, what is thrown away, and what ends a rotation, under a virtual clock.

use std::collections::BTreeMap;

use super::*;
use crate::event::{Code, Event, Place, Privilege};
use crate::mock::{Fault, Mock, Virtual};
use crate::replay::Replay;
use crate::stream::{Header, Stream};
use crate::target::Machine;

const CPUS: [u32; 4] = [0, 1, 2, 3];

fn event(name: &str) -> Event {
    Event { name: name.to_owned(), code: Code::Core { config: 0, config1: 0 }, place: Place::Any }
}

/// Keeton's 82 events: 41 of them, for user and kernel, one a slot beside the instructions.
fn keetons() -> (Rotation, Vec<(String, f64)>) {
    let names: Vec<String> = (0..41).map(|number| format!("e{number}")).collect();
    let group = |name: &String, privilege| Group {
        events: vec![event("instructions"), event(name)],
        privilege,
    };
    let of = |privilege| names.iter().map(move |name| group(name, privilege));
    let groups = of(Privilege::User).chain(of(Privilege::Kernel)).collect();
    let mut per_s: Vec<(String, f64)> =
        names.iter().zip(1..).map(|(name, rate)| (name.clone(), f64::from(rate) * 1e6)).collect();
    per_s.push(("instructions".to_owned(), 1e9));
    (Rotation { groups, slot_s: 5.0, seed: 7 }, per_s)
}

struct RotationRun {
    stream: Stream,
    ended: Option<CountError>,
    mock: Mock,
}

fn run(
    rotation: &Rotation,
    per_s: &[(String, f64)],
    window_s: f64,
    faults: &[Fault],
) -> RotationRun {
    let clock = Virtual::until(window_s);
    let per_s: Vec<(&str, f64)> = per_s.iter().map(|(name, rate)| (name.as_str(), *rate)).collect();
    let mut mock = Mock::new(&per_s, &clock);
    mock.faults = faults.iter().cloned().enumerate().collect();
    let mut stream = Stream {
        header: Header { groups: rotation.groups.clone(), ..Header::default() },
        slots: Vec::new(),
    };
    let mut targets = Machine { cpus: CPUS.to_vec() };
    let mut keep = |slot: Slot| stream.slots.push(slot);
    let ended = rotation.run(0, &mut mock.clone(), &mut targets, &mut clock.clone(), &mut keep);
    RotationRun { stream, ended, mock }
}

#[test]
fn every_event_is_observed_six_to_eleven_times_in_forty_minutes() {
    let (rotation, per_s) = keetons();
    let rotation = rotation.fitted(2400.0);
    // Whole rounds: 492 slots of 4.88 s in place of 480 of 5 s.
    assert!((rotation.slot_s - 2400.0 / 492.0).abs() < 1e-9);
    let RotationRun { stream, ended, mock } = run(&rotation, &per_s, 2400.0, &[]);
    assert_eq!(ended, None);
    assert_eq!(stream.slots.len(), 492);
    assert!(stream.visits().iter().all(|visits| (6..=11).contains(visits)));
    // The same group on all CPUs at once.
    for slot in &stream.slots {
        let cpus: Vec<Option<u32>> = slot.cpus.iter().map(|on| on.cpu).collect();
        assert_eq!(cpus, CPUS.map(Some));
    }
    for four in mock.requests().chunks(4) {
        assert!(four.iter().all(|asked| asked.0 == four[0].0 && asked.1 == four[0].1));
    }
    assert_eq!(mock.open_now(), 0);
}

#[test]
fn each_round_has_an_order_of_its_own_and_repetitions_go_on() {
    let (rotation, _) = keetons();
    let round = |number: u64| -> Vec<usize> {
        (0..82).map(|place| rotation.group_at(number * 82 + place)).collect()
    };
    let mut orders: Vec<Vec<usize>> = (0..6).map(round).collect();
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..82).collect::<Vec<_>>());
    }
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 6);
    // Ten slots a repetition: after nine repetitions every group was visited.
    let visited: std::collections::BTreeSet<usize> =
        (0..9 * 10).map(|position| rotation.group_at(position)).collect();
    assert_eq!(visited.len(), 82);
    // A window that is too short for a round keeps the slots as they are.
    assert_eq!(rotation.clone().fitted(10.0), rotation);
}

#[test]
fn values_are_those_of_the_slot() {
    let (rotation, per_s) = keetons();
    let rates: BTreeMap<&str, f64> =
        per_s.iter().map(|(name, rate)| (name.as_str(), *rate)).collect();
    let RotationRun { stream, .. } = run(&rotation, &per_s, 123.0, &[]);
    assert_eq!(stream.slots.len(), 25, "24 whole slots and one that was cut off");
    assert!((stream.slots[24].wall_s - 3.0).abs() < 1e-9);
    for slot in stream.usable() {
        let events = &rotation.groups[slot.group].events;
        for on in &slot.cpus {
            for (event, value) in events.iter().zip(&on.reading.values) {
                let expected = rates[event.name.as_str()] * slot.wall_s;
                assert!((*value as f64 - expected).abs() <= 1.0);
            }
        }
    }
}

/// One thread on two CPUs, whose counters do this.
fn on_two_cpus(faults: [Fault; 2]) -> Option<Spoilt> {
    struct OneThread;
    impl Targets for OneThread {
        fn current(&mut self) -> Vec<Target> {
            [0, 1].map(|cpu| Target::ThreadOnCpu { thread: 7, cpu }).to_vec()
        }

        fn description(&self) -> String {
            "one thread".to_owned()
        }
    }
    let clock = Virtual::until(1.0);
    let mut mock = Mock::new(&[("instructions", 1e9)], &clock);
    mock.faults = faults.into_iter().enumerate().collect();
    let events = vec![event("instructions")];
    let groups = vec![Group { events, privilege: Privilege::User }];
    let rotation = Rotation { groups, slot_s: 1.0, seed: 7 };
    let mut slots: Vec<Slot> = Vec::new();
    let mut keep = |slot| slots.push(slot);
    let ended = rotation.run(0, &mut mock, &mut OneThread, &mut clock.clone(), &mut keep);
    assert_eq!((ended, slots.len()), (None, 1));
    slots.remove(0).spoilt
}

#[test]
fn a_thread_has_its_counters_where_it_runs() {
    // On the first CPU only; half of the time on each; then half of it on none.
    assert_eq!(on_two_cpus([Fault::Stops(1.0), Fault::NeverRuns]), None);
    assert_eq!(on_two_cpus([Fault::Stops(0.5), Fault::Stops(0.5)]), None);
    assert_eq!(on_two_cpus([Fault::Stops(0.5), Fault::NeverRuns]), Some(Spoilt::Multiplexed));
    assert_eq!(on_two_cpus([Fault::NeverRuns, Fault::NeverRuns]), Some(Spoilt::NeverRan));
    assert_eq!(on_two_cpus([Fault::Stops(1.0), Fault::Wraps]), Some(Spoilt::Wrapped));
}

#[test]
fn slots_without_their_counters_are_thrown_away_and_counted() {
    let (rotation, per_s) = keetons();
    let fine = Fault::Stops(1.0);
    // The second CPU of the first slot, the first of the second, any of the third and fourth.
    let faults = [
        fine.clone(),
        Fault::Stops(0.5),
        fine.clone(),
        fine.clone(),
        Fault::NeverRuns,
        fine.clone(),
        fine.clone(),
        fine.clone(),
        Fault::Wraps,
        fine.clone(),
        fine.clone(),
        fine,
        Fault::Open(CountError::Busy),
    ];
    let RotationRun { stream, ended, .. } = run(&rotation, &per_s, 50.0, &faults);
    assert_eq!(ended, None);
    let spoilt: Vec<Option<Spoilt>> =
        stream.slots.iter().take(5).map(|slot| slot.spoilt.clone()).collect();
    let busy = Spoilt::Refused(CountError::Busy.to_string());
    assert_eq!(
        spoilt,
        [
            Some(Spoilt::Multiplexed),
            Some(Spoilt::NeverRan),
            Some(Spoilt::Wrapped),
            Some(busy),
            None
        ]
    );
    assert_eq!(stream.spoilt(), 4);
}

#[test]
fn refusals_end_it_with_their_reason() {
    let (rotation, per_s) = keetons();
    let forbidden = CountError::Forbidden { event: "cycles".to_owned() };
    for error in [forbidden, CountError::TooManyFiles, CountError::DoesNotFit { events: 9 }] {
        for fault in
            [Fault::Open(error.clone()), Fault::Begin(error.clone()), Fault::End(error.clone())]
        {
            let RotationRun { stream, ended, mock } = run(&rotation, &per_s, 50.0, &[fault]);
            assert_eq!(ended, Some(error.clone()));
            assert!(stream.slots.is_empty());
            assert_eq!(mock.open_now(), 0);
        }
    }
    // No such event, by the mock's own table.
    let RotationRun { ended, .. } = run(&rotation, &per_s[..3], 500.0, &[]);
    assert!(matches!(ended, Some(CountError::NoSuchEvent { .. })), "{ended:?}");
}

#[test]
fn ended_targets_are_left_out() {
    let (rotation, per_s) = keetons();
    let gone = Fault::Open(CountError::Gone("thread 9".to_owned()));
    let RotationRun { stream, ended, .. } = run(&rotation, &per_s, 5.0, &[gone]);
    assert_eq!(ended, None);
    let cpus: Vec<Option<u32>> = stream.slots[0].cpus.iter().map(|on| on.cpu).collect();
    assert_eq!(cpus, [1, 2, 3].map(Some));
}

#[test]
fn a_recording_is_played_as_it_was_counted() {
    let (rotation, per_s) = keetons();
    let RotationRun { stream, .. } = run(&rotation, &per_s, 900.0, &[Fault::Stops(0.3)]);
    let mut file = Vec::new();
    stream.write(&mut file).unwrap();
    let read = Stream::read(&mut file.as_slice()).unwrap();
    assert_eq!(read, stream);
    let mut source = Replay::new(read);
    let mut targets = Machine { cpus: CPUS.to_vec() };
    let mut again: Vec<Slot> = Vec::new();
    let mut clock = Virtual::until(900.0);
    let ended =
        rotation.run(0, &mut source, &mut targets, &mut clock, &mut |slot| again.push(slot));
    assert_eq!(ended, None);
    assert_eq!(again, stream.slots);
}

#[test]
fn lines_that_are_not_of_a_recording_are_named() {
    let (rotation, per_s) = keetons();
    let RotationRun { stream, .. } = run(&rotation, &per_s, 20.0, &[]);
    let mut file = Vec::new();
    stream.write(&mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    let says = |text: &str| Stream::read(&mut text.as_bytes()).unwrap_err().to_string();
    assert!(says("").contains("line 1"), "{}", says(""));
    assert!(says("{}").contains("line 1"));
    let torn = &text[..text.len() - 9];
    assert!(says(torn).contains("line 5"), "{}", says(torn));
    let other = text.replace("{\"group\":", "{\"group\":9");
    assert!(says(&other).contains("there is no group"), "{}", says(&other));
    let short = text.replacen("\"values\":[", "\"values\":[1,", 1);
    assert!(says(&short).contains("3 values"), "{}", says(&short));
    // A sparse file is one line of gigabytes.
    let mut endless = std::io::BufReader::new(std::io::repeat(0));
    let says = Stream::read(&mut endless).unwrap_err().to_string();
    assert_eq!(says, "line 1 is not a recording's: it has more than 4 MiB");
    let long = format!("{text}{}\n", " ".repeat(5 << 20));
    let says = Stream::read(&mut long.as_bytes()).unwrap_err().to_string();
    assert!(says.contains(&format!("line {} is", text.lines().count() + 1)), "{says}");
}

#[test]
fn forty_minutes_of_82_events_are_small() {
    let (rotation, per_s) = keetons();
    let RotationRun { stream, .. } = run(&rotation, &per_s, 2400.0, &[]);
    let mut file = Vec::new();
    stream.write(&mut file).unwrap();
    assert!(file.len() < 1 << 20, "{} bytes", file.len());
}
