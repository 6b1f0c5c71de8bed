//! Many events on few counters: one group at a time, on all CPUs at once, in an order that differs
//! from repetition to repetition (Keeton et al. 1998, section 2.5; S2.4).
//!
//! ```text
//!   slot      0    1    2    3    4    5    6    7 …      a round visits every group once,
//!   group     2    0    1    3  │ 0    3    1    2 …      in an order drawn for that round
//!   CPU 0     ▓▓▓▓ ▓▓▓▓ ▓▓▓▓ ▓▓▓▓ …                       the same group on all CPUs
//!   CPU 1     ▓▓▓▓ ▓▓▓▓ ▓▓▓▓ ▓▓▓▓ …
//! ```
//!
//! The kernel could share counters out by itself (multiplexing), and would then extrapolate. Here a
//! group has its counters for the whole of a slot, or the slot is thrown away and counted as such.

use std::ops::RangeInclusive;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::source::{CountError, Counting, Reading, Source, Target};
use crate::stream::{Group, OnCpu, Slot, Spoilt};
use crate::target::Targets;

/// Seconds of a slot: shorter ones are mostly opening and closing, longer ones leave nothing to
/// average.
pub const SLOT_S: RangeInclusive<f64> = 0.01..=600.0;

/// No count of 48-bit counters is larger, however they wrap.
const COUNT_MAX: u64 = 1 << 48;

/// How much of a slot a group may be without its counters: what the system call itself takes.
const ABSENT_MAX: f64 = 0.001;

/// A rotation over groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotation {
    /// Groups of events counted together.
    pub groups: Vec<Group>,
    /// How long each group is counted.
    pub slot_s: f64,
    /// Seed of the order.
    pub seed: u64,
}

/// The time of a rotation.
pub trait Pace {
    /// Seconds since some moment, monotonic.
    fn now_s(&self) -> f64;

    /// Waits until then; false if the rotation must end now.
    fn wait_until(&mut self, then_s: f64) -> bool;
}

impl Rotation {
    /// With slots of nearly the same length such that a window holds whole rounds: then every event
    /// is observed equally often. A window shorter than half a round keeps the length, and later
    /// repetitions continue where it stopped.
    #[must_use]
    pub fn fitted(mut self, window_s: f64) -> Self {
        let round_s = self.groups.len() as f64 * self.slot_s;
        let rounds = (window_s / round_s).round();
        if rounds >= 1.0 {
            self.slot_s = window_s / (rounds * self.groups.len() as f64);
        }
        self
    }

    /// Which group the `position`th slot of all repetitions counts.
    #[must_use]
    pub fn group_at(&self, position: u64) -> usize {
        let groups = self.groups.len() as u64;
        let (round, place) = (position / groups, position % groups);
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        // A stream of its own for each round: no round depends on how many were drawn before it.
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(round);
        order.shuffle(&mut random);
        order[usize::try_from(place).expect("less than the number of groups")]
    }

    /// Counts slot after slot until the pace ends it. `first` is the position that this repetition
    /// begins at. A slot that is cut off is kept: its values are normalised by its own
    /// instructions. Returns why it ended early, if it did.
    pub fn run(
        &self,
        first: u64,
        source: &mut dyn Source,
        targets: &mut dyn Targets,
        pace: &mut dyn Pace,
        keep: &mut dyn FnMut(Slot),
    ) -> Option<CountError> {
        let begun_s = pace.now_s();
        for position in first.. {
            let group = self.group_at(position);
            let mut slot_begun_s = pace.now_s();
            let current = targets.current();
            let counted = count(&self.groups[group], source, &current, || {
                // On a busy CPU opening may take as long as a slot.
                slot_begun_s = pace.now_s();
                // From the start, not from the last end: the time of opening does not add up.
                let end_s = begun_s + (position - first + 1) as f64 * self.slot_s;
                pace.wait_until(end_s.max(slot_begun_s + self.slot_s / 2.0))
            });
            let wall_s = pace.now_s() - slot_begun_s;
            let (counted, goes_on) = match counted {
                Ok((cpus, goes_on)) => (Ok(cpus), goes_on),
                // Another slot may succeed; any other refusal is final.
                Err(CountError::Busy) => {
                    let end_s = slot_begun_s + self.slot_s;
                    (Err(CountError::Busy), pace.wait_until(end_s))
                }
                Err(error) => return Some(error),
            };
            let (cpus, spoilt) = match counted {
                Ok(cpus) => {
                    let spoilt = spoilt(&current, &cpus);
                    (cpus, spoilt)
                }
                Err(error) => (Vec::new(), Some(Spoilt::Refused(error.to_string()))),
            };
            keep(Slot { group, begun_s: slot_begun_s - begun_s, wall_s, cpus, spoilt });
            if !goes_on {
                return None;
            }
        }
        None
    }
}

