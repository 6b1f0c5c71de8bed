//! The choice of the next thread on a CPU.

use workahead_policy::{Core, Group, Pick, Publish, Role, Thread, Tunables};

use super::dispatcher::{Cpu, Entity};
use super::fair::Slices;
use super::{Discipline, RoleAssignment, Scheduler};
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
        roles: Vec<RoleAssignment>,
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
pub(super) struct QueueView<'r> {
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

impl QueueView<'_> {
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
    pub(super) fn new(by: &Scheduler, preset: &Preset, ticks: impl Fn(u64) -> Ticks) -> Self {
        let cpus = preset.cpus() as usize;
        match &by.discipline {
            Discipline::Fair => Self::Fair,
            Discipline::Deadline => Self::Deadline,
            Discipline::Aggregating { tunables, roles } => {
                assert!(roles.len() >= cpus, "{} roles for {cpus} CPUs", roles.len());
                let channels =
                    roles.iter().map(|assignment| assignment.channel + 1).max().unwrap_or_default();
                let tunables = Tunables {
                    bonus_ns: ticks(tunables.bonus_ns),
                    companion_bonus_ns: tunables.companion_bonus_ns.map(&ticks),
                    limit: tunables.limit,
                    ..Tunables::default()
                };
                let published = vec![None; channels];
                Self::Aggregating {
                    tunables,
                    roles: roles.clone(),
                    published,
                    counts: vec![0; cpus],
                }
            }
            Discipline::Gang { slot_ns } => {
                Self::Gang { length: ticks(*slot_ns).max(1), gang: None, ends: 0, slot: 0 }
            }
            Discipline::Fitting { reach_ns } => {
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
            Self::Aggregating { roles, published, .. } if roles[cpu].role == Role::Slave => {
                published[roles[cpu].channel]
            }
            _ => None,
        }
    }

    /// The thread that runs next.
    pub(super) fn next(&mut self, view: QueueView<'_>) -> Option<usize> {
        let next = match self {
            Self::Fair => view.head(),
            Self::Deadline => earliest(&view),
            Self::Aggregating { .. } => self.aggregated(&view),
            Self::Gang { length, gang, ends, slot } => {
                if view.now >= *ends || gang.is_some() && !is_runnable(&view, *gang) {
                    *gang = due(&view);
                    *ends = view.now + *length;
                    *slot += 1;
                }
                view.in_group(*gang).or_else(|| view.head())
            }
            Self::Fitting { reach, bytes, cpus } => fitting(&view, *reach, *bytes, *cpus),
        };
        view.overdue.or(next)
    }

    fn aggregated(&mut self, view: &QueueView<'_>) -> Option<usize> {
        let shared = self.shared(view.at);
        let Self::Aggregating { tunables, roles, published, counts } = self else { return None };
        let (assignment, own) = (roles[view.at], view.cpus[view.at].own);
        let current = view.current.map(|task| view.thread(task));
        let core = Core { role: assignment.role, own, shared, count: counts[view.at], current };
        // As if Eq. 2 to 5 were false: the meaning of `Scan::overdue`.
        let by = match view.overdue {
            Some(_) => Tunables { bonus_ns: 0, companion_bonus_ns: None, ..*tunables },
            None => *tunables,
        };
        let queue = view.queued().map(|task| view.thread(task));
        let chosen = workahead_policy::choose(&core, queue, &by);
        counts[view.at] = chosen.choice.count.after(counts[view.at]);
        match chosen.choice.publish {
            Publish::Leave => {}
            Publish::Withdraw => published[assignment.channel] = None,
            Publish::Own => published[assignment.channel] = own,
        }
        match (chosen.choice.pick, chosen.position) {
            (Pick::Nobody, _) => None,
            (_, Some(position)) => view.queued().nth(position),
            (_, None) => view.current,
        }
    }
}

/// EEVDF: the earliest deadline of the threads whose vruntime is at most the mean.
fn earliest(view: &QueueView<'_>) -> Option<usize> {
    let origin = view.entities[view.head()?].vruntime;
    let (mut sum, mut load) = (0_u128, 0_u128);
    for task in view.runnable() {
        let one = &view.entities[task];
        sum += u128::from(one.vruntime - origin) * u128::from(one.weight);
        load += u128::from(one.weight);
    }
    let is_eligible =
        |task: &usize| u128::from(view.entities[*task].vruntime - origin) * load <= sum;
    view.runnable().filter(is_eligible).min_by_key(|task| {
        let one = &view.entities[*task];
        one.vruntime + super::fair::virtual_ticks(view.slices.granularity, one.weight)
    })
}

/// Whether a thread of a gang could run on any CPU.
fn is_runnable(view: &QueueView<'_>, gang: Option<Group>) -> bool {
    let of_gang = |task: usize| gang.is_some() && view.entities[task].group == gang;
    let elsewhere = |(cpu, one): (usize, &Cpu)| {
        cpu != view.at && (one.current.is_some_and(of_gang) || one.queue.tasks().any(of_gang))
    };
    view.in_group(gang).is_some() || view.cpus.iter().enumerate().any(elsewhere)
}

/// The group of the thread furthest behind on any CPU.
fn due(view: &QueueView<'_>) -> Option<Group> {
    let of_cpu = |(cpu, one): (usize, &Cpu)| {
        let current = if cpu == view.at { view.current } else { one.current };
        let head = QueueView { at: cpu, current, ..*view }.head()?;
        Some((view.entities[head].vruntime.saturating_sub(one.queue.least), cpu, head))
    };
    let heads = view.cpus.iter().enumerate().filter_map(of_cpu);
    heads.min().and_then(|(_, _, head)| view.entities[head].group)
}

/// The first thread whose working set fits with those running on the CPUs of its last cache.
fn fitting(view: &QueueView<'_>, reach: Ticks, bytes: u64, cpus: usize) -> Option<usize> {
    let head = view.head()?;
    let first = view.at / cpus * cpus;
    let beside = (first..(first + cpus).min(view.cpus.len())).filter(|cpu| *cpu != view.at);
    let running = beside.filter_map(|cpu| view.cpus[cpu].current);
    let taken: u64 = running.map(|task| view.entities[task].working_set_bytes).sum();
    let last = view.entities[head].vruntime.saturating_add(reach);
    view.runnable()
        .take_while(|task| view.entities[*task].vruntime <= last)
        .find(|task| taken + view.entities[*task].working_set_bytes <= bytes)
        .or(Some(head))
}
