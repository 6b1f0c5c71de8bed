//! Whether aggregation can help a load: arithmetic on what was seen of it.
//!
//! ```text
//!   a turn of a group ends, another group's thread is next although one of its own waits
//!      └─ chance ─► turns a second that aggregation would keep together
//!                      × lines of its working set that the others displace, from the next level
//!                      ─► the share of the CPU time that is lost to it: what may be won
//! ```
//!
//! Aggregation spares a group the lines that other groups displaced between two of its turns. So
//! there is nothing to win where no thread of the same group waits, where the working sets of all
//! fit the cache together, or where that of none does: what Yamada and Kusakabe (2010) found of
//! their memory programs (figures 4 and 5). A group need not touch its working set in every turn,
//! so that the gain is usually less; it is more where groups that run beside each other on one
//! cache displace lines within a turn, which is not counted. Nothing is fitted to an outcome.
//! First-level caches are left out: a turn takes a hundred times as long as to fill one.

use serde::Serialize;
use workahead_machine::Machine;
use workahead_machine::limits::Limits;
use workahead_machine::pages::Pages;

/// A cache, and what fetching a line into it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheLevel {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Its size.
    pub bytes: u64,
    /// CPUs that share it.
    pub cpus: usize,
    /// Nanoseconds a line, of many that are fetched from the level below.
    pub line_ns: f64,
}

/// One group of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupLoad {
    /// CPU seconds.
    pub cpu_s: f64,
    /// Turns on a CPU.
    pub turns: f64,
    /// The share of its turns that another group's thread follows, in fair order, while one of its
    /// own waits for the same CPU.
    pub chance: f64,
    /// Bytes that it uses again and again; `None` where they can't be read.
    pub working_set_bytes: Option<u64>,
}

/// A load, group by group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedLoad {
    /// CPUs on which it runs.
    pub cpus: usize,
    /// Mean number of threads that wait for each CPU while another runs there.
    pub waiting: f64,
    /// All groups that ran.
    pub groups: Vec<GroupLoad>,
}

/// Why aggregation can't help.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// Few threads wait: there is no choice.
    ShortQueues,
    /// One group has nearly all of the CPU time: its threads follow each other already.
    OneGroup,
    /// Seldom does a thread wait beside one of its own group.
    FewChances,
    /// No working set of a group with chances could be read.
    Unknown,
    /// All working sets fit the cache of this level together.
    AllFit(CacheLevel),
    /// No group with chances has a working set that fits the cache of this level.
    NoneFits(CacheLevel),
    /// What could be won is less than the scheduler may cost.
    LittleToWin,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The share of the CPU time that may be won.
    pub gain: f64,
    /// The cache in which it would be won.
    pub cache: Option<CacheLevel>,
    /// Why not, else it is worth a try.
    pub obstacle: Option<Obstacle>,
}

/// Fewer threads that wait than this leave nothing to choose.
const WAITING_MIN: f64 = 0.1;
/// A group with more of the CPU time is alone.
const ALONE: f64 = 0.95;
/// Groups with less of the CPU time displace nothing.
const ACTIVE: f64 = 0.01;
/// Fewer chances among all turns are few.
const CHANCE_MIN: f64 = 0.02;
/// A scheduler in BPF takes time at each switch; a smaller gain isn't worth the try.
const GAIN_MIN: f64 = 0.02;
const LINE_BYTES: f64 = 64.0;
/// Nanoseconds of a line where they were not measured: from a last-level cache, from memory.
const ASSUMED_NS: [f64; 2] = [5.0, 15.0];

impl CacheLevel {
    /// The caches of a machine beyond the first level: sizes and lines as they were measured, else
    /// as the system tells, and assumed.
    #[must_use]
    pub fn of(machine: &Machine, limits: Option<&Limits>) -> Vec<CacheLevel> {
        let data = || machine.caches.iter().filter(|cache| cache.holds_data() && cache.level > 1);
        let Some(last) = data().map(|cache| cache.level).max() else { return Vec::new() };
        let first = |level: u32| data().find(|cache| cache.level == level);
        let sizes = limits.map(|limits| limits.lines.iter().map(|point| point.bytes));
        let memory_bytes = sizes.and_then(Iterator::max);
        let levels = (2..=last).filter_map(first).map(|cache| {
            let is_last = cache.level == last;
            let measured = limits.and_then(|limits| match is_last {
                true => limits.useful_llc_bytes(),
                false => limits.l2_bytes(),
            });
            let bytes = measured.map_or(cache.bytes, |bytes| bytes as u64);
            let below = match is_last {
                true => memory_bytes,
                false => Some(2 * bytes as usize),
            };
            let rate = limits.and_then(|limits| limits.lines_per_s(below?, 1, Pages::Small));
            let assumed = ASSUMED_NS[usize::from(is_last)];
            let line_ns = rate.map_or(assumed, |rate| 1e9 / rate);
            CacheLevel { level: cache.level, bytes, cpus: cache.cpus.len(), line_ns }
        });
        levels.collect()
    }
}