/// Opens a group on all targets, counts for a slot, and reads it.
fn count(
    group: &Group,
    source: &mut dyn Source,
    targets: &[Target],
    wait: impl FnOnce() -> bool,
) -> Result<(Vec<OnCpu>, bool), CountError> {
    let mut opened: Vec<(Option<u32>, Box<dyn Counting>)> = Vec::with_capacity(targets.len());
    for target in targets {
        match source.open(&group.events, group.privilege, target) {
            Ok(counting) => opened.push((target.cpu(), counting)),
            // It ended after it was listed.
            Err(CountError::Gone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    for (_, counting) in &mut opened {
        counting.begin()?;
    }
    let goes_on = wait();
    let mut cpus: Vec<OnCpu> = Vec::new();
    for (cpu, counting) in &mut opened {
        let reading = counting.end()?;
        match cpus.iter_mut().find(|on| on.cpu == *cpu) {
            Some(on) => on.reading.add(&reading),
            None => cpus.push(OnCpu { cpu: *cpu, reading }),
        }
    }
    Ok((cpus, goes_on))
}

/// Why a slot is discarded.
///
/// The kernel takes a thread's counter on a CPU for enabled while the thread runs anywhere, and for
/// running only while it runs there (kernel/events/core.c: an event whose CPU does not match stays
/// inactive). So only all counters of a thread together show whether they covered its whole time:
/// their running times then add up to it.
fn spoilt(targets: &[Target], cpus: &[OnCpu]) -> Option<Spoilt> {
    let follows = |target: &Target| matches!(target, Target::ThreadOnCpu { .. });
    if !targets.iter().any(follows) {
        return cpus.iter().find_map(|on| fault(&on.reading));
    }
    let readings = || cpus.iter().map(|on| &on.reading);
    fault(&Reading {
        // The least: counters are opened one after another, and the first see a little more.
        enabled_ns: readings().map(|reading| reading.enabled_ns).min()?,
        running_ns: readings().map(|reading| reading.running_ns).sum(),
        values: readings().flat_map(|reading| reading.values.iter().copied()).collect(),
    })
}

/// Why a reading is discarded.
fn fault(reading: &Reading) -> Option<Spoilt> {
    let Reading { enabled_ns, running_ns, values } = reading;
    let short_ns = enabled_ns.saturating_sub(*running_ns) as f64;
    match () {
        // The target did not run: nothing was missed.
        () if *enabled_ns == 0 => None,
        () if *running_ns == 0 => Some(Spoilt::NeverRan),
        () if short_ns > *enabled_ns as f64 * ABSENT_MAX => Some(Spoilt::Multiplexed),
        () if values.iter().any(|value| *value >= COUNT_MAX) => Some(Spoilt::Wrapped),
        () => None,
    }
}

impl Reading {
    /// Adds the counts of another target in the same slot.
    fn add(&mut self, other: &Reading) {
        self.enabled_ns += other.enabled_ns;
        self.running_ns += other.running_ns;
        for (value, more) in self.values.iter_mut().zip(&other.values) {
            *value = value.saturating_add(*more);
        }
    }
}

#[cfg(test)]
mod tests;
