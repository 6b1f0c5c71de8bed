//! From slots to rates: every count over the instructions of its own slot, trimmed, by CPU.
//!
//! ```text
//!   slot: events of one group on CPU c     count ÷ instructions of that slot and CPU
//!   all slots of an event on a CPU         trimmed mean (S2.5)                     ──► by CPU
//!   all CPUs                               mean over those that did anything       ──► overall
//!   user and kernel                        weighted by instructions, so that times mix (S2.6)
//! ```
//!
//! Two events of different groups were never counted together; they are comparable because each is
//! normalised by the work of its own slot. Where no event counts instructions, work is in
//! nanoseconds on a CPU.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cycles::{Reduction, Rule, reduce};
use crate::event::Privilege;
use crate::stream::{Group, Slot, Stream};

/// Rates of all events of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// By event, privilege and CPU; no CPU for all of them together.
    rates: BTreeMap<Key, Rate>,
}

/// The name is shared: thousands of CPUs may have it.
type Key = (Arc<str>, Privilege, Option<u32>);

/// How often an event happens.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// Per instruction, or per nanosecond on a CPU where no event counts instructions.
    pub per_unit: Reduction,
    /// Per second of the slots' time.
    pub per_s: Reduction,
}

impl Rates {
    /// Rates of the usable slots; `unit` is the event that counts the work.
    #[must_use]
    pub fn of(stream: &Stream, unit: &str) -> Self {
        let names = |group: &Group| -> Vec<Arc<str>> {
            group.events.iter().map(|event| Arc::from(event.name.as_str())).collect()
        };
        let names: Vec<Vec<Arc<str>>> = stream.header.groups.iter().map(names).collect();
        let mut values: BTreeMap<Key, Values> = BTreeMap::new();
        for slot in stream.usable().filter(|slot| slot.wall_s > 0.0) {
            let privilege = stream.header.groups[slot.group].privilege;
            collect((names[slot.group].as_slice(), privilege), slot, unit, &mut values);
        }
        let rated = values.into_iter().filter_map(|(key, values)| Some((key, values.rate()?)));
        let mut rates: BTreeMap<Key, Rate> = rated.collect();
        rates.extend(over_cpus(&rates));
        Self { rates }
    }

    /// A rate, on one CPU or over all of them.
    #[must_use]
    pub fn rate(&self, event: &str, privilege: Privilege, cpu: Option<u32>) -> Option<&Rate> {
        let key: Key = (Arc::from(event), privilege, cpu);
        self.rates.get(&key)
    }

    /// In how many slots an event was counted: on one CPU, or on the one that has most of them.
    #[must_use]
    pub fn slots(&self, event: &str, privilege: Privilege, cpu: Option<u32>) -> Option<usize> {
        let of = |rate: &Rate| rate.per_unit.n + rate.per_unit.dropped.len();
        let own = || self.rate(event, privilege, cpu).map(of);
        if cpu.is_some() {
            return own();
        }
        let at = |cpu| -> Key { (Arc::from(event), privilege, cpu) };
        let on_cpus = self.rates.range(at(Some(0))..=at(Some(u32::MAX)));
        on_cpus.map(|(_, rate)| of(rate)).max().or_else(own)
    }

    /// The CPUs that anything was counted on.
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        let cpus: std::collections::BTreeSet<u32> =
            self.rates.keys().filter_map(|(_, _, cpu)| *cpu).collect();
        cpus.into_iter().collect()
    }

    /// How often an event happens in a unit of work of user and kernel together: where it was not
    /// counted so, each side's rate, weighted by how much of the work is its own. `unit` is the
    /// event that counts the work. For cycles this is S2.6's mix by shares of time, `1 / (f /
    /// CPI_user + (1 - f) / CPI_kernel)`.
    #[must_use]
    pub fn per_unit(
        &self,
        event: &str,
        unit: &str,
        privilege: Privilege,
        cpu: Option<u32>,
    ) -> Option<f64> {
        let of = |event: &str, privilege| self.rate(event, privilege, cpu);
        let own = of(event, privilege).map(|rate| rate.per_unit.mean);
        if privilege != Privilege::Both || own.is_some() {
            return own;
        }
        let side = |privilege| {
            let work_per_s = of(unit, privilege)?.per_s.mean;
            Some((work_per_s, of(event, privilege)?.per_unit.mean))
        };
        let ((user_work, user), (kernel_work, kernel)) =
            (side(Privilege::User)?, side(Privilege::Kernel)?);
        let work = user_work + kernel_work;
        (work > 0.0).then(|| (user_work * user + kernel_work * kernel) / work)
    }
}

