//! Statistics of the scheduler, over all CPUs.

use std::collections::BTreeMap;

use crate::wire::{BUCKETS, RawStats, SCAN_BUCKETS};

/// Counts since the scheduler was attached, or between two readings ([`Stats::since`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Decisions with a runnable thread.
    pub decisions: u64,
    /// Decisions with a group member or companion in the queue.
    pub chances: u64,
    /// Chances on which one of them was chosen.
    pub taken: u64,
    /// Heads chosen.
    pub picked_head: u64,
    /// Group members chosen: time aggregation.
    pub picked_member: u64,
    /// Companions chosen: inter-core aggregation.
    pub picked_companion: u64,
    /// Decisions to continue the same thread.
    pub kept: u64,
    /// Chances lost to the limit.
    pub at_limit: u64,
    /// Threads that ran first because they had waited longer than the patience.
    pub overdue: u64,
    /// Chosen threads that had left the queue meanwhile.
    pub lost: u64,
    /// Wake-ups run at once on an idle CPU.
    pub direct: u64,
    /// Threads that idle CPUs took from others' queues.
    pub stolen: u64,
    /// Threads that busy CPUs took from queues that weigh more.
    pub balanced: u64,
    /// Wake-ups that preempted.
    pub preempted: u64,
    /// Threads that waited for the quota of their control group.
    pub parked: u64,
    /// Threads examined in decisions.
    pub scanned: u64,
    /// Time in decisions (survey only).
    pub decide_ns: u64,
    /// The longest wait of a runnable thread since the counting began: of the normal class, without
    /// the kernel's own threads.
    pub wait_max_ns: u64,
    /// Switches of all scheduling classes.
    pub switches: u64,
    /// Switches from a thread of a group to another thread of one.
    pub user_switches: u64,
    /// Those within a group.
    pub same_switches: u64,
    /// Time that pairs of CPUs ran a group each (survey only).
    pub pair_ns: u64,
    /// Time that they ran the same group.
    pub same_pair_ns: u64,
    /// Time that pairs of CPUs of one set of roles ran a group each (survey only): siblings, under
    /// [`Roles::by_core`](crate::Roles::by_core).
    pub set_pair_ns: u64,
    /// Time that they ran the same group.
    pub same_set_pair_ns: u64,
    /// Runs of users' threads on another CPU than that of their last one.
    pub migrations: u64,
    /// Time from wake-up to run, of all wake-ups.
    pub latency_ns: u64,
    latency: Vec<u64>,
    scans: Vec<u64>,
}

impl Default for Stats {
    fn default() -> Self {
        Self::of(&[])
    }
}

/// Applies an expression to every plain count.
macro_rules! each_count {
    ($with:ident: $($count:ident),+ $(,)?) => { $($with!($count);)+ };
}

macro_rules! counts {
    ($with:ident) => {
        each_count!(
            $with: decisions, chances, taken, picked_head, picked_member, picked_companion, kept,
            at_limit, overdue, lost, direct, stolen, balanced, preempted, parked, scanned,
            decide_ns,
            switches, user_switches, same_switches, pair_ns, same_pair_ns, set_pair_ns,
            same_set_pair_ns, migrations, latency_ns,
        )
    };
}

impl Stats {
    /// The sum over CPUs.
    pub(crate) fn of(cpus: &[RawStats]) -> Self {
        let mut all = Self {
            decisions: 0,
            chances: 0,
            taken: 0,
            picked_head: 0,
            picked_member: 0,
            picked_companion: 0,
            kept: 0,
            at_limit: 0,
            overdue: 0,
            lost: 0,
            direct: 0,
            stolen: 0,
            balanced: 0,
            preempted: 0,
            parked: 0,
            scanned: 0,
            decide_ns: 0,
            wait_max_ns: 0,
            switches: 0,
            user_switches: 0,
            same_switches: 0,
            pair_ns: 0,
            same_pair_ns: 0,
            set_pair_ns: 0,
            same_set_pair_ns: 0,
            migrations: 0,
            latency_ns: 0,
            latency: vec![0; BUCKETS],
            scans: vec![0; SCAN_BUCKETS],
        };
        for cpu in cpus {
            macro_rules! add {
                ($count:ident) => {
                    all.$count += cpu.$count
                };
            }
            counts!(add);
            all.wait_max_ns = all.wait_max_ns.max(cpu.wait_max_ns);
            add_up(&mut all.latency, &cpu.latency);
            add_up(&mut all.scans, &cpu.scans);
        }
        all
    }

