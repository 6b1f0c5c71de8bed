//! The counts and profiles of a cell, its repetitions merged.
//!
//! Each repetition has a stream of slots of its own. The slots of all of them are observations of
//! the same work, so they become one stream before anything is reduced: a group of events that had
//! three slots in each of five repetitions has fifteen, and a trimmed mean has something to trim.

use std::collections::{HashMap, HashSet};

use workahead_counters::instrumented::Functions;
use workahead_counters::metrics::Metrics;
use workahead_counters::profile::Profile;
use workahead_counters::stream::{Group, Header, Slot, Stream, UncountedEvent};

use super::Results;
use crate::collection::Collection;

/// Of a cell: a machine has some hundred events.
const LEFT_OUT_MAX: usize = 4096;

impl Results {
    /// The collection of each sample of a cell, by repetition.
    fn collections(&self, cell: usize) -> impl Iterator<Item = &Collection> {
        self.of_cell(cell).filter_map(|seen| seen.sample()?.collection.as_deref())
    }

    /// Every slot of a cell in one stream, in the order of repetitions; `None` if nothing was
    /// counted.
    pub fn counts(&self, cell: usize) -> Option<Stream> {
        joined(self.collections(cell).filter_map(|collection| collection.counts.as_ref()))
    }

    /// Every metric of a cell over all CPUs, from the slots of all its repetitions.
    pub fn metrics(&self, cell: usize) -> Option<Metrics> {
        let over_all = |counts: Stream| Metrics::of(&counts).only(|one| one.cpu.is_none());
        self.counts(cell).map(over_all)
    }

    /// The profile of a cell, over all repetitions with the clock of the first. Its stacks are
    /// those of the first repetition, the only ones kept.
    pub fn profile(&self, cell: usize) -> Option<Profile> {
        self.profiles(cell).into_iter().next()
    }

    /// One profile for each clock that a cell was sampled by, in their first order: time, then
    /// misses if the study collects them.
    pub fn profiles(&self, cell: usize) -> Vec<Profile> {
        let mut by_clock: Vec<Vec<Profile>> = Vec::new();
        for one in self.collections(cell).filter_map(|collection| collection.profile.as_ref()) {
            match by_clock.iter_mut().find(|known| known[0].clock == one.clock) {
                Some(known) => known.push(one.clone()),
                None => by_clock.push(vec![one.clone()]),
            }
        }
        by_clock.into_iter().filter_map(merged).collect()
    }

    /// The first profile of a cell that has stacks, unmerged, for its flame graph.
    pub fn stacks(&self, cell: usize) -> Option<&Profile> {
        let mut profiles =
            self.collections(cell).filter_map(|collection| collection.profile.as_ref());
        profiles.find(|profile| !profile.stacks.is_empty())
    }

    /// The counted functions of a cell, of its first sample: a model counts the others alike.
    pub fn functions(&self, cell: usize) -> Option<&Functions> {
        self.collections(cell).find_map(|collection| collection.functions.as_ref())
    }

    /// Why requested data is missing, each reason once. Empty if nothing is collected, and for a
    /// cell without samples, whose absence has a reason of its own.
    pub fn uncollected(&self, cell: usize) -> Vec<String> {
        let options = self.spec.method.collection();
        if options.is_nothing() || !self.of_cell(cell).any(|seen| seen.sample().is_some()) {
            return Vec::new();
        }
        let (mut reasons, mut known) = (Vec::new(), HashSet::new());
        let mut tell = |reason: &str| {
            if known.insert(reason.to_owned()) {
                reasons.push(reason.to_owned());
            }
        };
        for collection in self.collections(cell) {
            collection.lacks.iter().for_each(|reason| tell(reason));
            let counts = collection.counts.as_ref();
            counts
                .and_then(|counts| counts.header.lacks.as_ref())
                .into_iter()
                .for_each(|r| tell(r));
        }
        if self.collections(cell).next().is_none() {
            tell("the engine collects nothing: it can only be timed");
        }
        reasons
    }
}

/// Profiles of one clock as one, two by two: one after the other, what is merged would be copied
/// for each of them.
fn merged(mut profiles: Vec<Profile>) -> Option<Profile> {
    while profiles.len() > 1 {
        let pairs = profiles.chunks(2).map(|pair| match pair {
            [one, other] => one.merge(other).unwrap_or_else(|| one.clone()),
            alone => alone[0].clone(),
        });
        profiles = pairs.collect();
    }
    profiles.pop()
}

/// Streams as if counted in one run; `None` of none.
fn joined<'a>(mut streams: impl Iterator<Item = &'a Stream>) -> Option<Stream> {
    let first = streams.next()?;
    let mut known = Known::of(&first.header);
    let mut all = first.clone();
    streams.for_each(|next| join(&mut all, &mut known, next));
    Some(all)
}

/// What a header has: each repetition of somebody else's may have other groups.
struct Known<'a> {
    /// Their places.
    groups: HashMap<&'a Group, usize>,
    left_out: HashSet<&'a UncountedEvent>,
}

impl<'a> Known<'a> {
    fn of(header: &'a Header) -> Self {
        let mut groups = HashMap::new();
        for (place, group) in header.groups.iter().enumerate() {
            groups.entry(group).or_insert(place);
        }
        Self { groups, left_out: header.left_out.iter().collect() }
    }
}

/// Adds a stream.
fn join<'a>(all: &mut Stream, known: &mut Known<'a>, next: &'a Stream) {
    let end_s = all.slots.last().map_or(0.0, |slot| slot.begun_s + slot.wall_s);
    let mut places = Vec::with_capacity(next.header.groups.len());
    for group in &next.header.groups {
        places.push(*known.groups.entry(group).or_insert_with(|| {
            all.header.groups.push(group.clone());
            all.header.groups.len() - 1
        }));
    }
    all.slots.extend(next.slots.iter().map(|slot| Slot {
        group: places[slot.group],
        begun_s: end_s + slot.begun_s,
        ..slot.clone()
    }));
    let (header, other) = (&mut all.header, &next.header);
    header.table = header.table.take().or_else(|| other.table.clone());
    header.constructed = header.constructed.take().or_else(|| other.constructed.clone());
    header.lacks = header.lacks.take().or_else(|| other.lacks.clone());
    for left in &other.left_out {
        if header.left_out.len() < LEFT_OUT_MAX && known.left_out.insert(left) {
            header.left_out.push(left.clone());
        }
    }
}

#[cfg(test)]
mod tests;
