//! The machine around a server: its CPU time by kind, and how long somebody had to wait (PSI).
//!
//! `/proc/stat` counts ticks of all CPUs by kind (proc(5)); *steal* is time in which a virtual CPU
//! wanted to run and the host ran something else. `/proc/pressure` counts, for CPU, memory and
//! I/O, the time in which *some* task waited for it, and in which *all* did (psi in the kernel's
//! documentation). Either may be missing.
//!
//! The CPUs' frequency is what cpufreq says they ran at of late (on x86 from APERF and MPERF), the
//! mean of the two ends: a second thread that runs at another clock explains what no counter of
//! time does. Virtual machines seldom have it.

use serde::{Deserialize, Serialize};

use super::TICKS_PER_S;
use crate::cpus::CpuSet;
use crate::sysroot::Sysroot;

/// Counts of the whole machine at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Whole {
    /// Time of all CPUs together, idle time included.
    pub total_s: Option<f64>,
    /// Of it, nothing to do, or nothing but waiting for I/O.
    pub idle_s: Option<f64>,
    /// Of it, taken by the host of a virtual machine.
    pub steal_s: Option<f64>,
    /// Somebody waited for a CPU.
    pub cpu_some_s: Option<f64>,
    /// Somebody waited for memory.
    pub memory_some_s: Option<f64>,
    /// Everybody waited for memory.
    pub memory_full_s: Option<f64>,
    /// Somebody waited for I/O.
    pub io_some_s: Option<f64>,
    /// Everybody waited for I/O.
    pub io_full_s: Option<f64>,
    /// Mean frequency of the CPUs that were looked at.
    pub ghz: Option<f64>,
}

/// CPUs sampled on a large machine: each costs an interrupt of that CPU.
const FREQUENCIES_MAX: usize = 8;

/// The frequency of the CPUs, in GHz.
fn ghz(root: &Sysroot) -> Option<f64> {
    const CPUS: &str = "sys/devices/system/cpu";
    let cpus = root.numbered(CPUS, "cpu");
    let every = cpus.len().div_ceil(FREQUENCIES_MAX).max(1);
    let khz = |cpu: &usize| root.value::<f64>(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_cur_freq"));
    let khz: Vec<f64> = cpus.iter().step_by(every).filter_map(khz).collect();
    (!khz.is_empty()).then(|| khz.iter().sum::<f64>() / khz.len() as f64 / 1e6)
}

impl Whole {
    /// Reads it now.
    #[must_use]
    pub fn look(root: &Sysroot) -> Whole {
        Self::look_at(root, &|name| name == "cpu")
    }

    /// The same with the times of some CPUs only; pressure is the machine's.
    #[must_use]
    pub fn look_on(root: &Sysroot, cpus: &CpuSet) -> Whole {
        let is_one = |name: &str| {
            let number = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
            number.is_some_and(|number: usize| cpus.contains(number))
        };
        Self::look_at(root, &is_one)
    }

    /// With the times of the lines whose names are chosen, added up.
    fn look_at(root: &Sysroot, is_chosen: &dyn Fn(&str) -> bool) -> Whole {
        let stat = root.text("proc/stat").unwrap_or_default();
        let mut ticks: Vec<f64> = Vec::new();
        for line in stat.lines() {
            let mut fields = line.split_ascii_whitespace();
            if !fields.next().is_some_and(is_chosen) {
                continue;
            }
            for (kind, number) in fields.filter_map(|n| n.parse::<f64>().ok()).enumerate() {
                ticks.resize(ticks.len().max(kind + 1), 0.0);
                ticks[kind] += number;
            }
        }
        // user nice system idle iowait irq softirq steal; guests are counted in user and nice.
        let seconds = |range: std::ops::Range<usize>| {
            Some(ticks.get(range)?.iter().sum::<f64>() / TICKS_PER_S)
        };
        let pressure = |what: &str, who: &str| {
            let text = root.text(&format!("proc/pressure/{what}"))?;
            let line = text.lines().find(|line| line.split(' ').next() == Some(who))?;
            let total_us = line.split(' ').find_map(|part| part.strip_prefix("total="))?;
            Some(total_us.parse::<f64>().ok()? / 1e6)
        };
        Whole {
            total_s: seconds(0..8),
            idle_s: seconds(3..5),
            steal_s: seconds(7..8),
            cpu_some_s: pressure("cpu", "some"),
            memory_some_s: pressure("memory", "some"),
            memory_full_s: pressure("memory", "full"),
            io_some_s: pressure("io", "some"),
            io_full_s: pressure("io", "full"),
            ghz: ghz(root),
        }
    }

    /// The difference to an earlier reading, and the mean of both frequencies; nothing where either
    /// does not know.
    #[must_use]
    pub fn since(&self, before: &Whole) -> Whole {
        let passed = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Whole {
            total_s: passed(self.total_s, before.total_s),
            idle_s: passed(self.idle_s, before.idle_s),
            steal_s: passed(self.steal_s, before.steal_s),
            cpu_some_s: passed(self.cpu_some_s, before.cpu_some_s),
            memory_some_s: passed(self.memory_some_s, before.memory_some_s),
            memory_full_s: passed(self.memory_full_s, before.memory_full_s),
            io_some_s: passed(self.io_some_s, before.io_some_s),
            io_full_s: passed(self.io_full_s, before.io_full_s),
            ghz: self.ghz.zip(before.ghz).map(|(now, then)| (now + then) / 2.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_cpus_are_the_sum_of_their_lines() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("proc")).unwrap();
        let stat = "cpu  60 0 0 40 0 0 0 0 0 0\ncpu0 10 0 0 20 0 0 0 0 0 0\n\
                    cpu1 20 0 5 10 0 0 0 2 0 0\ncpu10 30 0 0 10 0 0 0 0 0 0\nctxt 7\n";
        std::fs::write(directory.path().join("proc/stat"), stat).unwrap();
        let root = Sysroot::at(directory.path()).unwrap();
        let all = Whole::look(&root);
        assert_eq!((all.total_s, all.idle_s), (Some(1.0), Some(0.4)));
        let some = Whole::look_on(&root, &"1,10".parse().unwrap());
        assert_eq!((some.total_s, some.idle_s), (Some(0.77), Some(0.2)));
        assert_eq!(some.steal_s, Some(0.02));
        assert_eq!(Whole::look_on(&root, &"3".parse().unwrap()).total_s, None);
    }
}
