//! The choice of the next thread on a CPU.

use workahead_policy::{Core, Group, Pick, Publish, Role, Thread, Tunables};

use super::fair::Slices;
use super::running::{Cpu, Entity};
use super::{Choosing, Schedule, Seat};
use crate::preset::Preset;
use crate::ticks::Ticks;

/// A discipline with its state.
#[derive(Debug)]
pub(super) enum Chooser {
    Fair,
    Deadline,
    Aggregating {
        /// Bonuses in ticks: only differences are compared.
        tunables: Tunables,
        seats: Vec<Seat>,
        /// `ia_mm`, by channel.
        published: Vec<Option<Group>>,
        /// `agg_count` of the group that ran last, by CPU.
        counts: Vec<u32>,
    },
    Gang {
        length: Ticks,
        gang: Option<Group>,
        ends: Ticks,
        /// Number of slots begun.
        slot: u64,
    },
    Fitting {
        reach: Ticks,
        /// Bytes of a last cache, and its CPUs.
        bytes: u64,
        cpus: usize,
    },
}

/// The run queues as the deciding CPU sees them.
#[derive(Clone, Copy)]
pub(super) struct Sight<'r> {
    pub(super) at: usize,
    pub(super) now: Ticks,
    /// The thread that ran last and can continue; it is not in the queue.
    pub(super) current: Option<usize>,
    pub(super) cpus: &'r [Cpu],
    pub(super) entities: &'r [Entity<'r>],
    pub(super) slices: &'r Slices,
    /// The thread of this CPU that has waited too long.
    pub(super) overdue: Option<usize>,
}

impl Sight<'_> {
    fn queued(&self) -> impl Iterator<Item = usize> + '_ {
        self.cpus[self.at].queue.tasks()
    }

    /// The queue with the current thread in its place: behind equals, as when CFS requeues it.
    fn runnable(&self) -> impl Iterator<Item = usize> + '_ {
        let current = self.current.map(|task| (task, self.entities[task].vruntime));
        let before = move |task: &usize| {
            current.is_none_or(|(_, vruntime)| self.entities[*task].vruntime <= vruntime)
        };
        let after = self.queued().skip_while(before);
        self.queued().take_while(before).chain(self.current).chain(after)
    }

    pub(super) fn head(&self) -> Option<usize> {
        self.runnable().next()
    }

    fn in_group(&self, group: Option<Group>) -> Option<usize> {
        self.runnable().find(|task| group.is_some() && self.entities[*task].group == group)
    }

    fn thread(&self, task: usize) -> Thread {
        let entity = &self.entities[task];
        Thread { vruntime_ns: entity.vruntime, group: entity.group }
    }
}

impl Chooser {
    pub(super) fn new(by: &Schedule, preset: &Preset, ticks: impl Fn(u64) -> Ticks) -> Self {
        let cpus = preset.cpus() as usize;
        match &by.choosing {
            Choosing::Fair => Self::Fair,
            Choosing::Deadline => Self::Deadline,
            Choosing::Aggregating { tunables, seats } => {
                assert!(seats.len() >= cpus, "{} seats for {cpus} CPUs", seats.len());
                let channels = seats.iter().map(|seat| seat.channel + 1).max().unwrap_or_default();
                let tunables = Tunables {
                    bonus_ns: ticks(tunables.bonus_ns),
                    companion_bonus_ns: tunables.companion_bonus_ns.map(&ticks),
                    limit: tunables.limit,
                    ..Tunables::default()
                };
                let published = vec![None; channels];
                Self::Aggregating {
                    tunables,
                    seats: seats.clone(),
                    published,
                    counts: vec![0; cpus],
                }
            }
            Choosing::Gang { slot_ns } => {
                Self::Gang { length: ticks(*slot_ns).max(1), gang: None, ends: 0, slot: 0 }
            }
            Choosing::Fitting { reach_ns } => {
                let last = preset.cache.last();
                Self::Fitting {
                    reach: ticks(*reach_ns),
                    bytes: last.map_or(0, |cache| cache.bytes),
                    cpus: last.map_or(1, |cache| cache.cores * preset.threads).max(1) as usize,
                }
            }
        }
    }

    /// End of the gang slot.
    pub(super) fn slot_ends(&self) -> Ticks {
        match self {
            Self::Gang { ends, .. } => *ends,
            _ => Ticks::MAX,
        }
    }

    /// Number of the gang slot: a CPU decides again in each.
    pub(super) fn slot(&self) -> u64 {
        match self {
            Self::Gang { slot, .. } => *slot,
            _ => 0,
        }
    }

    /// Whether a woken thread preempts the current one whatever their vruntimes.
    pub(super) fn prefers(&self, woken: Option<Group>, current: Option<Group>) -> bool {
        match self {
            Self::Gang { gang, .. } => gang.is_some() && woken == *gang && current != *gang,
            _ => false,
        }
    }

    /// Length of a slice: EEVDF's requests are equal.
    pub(super) fn slice(&self, fair: Ticks, slices: &Slices) -> Ticks {
        match self {
            Self::Deadline => slices.granularity,
            _ => fair,
        }
    }