    /// Counts since `earlier`. The longest wait stays that of the whole run.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut later = self.clone();
        macro_rules! subtract {
            ($count:ident) => {
                later.$count = later.$count.saturating_sub(earlier.$count)
            };
        }
        counts!(subtract);
        for (now, before) in
            [(&mut later.latency, &earlier.latency), (&mut later.scans, &earlier.scans)]
        {
            for (now, before) in now.iter_mut().zip(before) {
                *now = now.saturating_sub(*before);
            }
        }
        later
    }

    /// Share of the chances to aggregate that were taken; `None` without a chance.
    #[must_use]
    pub fn taken_share(&self) -> Option<f64> {
        share(self.taken, self.chances)
    }

    /// Share of the switches between threads of groups that stayed within one.
    #[must_use]
    pub fn same_share(&self) -> Option<f64> {
        share(self.same_switches, self.user_switches)
    }

    /// Share of the time in which pairs of CPUs ran groups that they ran the same one.
    #[must_use]
    pub fn corun_share(&self) -> Option<f64> {
        share(self.same_pair_ns, self.pair_ns)
    }

    /// The same for pairs of CPUs of one set of roles.
    #[must_use]
    pub fn set_corun_share(&self) -> Option<f64> {
        share(self.same_set_pair_ns, self.set_pair_ns)
    }

    /// Threads examined per decision, on average.
    #[must_use]
    pub fn scanned_mean(&self) -> Option<f64> {
        share(self.scanned, self.scans.iter().sum())
    }

    /// Threads examined in all but `1 - quantile` of the decisions.
    #[must_use]
    pub fn scanned_at(&self, quantile: f64) -> Option<u64> {
        at(&self.scans, quantile).map(|bucket| bucket as u64)
    }

    /// Most threads examined in a decision; more than 127 show as 128.
    #[must_use]
    pub fn scanned_max(&self) -> Option<u64> {
        self.scans.iter().rposition(|count| *count > 0).map(|bucket| bucket as u64)
    }

    /// Latency from wake-up to run of users' threads, nanoseconds, in all but `1 - quantile` of the
    /// wake-ups: the upper end of the bucket, up to a quarter above the true value.
    #[must_use]
    pub fn latency_ns_at(&self, quantile: f64) -> Option<u64> {
        at(&self.latency, quantile).map(|bucket| lower_end(bucket + 1) - 1)
    }
}

impl Stats {
    /// Wake-ups, all of them after a time to run.
    pub(crate) fn wakeups(&self) -> u64 {
        self.latency.iter().sum()
    }

    /// Wake-ups that ran within a time, nanoseconds in powers of two from 1 µs to 17 s.
    pub(crate) fn latency_up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        (10..35).map(|power| {
            let bound = 1_u64 << power;
            let within = (0..BUCKETS).take_while(|bucket| lower_end(*bucket) < bound);
            (bound, within.map(|bucket| self.latency[bucket]).sum())
        })
    }

    /// Counts with their meaning, to be watched over time.
    #[expect(clippy::cast_precision_loss, reason = "counts beyond 52 bits are years")]
    pub(crate) fn counters(&self) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
        let counts = [
            ("decisions", "Decisions with a runnable thread.", self.decisions),
            ("chances", "Decisions with a thread of the group in the queue.", self.chances),
            ("aggregations", "Chances on which it was chosen.", self.taken),
            ("companions", "Threads chosen by the group of another CPU.", self.picked_companion),
            ("at_limit", "Chances lost to the limit.", self.at_limit),
            ("overdue", "Threads that went first for having waited too long.", self.overdue),
            ("lost", "Chosen threads that had left the queue.", self.lost),
            ("idle_wakeups", "Wake-ups run at once on an idle CPU.", self.direct),
            ("stolen", "Threads that idle CPUs took from queues.", self.stolen),
            ("balanced", "Threads that busy CPUs took from queues that weigh more.", self.balanced),
            ("preemptions", "Wake-ups that preempted.", self.preempted),
            ("parked", "Threads that waited for the quota of their cgroup.", self.parked),
            ("switches", "Switches of all scheduling classes.", self.switches),
            ("group_switches", "Switches between threads of groups.", self.user_switches),
            ("same_group_switches", "Those within a group.", self.same_switches),
        ];
        counts.into_iter().map(|(name, help, count)| (name, help, count as f64))
    }

    /// Counts of some wake-ups.
    #[cfg(test)]
    pub(crate) fn with_latencies(latencies: &[u64]) -> Self {
        let mut raw: RawStats = bytemuck::Zeroable::zeroed();
        for ns in latencies {
            raw.latency[tests::bucket_of(*ns)] += 1;
            raw.latency_ns += ns;
        }
        Self::of(&[raw])
    }

    /// All counts and derived figures, by name; absent without data.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts beyond 52 bits are years")]
    pub fn figures(&self) -> BTreeMap<&'static str, f64> {
        let mut figures = BTreeMap::new();
        macro_rules! name {
            ($count:ident) => {
                figures.insert(stringify!($count), self.$count as f64)
            };
        }
        counts!(name);
        figures.insert("wait_max_ns", self.wait_max_ns as f64);
        let time = |quantile| self.latency_ns_at(quantile).map(|ns| ns as f64);
        let derived = [
            ("taken_share", self.taken_share()),
            ("same_share", self.same_share()),
            ("corun_share", self.corun_share()),
            ("set_corun_share", self.set_corun_share()),
            ("scanned_mean", self.scanned_mean()),
            ("scanned_p99", self.scanned_at(0.99).map(|count| count as f64)),
            ("latency_ns_p50", time(0.5)),
            ("latency_ns_p99", time(0.99)),
            ("latency_ns_p999", time(0.999)),
            ("latency_ns_max", time(1.0)),
        ];
        figures.extend(derived.into_iter().filter_map(|(name, figure)| Some((name, figure?))));
        figures
    }
}

