//! A process's share of the machine's CPUs: its affinity, and the quota of its control groups.

use crate::cgroup;
use crate::cpus::CpuSet;
use crate::sysroot::{Sysroot, field};

/// The CPUs of a process that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    /// Those that it may run on (`Cpus_allowed_list`, proc(5)).
    pub cpus: CpuSet,
    /// CPU seconds per second that its control groups allow, where that is fewer (cgroups(7)).
    pub quota: Option<f64>,
}

impl Allowance {
    /// Of a process; none once it has ended.
    #[must_use]
    pub fn of(root: &Sysroot, pid: u32) -> Option<Allowance> {
        let status = root.text(&format!("proc/{pid}/status"))?;
        let cpus: CpuSet = field(&status, "Cpus_allowed_list")?.parse().ok()?;
        let quota = cgroup::quota_of(root, &pid.to_string());
        let quota = quota.filter(|quota| *quota < cpus.len() as f64);
        Some(Allowance { cpus, quota })
    }
}

/// Seconds in which CPUs stood still for a process because the quota of its control groups was used
/// up, summed over CPUs, since the groups were made (`cpu.stat`, sched-bwc in the kernel's
/// documentation). None where no group counts it.
#[must_use]
pub fn throttled_s(root: &Sysroot, pid: u32) -> Option<f64> {
    cgroup::throttled_of(root, &pid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_and_quota_of_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/7/status", "Name:\tpostgres\nCpus_allowed_list:\t0-3\n");
        write("proc/7/cgroup", "0::/db/one\n");
        write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("sys/fs/cgroup/db/cpu.max", "150000 100000\n");
        write("sys/fs/cgroup/db/one/cpu.max", "max 100000\n");
        let root = Sysroot::at(directory.path()).unwrap();
        let found = Allowance::of(&root, 7).unwrap();
        assert_eq!((found.cpus.len(), found.quota), (4, Some(1.5)));
        write("sys/fs/cgroup/db/cpu.max", "800000 100000\n");
        assert_eq!(Allowance::of(&root, 7).unwrap().quota, None);
        assert_eq!(Allowance::of(&root, 8), None);
        assert_eq!(throttled_s(&root, 7), None);
        write("sys/fs/cgroup/db/cpu.stat", "nr_throttled 4\nthrottled_usec 2500000\n");
        write("sys/fs/cgroup/db/one/cpu.stat", "usage_usec 7\nthrottled_usec 500000\n");
        assert_eq!(throttled_s(&root, 7), Some(3.0));
    }
}
