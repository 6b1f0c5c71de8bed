//! What profiles are by, where an event can be sampled by and where not.

use super::*;

const ASKED: [Wanted; 3] = [Wanted::Time, Wanted::L3Misses, Wanted::DtlbMisses];

#[test]
fn without_counters_there_is_time_and_one_line() {
    let mut machine = Machine::here();
    machine.counters.state = CounterState::HiddenByVirtualMachine;
    machine.counters.reason = "no event source".to_owned();
    let (by, not_by) = profiles_by(&ASKED, &machine);
    assert_eq!(by, [By::Time]);
    assert_eq!(not_by, ["no function profile by l3_misses, dtlb_misses: no event source"]);
    let (by, not_by) = profiles_by(&ASKED[1..], &machine);
    assert_eq!((by, not_by.len()), (vec![By::Time], 1), "time is left");
    assert_eq!(profiles_by(&[], &machine), (vec![By::Time], Vec::new()), "as ever");
}

#[test]
fn samples_of_a_cell_take_turns() {
    let watch = Watch { profile_hz: 99, profile_by: ASKED.to_vec(), ..Watch::default() };
    let mut watcher = Watcher::new(&watch, &[Privilege::User]);
    let event = |wanted: Wanted| wanted.by(Some(&Table::all()[0])).unwrap();
    watcher.by = ASKED.map(event).to_vec();
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(watcher.turn("one"));
        *watcher.profiled.entry("one".to_owned()).or_default() += 1;
    }
    assert_eq!(turns[0], By::Time);
    assert_eq!(turns[3], turns[0]);
    assert!(turns[1] != turns[2] && turns[1] == event(Wanted::L3Misses));
    assert_eq!(watcher.turn("two"), By::Time, "each cell begins with the first");
}