/// The main figures on a line.
impl std::fmt::Display for Stats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.3}"));
        let us = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{} us", ns / 1000));
        write!(
            f,
            "taken {} of {} chances, same {}, corun {}, {} switches, {} decisions; \
             wake-up to run p50 {} p99 {}, longest wait {}; ",
            share(self.taken_share()),
            self.chances,
            share(self.same_share()),
            share(self.corun_share()),
            self.switches,
            self.decisions,
            us(self.latency_ns_at(0.5)),
            us(self.latency_ns_at(0.99)),
            us(Some(self.wait_max_ns)),
        )?;
        write!(
            f,
            "scanned mean {} p99 {} max {}; kept {}, at limit {}, overdue {}, lost {}, direct {}, \
             stolen {}, balanced {}, preempted {}, parked {}",
            share(self.scanned_mean()),
            self.scanned_at(0.99).unwrap_or(0),
            self.scanned_max().unwrap_or(0),
            self.kept,
            self.at_limit,
            self.overdue,
            self.lost,
            self.direct,
            self.stolen,
            self.balanced,
            self.preempted,
            self.parked,
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn add_up(sums: &mut [u64], counts: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

/// The first bucket up to which a share of the counts lies.
fn at(counts: &[u64], quantile: f64) -> Option<usize> {
    let all: u64 = counts.iter().sum();
    let mut below = 0;
    counts.iter().position(|count| {
        below += count;
        share(below, all).is_some_and(|share| *count > 0 && share >= quantile)
    })
}

/// The least value of a bucket: four per power of two, as `bucket_of` in `bpf/survey.h`.
fn lower_end(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (power, quarter) = (bucket / 4 + 1, (bucket % 4) as u64);
    (4 + quarter).checked_shl(u32::try_from(power - 2).unwrap_or(u32::MAX)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;

    /// `bucket_of` in `bpf/survey.h`, by the definition.
    pub(super) fn bucket_of(value: u64) -> usize {
        if value < 4 {
            return usize::try_from(value).unwrap();
        }
        let power = value.ilog2();
        (power as usize - 1) * 4 + usize::try_from((value >> (power - 2)) & 3).unwrap()
    }

    #[test]
    fn buckets_join_without_a_gap() {
        for bucket in 1..bucket_of(1 << 62) {
            let least = lower_end(bucket);
            assert_eq!(bucket_of(least), bucket);
            assert_eq!(bucket_of(least - 1), bucket - 1);
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
    }

    #[test]
    fn cpus_add_up_and_the_longest_wait_stays() {
        let mut one = RawStats::zeroed();
        one.chances = 10;
        one.taken = 9;
        one.wait_max_ns = 5;
        one.latency[bucket_of(1000)] = 99;
        let mut other = one;
        other.wait_max_ns = 7;
        other.latency[bucket_of(1_000_000)] = 2;
        let both = Stats::of(&[one, other]);
        assert_eq!((both.chances, both.taken, both.wait_max_ns), (20, 18, 7));
        assert_eq!(both.taken_share(), Some(0.9));
        assert_eq!(both.same_share(), None);
        let figures = both.figures();
        assert_eq!((figures["chances"], figures["taken_share"]), (20.0, 0.9));
        assert!(!figures.contains_key("same_share") && figures["wait_max_ns"] == 7.0);
        assert!(both.to_string().starts_with("taken 0.900 of 20 chances, same -"));
        let half = both.latency_ns_at(0.5).unwrap();
        assert!((1000..1250).contains(&half), "{half}");
        assert!(both.latency_ns_at(0.999).unwrap() >= 1_000_000);
    }

    #[test]
    fn what_came_after_is_told_apart() {
        let mut raw = RawStats::zeroed();
        raw.switches = 3;
        raw.scans[2] = 4;
        let before = Stats::of(&[raw]);
        raw.switches = 10;
        raw.scans[7] = 1;
        raw.scanned = 7;
        let after = Stats::of(&[raw]).since(&before);
        assert_eq!(
            (after.switches, after.scanned_max(), after.scanned_at(0.5)),
            (7, Some(7), Some(7))
        );
        assert_eq!(Stats::default().scanned_max(), None);
    }
}