/// The values of one event on one CPU.
#[derive(Default)]
struct Values {
    per_unit: Vec<f64>,
    per_s: Vec<f64>,
}

impl Values {
    fn rate(&self) -> Option<Rate> {
        Some(Rate { per_unit: trimmed(&self.per_unit)?, per_s: trimmed(&self.per_s)? })
    }
}

/// The trimmed mean, and the plain one where there are too few slots to drop any.
fn trimmed(values: &[f64]) -> Option<Reduction> {
    reduce(values, Rule::Trimmed).or_else(|_| reduce(values, Rule::Plain)).ok()
}

fn collect(
    (names, privilege): (&[Arc<str>], Privilege),
    slot: &Slot,
    unit: &str,
    values: &mut BTreeMap<Key, Values>,
) {
    let of_unit = names.iter().position(|name| **name == *unit);
    for on in &slot.cpus {
        let Some(work) = of_unit.map(|of_unit| on.reading.values[of_unit]) else { continue };
        for (name, value) in names.iter().zip(&on.reading.values) {
            let key = (Arc::clone(name), privilege, on.cpu);
            let of_event = values.entry(key).or_default();
            // An idle CPU has no rate per unit of work, but its rate per second is zero. Else a
            // side that rarely runs would weigh as if it always ran.
            if work > 0 {
                of_event.per_unit.push(*value as f64 / work as f64);
            }
            of_event.per_s.push(*value as f64 / slot.wall_s);
        }
    }
}

/// The mean over the CPUs, each counting the same, as Keeton et al. print them; what happens in a
/// second is added up.
fn over_cpus(rates: &BTreeMap<Key, Rate>) -> Vec<(Key, Rate)> {
    let mut by_event: BTreeMap<(&Arc<str>, Privilege), Vec<&Rate>> = BTreeMap::new();
    for ((event, privilege, cpu), rate) in rates {
        if cpu.is_some() {
            by_event.entry((event, *privilege)).or_default().push(rate);
        }
    }
    let all = |((event, privilege), rates): ((&Arc<str>, Privilege), Vec<&Rate>)| {
        let per_unit: Vec<&Reduction> = rates.iter().map(|rate| &rate.per_unit).collect();
        let per_s: Vec<&Reduction> = rates.iter().map(|rate| &rate.per_s).collect();
        let cpus = rates.len() as f64;
        let rate = Rate { per_unit: combined(&per_unit, cpus), per_s: combined(&per_s, 1.0) };
        ((Arc::clone(event), privilege, None), rate)
    };
    by_event.into_iter().map(all).collect()
}

/// The sum of independent means over a number.
fn combined(parts: &[&Reduction], over: f64) -> Reduction {
    let mean = parts.iter().map(|part| part.mean).sum::<f64>() / over;
    let variance: Option<f64> = parts.iter().map(|part| part.sd.map(|sd| sd * sd)).sum();
    Reduction {
        mean,
        sd: variance.map(|variance| variance.sqrt() / over),
        n: parts.iter().map(|part| part.n).sum(),
        dropped: parts.iter().flat_map(|part| part.dropped.iter().copied()).collect(),
        noisy: parts.iter().map(|part| part.noisy).max().flatten(),
    }
}
