//! How much of a choice a machine counts, by opening every group once.

use std::collections::BTreeSet;

use super::{Choice, chosen};
use crate::event::{Code, Event, Privilege};
use crate::group;
use crate::source::{CountError, Source, Target};
use crate::stream::UncountedEvent;
use crate::table::Table;

/// The events a machine was found to count.
#[derive(Default)]
pub(super) struct Trial {
    /// Events counted at the same time.
    pub(super) groups: Vec<Vec<Event>>,
    /// Events of the choice that are in no group.
    pub(super) left_out: Vec<UncountedEvent>,
}

impl Trial {
    /// Opens every group once, on this process, leaving events out until all groups open.
    pub(super) fn of(
        choice: &Choice,
        table: &Table,
        source: &mut dyn Source,
    ) -> Result<Self, CountError> {
        let always = table.always();
        let own = Target::Process(std::process::id());
        let privilege = choice.privileges.first().copied().unwrap_or(Privilege::User);
        // Without cycles and instructions there is nothing to normalise by.
        source.open(&always, privilege, &own)?;
        let (mut events, mut left_out) = events(choice, table);
        let mut counters = table.counters().saturating_sub(choice.spare).max(1);
        loop {
            let packed = group::pack(&events, &always, counters);
            if !packed.misfits.is_empty() {
                let why = format!("only {counters} counters are free, and it needs another");
                leave_out(&packed.misfits, &why, &mut events, &mut left_out);
                continue;
            }
            let groups: Vec<Vec<Event>> =
                packed.groups.into_iter().map(|group| led(group, table)).collect();
            let refused = groups.iter().find_map(|group| {
                let error = source.open(group, privilege, &own).err()?;
                Some(error)
            });
            match refused {
                None => return Ok(Self { groups, left_out }),
                Some(CountError::NoSuchEvent { event, why }) => {
                    let gone = without(&event, &events, table);
                    // One of the events that are always counted: without it there are no counters.
                    if gone.is_empty() {
                        return Err(CountError::NoSuchEvent { event, why });
                    }
                    leave_out(&gone, &why, &mut events, &mut left_out);
                }
                Some(CountError::DoesNotFit { .. }) if counters > 1 => counters -= 1,
                Some(error) => return Err(error),
            }
        }
    }
}

/// An event and those that it leads: without their leader they can't be counted.
fn without(gone: &str, events: &[Event], table: &Table) -> Vec<Event> {
    let goes = |event: &&Event| {
        let leader = table.leader(&event.name);
        event.name == gone || leader.is_some_and(|leader| leader.name == gone)
    };
    events.iter().filter(goes).cloned().collect()
}

/// A group with the event first that the kernel wants to lead it (PERF_METRICS behind
/// TOPDOWN.SLOTS: `intel_pmu_hw_config` refuses any other order).
fn led(mut group: Vec<Event>, table: &Table) -> Vec<Event> {
    let leader = group.iter().find_map(|event| table.leader(&event.name)).cloned();
    if let Some(at) = leader.and_then(|leader| group.iter().position(|event| *event == leader)) {
        group[..=at].rotate_right(1);
    }
    group
}

/// The events of a choice that are not always counted, and those that can't be counted so.
fn events(choice: &Choice, table: &Table) -> (Vec<Event>, Vec<UncountedEvent>) {
    let always: BTreeSet<String> = table.always().into_iter().map(|event| event.name).collect();
    let needed = table.needed(&chosen(&choice.metrics));
    let (mut events, mut left_out) = (Vec::new(), Vec::new());
    for event in needed.into_iter().filter(|event| !always.contains(&event.name)) {
        match event.code {
            // Counted by the kernel all the time, in a group of their own.
            Code::Software(_) => {}
            Code::Other { .. } => left_out.push(UncountedEvent {
                event: event.name.clone(),
                why: "several CPUs share its counter: it does not distinguish their work"
                    .to_owned(),
            }),
            _ => events.push(event.clone()),
        }
    }
    (events, left_out)
}

fn leave_out(
    gone: &[Event],
    why: &str,
    events: &mut Vec<Event>,
    left_out: &mut Vec<UncountedEvent>,
) {
    events.retain(|event| !gone.contains(event));
    let because = |event: &Event| UncountedEvent { event: event.name.clone(), why: why.to_owned() };
    left_out.extend(gone.iter().map(because));
}
