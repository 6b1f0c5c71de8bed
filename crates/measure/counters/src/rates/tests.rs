//! Rates against the counts that they were made from.

use super::*;
use crate::cycles::mix_by_time;
use crate::event::{Code, Event, Place};
use crate::mock::{Fault, Mock, Virtual};
use crate::rotation::Rotation;
use crate::source::Reading;
use crate::stream::{Group, Header, OnCpu, Slot, Spoilt};
use crate::target::Machine;

const UNIT: &str = "instructions";

fn group(events: &[&str], privilege: Privilege) -> Group {
    let event = |name: &&str| Event {
        name: (*name).to_owned(),
        code: Code::Core { config: 0, config1: 0 },
        place: Place::Any,
    };
    Group { events: events.iter().map(event).collect(), privilege }
}

fn slot(group: usize, cpus: &[&[u64]]) -> Slot {
    let on = |(values, cpu): (&&[u64], u32)| OnCpu {
        cpu: Some(cpu),
        reading: Reading { enabled_ns: 1, running_ns: 1, values: values.to_vec() },
    };
    let cpus = cpus.iter().zip(0..).map(on).collect();
    Slot { group, begun_s: 0.0, wall_s: 2.0, cpus, spoilt: None }
}

fn stream(groups: Vec<Group>, slots: Vec<Slot>) -> Stream {
    Stream { header: Header { groups, ..Header::default() }, slots }
}

fn mean(rates: &Rates, event: &str, privilege: Privilege, cpu: Option<u32>) -> Option<f64> {
    Some(rates.rate(event, privilege, cpu)?.per_unit.mean)
}

#[test]
fn rates_are_counts_over_the_instructions_of_their_slot() {
    // The same misses in each slot, and fewer instructions.
    let counts = [[1000, 20], [500, 20], [250, 20]];
    let slots = counts.iter().map(|values| slot(0, &[values])).collect();
    let stream = stream(vec![group(&[UNIT, "misses"], Privilege::User)], slots);
    let rates = Rates::of(&stream, UNIT);
    let misses = &rates.rate("misses", Privilege::User, Some(0)).unwrap().per_unit;
    // Of 0.02, 0.04, 0.08 the least and the most are dropped; 60 over 1750 would be 0.034.
    assert_eq!((misses.mean, misses.n), (0.04, 1));
    assert_eq!(misses.dropped, [0.02, 0.08]);
    assert_eq!(rates.slots("misses", Privilege::User, None), Some(3));
    assert_eq!(mean(&rates, UNIT, Privilege::User, Some(0)), Some(1.0));
    assert_eq!(rates.rate("misses", Privilege::Kernel, None), None);
    assert_eq!(rates.rate("hits", Privilege::User, None), None);
}

#[test]
fn two_slots_are_not_trimmed() {
    let slots = vec![slot(0, &[&[100, 1]]), slot(0, &[&[100, 3]])];
    let stream = stream(vec![group(&[UNIT, "misses"], Privilege::User)], slots);
    let rates = Rates::of(&stream, UNIT);
    let misses = &rates.rate("misses", Privilege::User, None).unwrap().per_unit;
    assert_eq!((misses.mean, misses.n, misses.noisy), (0.02, 2, Some(true)));
}

#[test]
fn cpus_on_which_nothing_ran_are_left_out() {
    let values: [&[u64]; 3] = [&[100, 10], &[0, 0], &[300, 6]];
    let groups = vec![group(&[UNIT, "misses"], Privilege::User)];
    let rates = Rates::of(&stream(groups, vec![slot(0, &values)]), UNIT);
    assert_eq!(rates.cpus(), [0, 2]);
    assert_eq!(rates.rate("misses", Privilege::User, Some(1)), None);
    // Both CPUs count the same, however much they did: (0.1 + 0.02) / 2, not 16 / 400.
    assert!((mean(&rates, "misses", Privilege::User, None).unwrap() - 0.06).abs() < 1e-12);
    let work = rates.rate(UNIT, Privilege::User, None).unwrap();
    assert_eq!(work.per_s.mean, 200.0, "added up over CPUs: 400 in 2 s");
}

#[test]
fn spoilt_slots_do_not_count() {
    let spoilt = |slot: Slot| Slot { spoilt: Some(Spoilt::Multiplexed), ..slot };
    // Refused events have no values at all.
    let empty = Slot { cpus: Vec::new(), ..slot(0, &[]) };
    let slots = vec![slot(0, &[&[10, 1]]), spoilt(slot(0, &[&[10, 9]])), spoilt(empty)];
    let stream = stream(vec![group(&[UNIT, "misses"], Privilege::User)], slots);
    assert_eq!(mean(&Rates::of(&stream, UNIT), "misses", Privilege::User, None), Some(0.1));
}

