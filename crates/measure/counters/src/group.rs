//! Packs events into groups that fit the counters of a core, each led by the events that are always
//! counted.
//!
//! Two arms of an experiment may have different numbers of counters: before Ice Lake a core's eight
//! are halved where both hardware threads are on. Groups are made for the smaller number, so that
//! both arms count the same events together.

use crate::event::{Event, Place};

/// The most general counters that a core has.
const COUNTERS_MAX: usize = 16;

/// Events packed into groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packing {
    /// Events that are counted at the same time.
    pub groups: Vec<Vec<Event>>,
    /// Events that fit no group: the core lacks their counters.
    pub misfits: Vec<Event>,
}

/// Puts events into as few groups as it finds, in the order given: each goes into the first group
/// that has a counter left for it. `always` leads every group and is not in `events`; those of it
/// that have no counter of their own take a general one.
#[must_use]
pub fn pack(events: &[Event], always: &[Event], counters: u8) -> Packing {
    let mut groups: Vec<Vec<Event>> = Vec::new();
    let mut misfits = Vec::new();
    for event in events {
        let alone: Vec<Event> = always.iter().chain([event]).cloned().collect();
        if !fits(&alone, counters) {
            misfits.push(event.clone());
            continue;
        }
        let room = groups.iter_mut().find(|group| {
            let mut with = (*group).clone();
            with.push(event.clone());
            fits(&with, counters)
        });
        match room {
            Some(group) => group.push(event.clone()),
            None => groups.push(alone),
        }
    }
    if groups.is_empty() && !always.is_empty() {
        groups.push(always.to_vec());
    }
    Packing { groups, misfits }
}

/// Whether every event of a group can have a counter at the same time: a matching of events and
/// counters, by augmenting paths.
#[must_use]
pub fn fits(group: &[Event], counters: u8) -> bool {
    let mut fixed = Vec::new();
    let mut holder: [Option<usize>; COUNTERS_MAX] = [None; COUNTERS_MAX];
    let counters = usize::from(counters).min(COUNTERS_MAX);
    for (index, event) in group.iter().enumerate() {
        let placed = match event.place {
            Place::None => true,
            Place::Fixed(number) if fixed.contains(&number) => false,
            Place::Fixed(number) => {
                fixed.push(number);
                true
            }
            Place::Any | Place::Only(_) => {
                let mut tried = [false; COUNTERS_MAX];
                place(index, group, &mut holder[..counters], &mut tried)
            }
        };
        if !placed {
            return false;
        }
    }
    true
}

/// Finds a counter for an event, moving others if need be.
fn place(
    index: usize,
    group: &[Event],
    holder: &mut [Option<usize>],
    tried: &mut [bool; COUNTERS_MAX],
) -> bool {
    for counter in 0..holder.len() {
        if tried[counter] || !may(group[index].place, counter) {
            continue;
        }
        tried[counter] = true;
        let is_free = match holder[counter] {
            None => true,
            Some(other) => place(other, group, holder, tried),
        };
        if is_free {
            holder[counter] = Some(index);
            return true;
        }
    }
    false
}

fn may(place: Place, counter: usize) -> bool {
    match place {
        Place::Any => true,
        Place::Only(mask) => mask & (1 << counter) != 0,
        Place::None | Place::Fixed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::Code;

    fn event(name: usize, place: Place) -> Event {
        let code = Code::Core { config: name as u64, config1: 0 };
        Event { name: format!("e{name}"), code, place }
    }

    fn places() -> impl Strategy<Value = Vec<Place>> {
        let one = prop_oneof![
            Just(Place::Any),
            (1_u16..16).prop_map(Place::Only),
            (0_u8..3).prop_map(Place::Fixed),
            Just(Place::None),
        ];
        prop::collection::vec(one, 0..9)
    }

    /// Every way to hand out counters, one after the other.
    fn any_way(group: &[Event], taken: u16, fixed: u8, counters: u8) -> bool {
        let Some((first, rest)) = group.split_first() else { return true };
        match first.place {
            Place::None => any_way(rest, taken, fixed, counters),
            Place::Fixed(number) => {
                fixed & (1 << number) == 0 && any_way(rest, taken, fixed | (1 << number), counters)
            }
            place => (0..usize::from(counters)).any(|counter| {
                may(place, counter)
                    && taken & (1 << counter) == 0
                    && any_way(rest, taken | (1 << counter), fixed, counters)
            }),
        }
    }

    proptest! {
        #[test]
        fn a_group_fits_when_there_is_any_way(places in places(), counters in 0_u8..5) {
            let group: Vec<Event> =
                places.into_iter().enumerate().map(|(name, place)| event(name, place)).collect();
            prop_assert_eq!(fits(&group, counters), any_way(&group, 0, 0, counters));
        }

        #[test]
        fn every_event_is_in_one_group_and_every_group_fits(places in places()) {
            let always = [event(100, Place::Fixed(7)), event(101, Place::Fixed(6))];
            let events: Vec<Event> =
                places.into_iter().enumerate().map(|(name, place)| event(name, place)).collect();
            let Packing { groups, misfits } = pack(&events, &always, 2);
            for group in &groups {
                prop_assert!(fits(group, 2));
                prop_assert_eq!(&group[..2], &always[..]);
            }
            let mut packed: Vec<Event> =
                groups.iter().flat_map(|group| group[2..].iter().cloned()).collect();
            prop_assert!(misfits.iter().all(|event| !fits(std::slice::from_ref(event), 2)));
            packed.extend(misfits);
            packed.sort_by(|one, other| one.name.cmp(&other.name));
            prop_assert_eq!(packed, events);
        }
    }

    #[test]
    fn the_smaller_arm_makes_the_groups() {
        let events: Vec<Event> = (0..8).map(|name| event(name, Place::Any)).collect();
        assert_eq!(pack(&events, &[], 4).groups.len(), 2);
        assert_eq!(pack(&events, &[], 8).groups.len(), 1);
        // Events that only the first counter can count come once a group.
        let picky: Vec<Event> = (0..3).map(|name| event(name, Place::Only(1))).collect();
        assert_eq!(pack(&picky, &[], 4).groups.len(), 3);
    }

    #[test]
    fn events_always_counted_are_a_group_by_themselves() {
        let always = [event(0, Place::Fixed(0))];
        assert_eq!(pack(&[], &always, 4).groups, [always.to_vec()]);
        assert_eq!(pack(&[], &[], 4), Packing::default());
    }
}