impl GroupedLoad {
    /// Whether aggregation can help, with turns of a group in a row for `max_delay_s` at most.
    #[must_use]
    pub fn advice(&self, caches: &[CacheLevel], max_delay_s: f64) -> Advice {
        let no = |obstacle| Advice { gain: 0.0, cache: None, obstacle: Some(obstacle) };
        let cpu_s: f64 = self.groups.iter().map(|group| group.cpu_s).sum();
        let turns: f64 = self.groups.iter().map(|group| group.turns).sum();
        if self.waiting < WAITING_MIN {
            return no(Obstacle::ShortQueues);
        }
        if self.groups.iter().any(|group| group.cpu_s > ALONE * cpu_s) {
            return no(Obstacle::OneGroup);
        }
        let chances: f64 = self.groups.iter().map(|group| group.turns * group.chance).sum();
        if chances < CHANCE_MIN * turns {
            return no(Obstacle::FewChances);
        }
        let known = |group: &&GroupLoad| group.chance > 0.0 && group.working_set_bytes.is_some();
        if !self.groups.iter().any(|group| known(&group)) {
            return no(Obstacle::Unknown);
        }
        let mut best: Option<(f64, CacheLevel)> = None;
        let mut obstacle = Obstacle::LittleToWin;
        for &cache in caches {
            match self.won(cache, max_delay_s, cpu_s) {
                Ok(gain) if best.is_none_or(|(most, _)| gain > most) => best = Some((gain, cache)),
                Ok(_) => {}
                Err(why) => obstacle = why,
            }
        }
        match best {
            Some((gain, cache)) if gain >= GAIN_MIN => {
                Advice { gain, cache: Some(cache), obstacle: None }
            }
            Some((gain, cache)) => {
                Advice { gain, cache: Some(cache), obstacle: Some(Obstacle::LittleToWin) }
            }
            None => no(obstacle),
        }
    }

    /// The share of the CPU time that is lost in one cache.
    fn won(&self, cache: CacheLevel, max_delay_s: f64, cpu_s: f64) -> Result<f64, Obstacle> {
        let active = || self.groups.iter().filter(|group| group.cpu_s > ACTIVE * cpu_s);
        let together: u64 =
            active().filter_map(|group| group.working_set_bytes).fold(0, u64::saturating_add);
        if together <= cache.bytes && active().all(|group| group.working_set_bytes.is_some()) {
            return Err(Obstacle::AllFit(cache));
        }
        let mut fits = false;
        let mut lost_s = 0.0;
        for group in active().filter(|group| group.chance > 0.0 && group.turns > 0.0) {
            let Some(bytes) = group.working_set_bytes else { continue };
            // Threads on the CPUs of the cache use all of their group's working set if they share
            // it, and else their part.
            let part = (bytes as f64 * cache.cpus as f64 / self.cpus.max(1) as f64) as u64;
            if part.min(bytes) > cache.bytes {
                continue;
            }
            fits = true;
            let bytes = bytes.min(cache.bytes);
            let turn_s = group.cpu_s / group.turns;
            // The turns of a group in a row, by the bound: the last is followed by another group's.
            let in_a_row = 1.0 + max_delay_s / turn_s;
            let fetched_s = bytes as f64 / LINE_BYTES * cache.line_ns * 1e-9;
            lost_s += group.turns * group.chance * (1.0 - in_a_row.recip()) * fetched_s.min(turn_s);
        }
        if fits { Ok(lost_s / cpu_s) } else { Err(Obstacle::NoneFits(cache)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const L2: CacheLevel = CacheLevel { level: 2, bytes: 1 << 20, cpus: 1, line_ns: 4.0 };
    const LLC: CacheLevel = CacheLevel { level: 3, bytes: 8 << 20, cpus: 4, line_ns: 10.0 };

    fn group(working_set_bytes: Option<u64>, chance: f64) -> GroupLoad {
        // Turns of a millisecond.
        GroupLoad { cpu_s: 1.0, turns: 1000.0, chance, working_set_bytes }
    }

    fn load(groups: Vec<GroupLoad>) -> GroupedLoad {
        GroupedLoad { cpus: 4, waiting: 2.0, groups }
    }

    fn obstacle(load: &GroupedLoad) -> Option<Obstacle> {
        load.advice(&[L2, LLC], 0.010).obstacle
    }

    #[test]
    fn each_obstacle_is_named() {
        let two = |bytes, chance| load(vec![group(Some(bytes), chance); 2]);
        assert_eq!(
            obstacle(&GroupedLoad { waiting: 0.0, ..two(6 << 20, 0.5) }),
            Some(Obstacle::ShortQueues)
        );
        assert_eq!(obstacle(&load(vec![group(Some(6 << 20), 0.5)])), Some(Obstacle::OneGroup));
        assert_eq!(obstacle(&two(6 << 20, 0.001)), Some(Obstacle::FewChances));
        assert_eq!(obstacle(&load(vec![group(None, 0.5); 2])), Some(Obstacle::Unknown));
        assert_eq!(two(256 << 10, 0.5).advice(&[L2], 0.01).obstacle, Some(Obstacle::AllFit(L2)));
        assert_eq!(two(64 << 20, 0.5).advice(&[LLC], 0.01).obstacle, Some(Obstacle::NoneFits(LLC)));
        // Twenty groups of half a line's time a turn.
        let little = load(vec![group(Some(80 << 10), 0.02); 20]);
        assert_eq!(obstacle(&little), Some(Obstacle::LittleToWin));
    }

    /// By hand: 1,000 turns, half with a chance, of which ten in eleven are kept; 6 MiB are 98,304
    /// lines of 10 ns, 0.98 ms.
    #[test]
    fn the_gain_is_that_of_the_lines_of_the_turns_kept_together() {
        let advice = load(vec![group(Some(6 << 20), 0.5); 2]).advice(&[L2, LLC], 0.010);
        assert_eq!((advice.cache, advice.obstacle), (Some(LLC), None));
        let expected = 0.5 * (10.0 / 11.0) * 0.983_04;
        assert!((advice.gain - expected).abs() < 1e-9, "{} {expected}", advice.gain);
    }

    /// A small group that can't be read may displace what fits without it.
    #[test]
    fn what_is_unknown_does_not_fit() {
        let unknown = load(vec![group(Some(900 << 10), 0.9), group(None, 0.0)]);
        assert_eq!(unknown.advice(&[L2], 0.01).obstacle, None);
    }
}