#[test]
fn a_group_without_work_has_no_rates() {
    let groups = vec![group(&["misses"], Privilege::User)];
    let rates = Rates::of(&stream(groups, vec![slot(0, &[&[7]])]), UNIT);
    assert_eq!(rates, Rates::default());
    assert!(rates.cpus().is_empty());
}

/// Table 10 of Keeton et al.: 78 % of the time in the database at a CPI of 2.52, the rest at 6.41.
#[test]
fn user_and_kernel_mix_by_time() {
    let hz = 200e6;
    let of = |share: f64, cpi: f64| (share * hz, share * hz / cpi);
    let ((user_cycles, user), (kernel_cycles, kernel)) = (of(0.78, 2.52), of(0.22, 6.41));
    let mut slots = Vec::new();
    let sides = [(Privilege::User, user_cycles, user), (Privilege::Kernel, kernel_cycles, kernel)];
    let groups: Vec<Group> = sides.iter().map(|side| group(&[UNIT, "cycles"], side.0)).collect();
    // Each side counts by itself: a mock that counts one of them, played for half of the time.
    for (index, (_, cycles, instructions)) in sides.into_iter().enumerate() {
        let rotation = Rotation { groups: vec![groups[index].clone()], slot_s: 5.0, seed: 1 };
        let clock = Virtual::until(30.0);
        let mut mock = Mock::new(&[("cycles", cycles), (UNIT, instructions)], &clock);
        let mut targets = Machine { cpus: vec![0, 1, 2, 3] };
        let mut keep = |slot: Slot| slots.push(Slot { group: index, ..slot });
        let ended = rotation.run(0, &mut mock, &mut targets, &mut clock.clone(), &mut keep);
        assert_eq!(ended, None);
    }
    let rates = Rates::of(&stream(groups, slots), UNIT);
    let both = rates.per_unit("cycles", UNIT, Privilege::Both, None).unwrap();
    let mixed = mix_by_time(&Ok(0.78), &Ok(2.52), &Ok(6.41)).unwrap();
    assert!((both - mixed).abs() < 1e-6, "{both} is not {mixed}");
    assert!((both - 2.91).abs() < 0.005, "{both}");
    // Where one side is unknown, both are; and neither is zero.
    assert_eq!(rates.per_unit("misses", UNIT, Privilege::Both, None), None);
}

#[test]
fn a_side_that_runs_now_and_then_weighs_as_little() {
    let groups = vec![
        group(&[UNIT, "cycles"], Privilege::User),
        group(&[UNIT, "cycles"], Privilege::Kernel),
    ];
    // Three quarters of the kernel's slots are empty.
    let mut slots: Vec<Slot> = (0..8).map(|_| slot(0, &[&[1000, 2000]])).collect();
    slots.extend((0..8).map(|number| match number % 4 {
        0 => slot(1, &[&[400, 4000]]),
        _ => slot(1, &[&[0, 0]]),
    }));
    let rates = Rates::of(&stream(groups, slots), UNIT);
    assert_eq!(mean(&rates, "cycles", Privilege::Kernel, None), Some(10.0));
    let both = rates.per_unit("cycles", UNIT, Privilege::Both, None).unwrap();
    // Trimmed, one slot of six did something: 400 / 6 instructions beside 1000.
    let work = 400.0 / 6.0;
    let expected = (1000.0 * 2.0 + work * 10.0) / (1000.0 + work);
    assert!((both - expected).abs() < 1e-9, "{both} is not {expected}");
}

#[test]
fn a_mock_returns_the_rates_it_was_given() {
    let clock = Virtual::until(100.0);
    let mut mock = Mock::new(&[(UNIT, 1e9), ("a", 3e7), ("b", 5e5)], &clock);
    // One slot on one CPU loses its counters half of the time: with it all of that slot.
    mock.faults.insert(2, Fault::Stops(0.5));
    let groups = vec![group(&[UNIT, "a"], Privilege::Both), group(&[UNIT, "b"], Privilege::Both)];
    let rotation = Rotation { groups: groups.clone(), slot_s: 5.0, seed: 3 };
    let mut slots = Vec::new();
    let mut targets = Machine { cpus: vec![0, 1] };
    let mut keep = |slot: Slot| slots.push(slot);
    assert_eq!(rotation.run(0, &mut mock, &mut targets, &mut clock.clone(), &mut keep), None);
    let stream = stream(groups, slots);
    assert_eq!(stream.spoilt(), 1);
    let rates = Rates::of(&stream, UNIT);
    for (event, expected) in [("a", 0.03), ("b", 0.0005)] {
        for cpu in [None, Some(0), Some(1)] {
            let is = mean(&rates, event, Privilege::Both, cpu).unwrap();
            assert!((is - expected).abs() < 1e-9, "{event}: {is} is not {expected}");
        }
    }
    let visits = stream.visits();
    assert_eq!(visits.iter().sum::<usize>(), 19);
    assert_eq!(rates.slots("a", Privilege::Both, None), Some(visits[0]));
}
