//! Settings for operators, before and while the scheduler runs.

use workahead_policy::{BONUS_MAX, bonus_of_slice};

use crate::error::Error;
use crate::wire::RawSettings;

/// Definition of aggregation groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Key {
    /// Threads of one address space, as in the paper.
    #[default]
    AddressSpace,
    /// Tasks of one cgroup (version 2): the processes of a service.
    Cgroup,
    /// Processes of one parent, and their threads: servers with a process per connection, such as
    /// PostgreSQL. Children of init have no group.
    Parent,
    /// Processes that were given one tag, and their descendants; others have no group. With any
    /// other key, a tag goes before it.
    Tag,
}

impl Key {
    /// Its value in `key=…`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Key::AddressSpace => "mm",
            Key::Cgroup => "cgroup",
            Key::Parent => "parent",
            Key::Tag => "tag",
        }
    }
}

/// Preference of a thread of the same aggregation group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bonus {
    /// Nanoseconds of vruntime, the paper's unit.
    Ns(u64),
    /// Thousandths of a time slice, a unit that means the same whatever the slice.
    PerMilleOfSlice(u32),
}

/// All that can be set; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The priority bonus within an aggregation group; 0 is plain fair queueing.
    pub bonus: Bonus,
    /// Most aggregations in a row.
    pub limit: u32,
    /// Definition of aggregation groups.
    pub key: Key,
    /// A time slice.
    pub slice_ns: u64,
    /// For how long aggregation may delay a thread that wakes up; `None` is the paper's pure bonus,
    /// by which a thread waits for as long as its vruntime says.
    pub max_delay_ns: Option<u64>,
    /// A task that has waited longer goes first, whatever the bonus.
    pub patience_ns: u64,
    /// A thread that wakes up and is so far behind the one that runs preempts it; 0 for never.
    pub preempt_ns: u64,
    /// How often a busy CPU looks for a queue whose threads weigh more than its own.
    pub balance_ns: u64,
    /// Most threads of a queue that are examined for one decision.
    pub scan_max: u32,
    /// Whether chances beyond the bonus, co-running and the time of decisions are counted. Costs a
    /// look at every queued thread up to `scan_max`, and one at every CPU per switch.
    pub survey: bool,
}

impl Default for Settings {
    /// The paper's bonus and limit, within a bound; slices as Linux has them on few CPUs.
    fn default() -> Self {
        Self {
            bonus: Bonus::Ns(50_000_000),
            limit: 100,
            key: Key::AddressSpace,
            slice_ns: 4_000_000,
            max_delay_ns: Some(10_000_000),
            patience_ns: 1_000_000_000,
            preempt_ns: 1_000_000,
            balance_ns: 4_000_000,
            scan_max: 64,
            survey: false,
        }
    }
}

/// Shorter, and the machine does nothing but switch.
const SLICE_MIN_NS: u64 = 100_000;
/// Longer, and the kernel's watchdog (10 s) takes over when a few tasks wait.
const SLICE_MAX_NS: u64 = 100_000_000;
/// Below the watchdog with room for a queue.
const PATIENCE_MAX_NS: u64 = 5_000_000_000;
/// The most that the histogram of looks can show.
const SCAN_MAX: u32 = 128;

impl Settings {
    /// The bonus in nanoseconds of vruntime.
    #[must_use]
    pub fn bonus_ns(&self) -> u64 {
        match self.bonus {
            Bonus::Ns(ns) => ns.min(BONUS_MAX),
            Bonus::PerMilleOfSlice(per_mille) => bonus_of_slice(self.slice_ns, per_mille),
        }
    }

    /// Whether the kernel's watchdog and the maps can live with them.
    ///
    /// # Errors
    ///
    /// One that names the first setting which is out of range, and the range.
    pub fn check(&self) -> Result<(), Error> {
        let ranges = [
            ("slice", self.slice_ns, SLICE_MIN_NS, SLICE_MAX_NS, " ns"),
            ("max-delay", self.max_delay_ns.unwrap_or(0), 0, PATIENCE_MAX_NS, " ns"),
            ("patience", self.patience_ns, 0, PATIENCE_MAX_NS, " ns"),
            ("preempt", self.preempt_ns, 0, BONUS_MAX, " ns"),
            ("balance", self.balance_ns, SLICE_MIN_NS, PATIENCE_MAX_NS, " ns"),
            ("scan-max", self.scan_max.into(), 1, SCAN_MAX.into(), " threads"),
        ];
        for (name, value, least, most, unit) in ranges {
            if !(least..=most).contains(&value) {
                let says = format!("{name} {value} is out of range: {least} to {most}{unit}");
                return Err(Error::Setting(says));
            }
        }
        Ok(())
    }