    /// The group published to a CPU.
    pub(super) fn shared(&self, cpu: usize) -> Option<Group> {
        match self {
            Self::Aggregating { seats, published, .. } if seats[cpu].role == Role::Slave => {
                published[seats[cpu].channel]
            }
            _ => None,
        }
    }

    /// The thread that runs next.
    pub(super) fn next(&mut self, seen: Sight<'_>) -> Option<usize> {
        let next = match self {
            Self::Fair => seen.head(),
            Self::Deadline => earliest(&seen),
            Self::Aggregating { .. } => self.aggregated(&seen),
            Self::Gang { length, gang, ends, slot } => {
                if seen.now >= *ends || gang.is_some() && !is_runnable(&seen, *gang) {
                    *gang = due(&seen);
                    *ends = seen.now + *length;
                    *slot += 1;
                }
                seen.in_group(*gang).or_else(|| seen.head())
            }
            Self::Fitting { reach, bytes, cpus } => fitting(&seen, *reach, *bytes, *cpus),
        };
        seen.overdue.or(next)
    }

    fn aggregated(&mut self, seen: &Sight<'_>) -> Option<usize> {
        let shared = self.shared(seen.at);
        let Self::Aggregating { tunables, seats, published, counts } = self else { return None };
        let (seat, own) = (seats[seen.at], seen.cpus[seen.at].own);
        let current = seen.current.map(|task| seen.thread(task));
        let core = Core { role: seat.role, own, shared, count: counts[seen.at], current };
        // As if Eq. 2 to 5 were false: the meaning of `Scan::overdue`.
        let by = match seen.overdue {
            Some(_) => Tunables { bonus_ns: 0, companion_bonus_ns: None, ..*tunables },
            None => *tunables,
        };
        let queue = seen.queued().map(|task| seen.thread(task));
        let chosen = workahead_policy::choose(&core, queue, &by);
        counts[seen.at] = chosen.choice.count.after(counts[seen.at]);
        match chosen.choice.publish {
            Publish::Leave => {}
            Publish::Withdraw => published[seat.channel] = None,
            Publish::Own => published[seat.channel] = own,
        }
        match (chosen.choice.pick, chosen.position) {
            (Pick::Nobody, _) => None,
            (_, Some(position)) => seen.queued().nth(position),
            (_, None) => seen.current,
        }
    }
}

/// EEVDF: the earliest deadline of the threads whose vruntime is at most the mean.
fn earliest(seen: &Sight<'_>) -> Option<usize> {
    let origin = seen.entities[seen.head()?].vruntime;
    let (mut sum, mut load) = (0_u128, 0_u128);
    for task in seen.runnable() {
        let one = &seen.entities[task];
        sum += u128::from(one.vruntime - origin) * u128::from(one.weight);
        load += u128::from(one.weight);
    }
    let is_eligible =
        |task: &usize| u128::from(seen.entities[*task].vruntime - origin) * load <= sum;
    seen.runnable().filter(is_eligible).min_by_key(|task| {
        let one = &seen.entities[*task];
        one.vruntime + super::fair::virtual_ticks(seen.slices.granularity, one.weight)
    })
}

/// Whether a thread of a gang could run on any CPU.
fn is_runnable(seen: &Sight<'_>, gang: Option<Group>) -> bool {
    let of_gang = |task: usize| gang.is_some() && seen.entities[task].group == gang;
    let elsewhere = |(cpu, one): (usize, &Cpu)| {
        cpu != seen.at && (one.current.is_some_and(of_gang) || one.queue.tasks().any(of_gang))
    };
    seen.in_group(gang).is_some() || seen.cpus.iter().enumerate().any(elsewhere)
}

/// The group of the thread furthest behind on any CPU.
fn due(seen: &Sight<'_>) -> Option<Group> {
    let of_cpu = |(cpu, one): (usize, &Cpu)| {
        let current = if cpu == seen.at { seen.current } else { one.current };
        let head = Sight { at: cpu, current, ..*seen }.head()?;
        Some((seen.entities[head].vruntime.saturating_sub(one.queue.least), cpu, head))
    };
    let heads = seen.cpus.iter().enumerate().filter_map(of_cpu);
    heads.min().and_then(|(_, _, head)| seen.entities[head].group)
}

/// The first thread whose working set fits with those running on the CPUs of its last cache.
fn fitting(seen: &Sight<'_>, reach: Ticks, bytes: u64, cpus: usize) -> Option<usize> {
    let head = seen.head()?;
    let first = seen.at / cpus * cpus;
    let beside = (first..(first + cpus).min(seen.cpus.len())).filter(|cpu| *cpu != seen.at);
    let running = beside.filter_map(|cpu| seen.cpus[cpu].current);
    let taken: u64 = running.map(|task| seen.entities[task].working_set_bytes).sum();
    let last = seen.entities[head].vruntime.saturating_add(reach);
    seen.runnable()
        .take_while(|task| seen.entities[*task].vruntime <= last)
        .find(|task| taken + seen.entities[*task].working_set_bytes <= bytes)
        .or(Some(head))
}