    #[cfg_attr(not(any(test, feature = "bpf")), expect(dead_code, reason = "nobody to tell"))]
    pub(crate) fn to_raw(self, cpus: u32) -> RawSettings {
        RawSettings {
            bonus_ns: self.bonus_ns(),
            slice_ns: self.slice_ns,
            // 0 is none: a nanosecond lets nobody be passed over.
            max_delay_ns: self.max_delay_ns.map_or(0, |ns| ns.max(1)),
            patience_ns: self.patience_ns,
            preempt_ns: self.preempt_ns,
            balance_ns: self.balance_ns,
            limit: self.limit,
            key: match self.key {
                Key::AddressSpace => 0,
                Key::Cgroup => 1,
                Key::Parent => 2,
                Key::Tag => 3,
            },
            scan_max: self.scan_max,
            survey: self.survey.into(),
            cpus,
            stop: 0,
            fault: 0,
            tags: 0,
        }
    }

    #[cfg_attr(not(any(test, feature = "bpf")), expect(dead_code, reason = "nobody to tell"))]
    /// The running settings; a bonus is in nanoseconds then.
    pub(crate) fn from_raw(raw: &RawSettings) -> Self {
        Self {
            bonus: Bonus::Ns(raw.bonus_ns),
            limit: raw.limit,
            key: match raw.key {
                1 => Key::Cgroup,
                2 => Key::Parent,
                3 => Key::Tag,
                _ => Key::AddressSpace,
            },
            slice_ns: raw.slice_ns,
            max_delay_ns: (raw.max_delay_ns > 0).then_some(raw.max_delay_ns),
            patience_ns: raw.patience_ns,
            preempt_ns: raw.preempt_ns,
            balance_ns: raw.balance_ns,
            scan_max: raw.scan_max,
            survey: raw.survey != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_as_they_went() {
        for key in [Key::AddressSpace, Key::Cgroup, Key::Parent, Key::Tag] {
            let one = Settings { key, survey: key == Key::Cgroup, limit: 7, ..Settings::default() };
            assert_eq!(Settings::from_raw(&one.to_raw(4)), one);
        }
        for max_delay_ns in [None, Some(1), Some(20_000_000)] {
            let one = Settings { max_delay_ns, ..Settings::default() };
            assert_eq!(Settings::from_raw(&one.to_raw(4)), one);
        }
        let half = Settings { bonus: Bonus::PerMilleOfSlice(500), ..Settings::default() };
        assert_eq!(Settings::from_raw(&half.to_raw(4)).bonus, Bonus::Ns(2_000_000));
    }

    #[test]
    fn extremes_of_bonus_and_limit_are_settings() {
        for (bonus, limit) in [(0, 0), (u64::MAX, u32::MAX)] {
            let one = Settings { bonus: Bonus::Ns(bonus), limit, ..Settings::default() };
            assert!(one.check().is_ok());
            assert_eq!(one.bonus_ns(), bonus.min(BONUS_MAX));
        }
    }

    #[test]
    fn settings_that_the_watchdog_would_punish_are_refused() {
        let says = |settings: Settings| settings.check().unwrap_err().to_string();
        let long = Settings { slice_ns: 1_000_000_000, ..Settings::default() };
        assert!(says(long).starts_with("slice 1000000000 is out of range"));
        let none = Settings { scan_max: 0, ..Settings::default() };
        assert!(says(none).contains("scan-max 0"));
        let patient = Settings { patience_ns: u64::MAX, ..Settings::default() };
        assert!(says(patient).contains("patience"));
        let bound = Settings { max_delay_ns: Some(u64::MAX), ..Settings::default() };
        assert!(says(bound).starts_with("max-delay"));
    }
}
