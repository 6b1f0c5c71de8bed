//! The limits of this process's control groups: CPUs, memory, CPU time (cgroups(7)).
//!
//! ```text
//! /proc/self/cgroup     which group, per hierarchy:   0::/user.slice/job      (version 2)
//!                                                     4:memory:/docker/1234   (version 1)
//! /proc/self/mountinfo  where hierarchies are mounted, and which group is at the mount point
//! group directory  =  mount point + (group path − path at the mount point)
//! ```
//!
//! Limits of every ancestor hold too, so they are read from the group up to the mount point. In a
//! container the group path may lie outside the mount; then the mount point itself is the group.

use crate::cpus::CpuSet;
use crate::sysroot::Sysroot;

/// Limits set by control groups; `None` means unlimited.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) cpus: Option<CpuSet>,
    /// CPU seconds per second.
    pub(crate) cpu_quota: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
    /// The memory left under the tightest limit.
    pub(crate) memory_left_bytes: Option<u64>,
}

/// Version 1 writes "no limit" as the largest page-aligned number.
const NO_LIMIT_V1: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

struct Hierarchy {
    version: Version,
    /// Directories from the group of this process up to the mount point.
    groups: Vec<String>,
}

pub(crate) fn limits(root: &Sysroot) -> Limits {
    let mut limits = Limits::default();
    for controller in ["cpuset", "cpu", "memory"] {
        for hierarchy in hierarchies(root, "self", controller) {
            match controller {
                "cpuset" => limits.cpus = limits.cpus.or_else(|| cpus(root, &hierarchy)),
                "cpu" => limits.cpu_quota = least(limits.cpu_quota, quota(root, &hierarchy)),
                _ => memory(root, &hierarchy, &mut limits),
            }
        }
    }
    limits
}

/// The hierarchies that may control this: at most one of version 1 and the one of version 2.
fn hierarchies(root: &Sysroot, process: &str, controller: &str) -> Vec<Hierarchy> {
    let of_mount = |(version, mount, path): (Version, Mount<'_>, &str)| Hierarchy {
        version,
        groups: mount.groups(root, path),
    };
    let membership = root.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    let mounts = root.text("proc/self/mountinfo").unwrap_or_default();
    memberships(&membership, &mounts, controller).into_iter().map(of_mount).collect()
}

/// CPU seconds per second that a process's groups allow, as far as they can be seen from here.
pub(crate) fn quota_of(root: &Sysroot, process: &str) -> Option<f64> {
    let hierarchies = hierarchies(root, process, "cpu").into_iter();
    hierarchies.fold(None, |tightest, hierarchy| least(tightest, quota(root, &hierarchy)))
}

/// Seconds in which run queues of a process's groups stood still because their quota was used up,
/// summed over CPUs and since the groups were made. `None` where no group has a count.
pub(crate) fn throttled_of(root: &Sysroot, process: &str) -> Option<f64> {
    let of_group = |version: Version, group: &String| {
        let text = root.text(&format!("{group}/cpu.stat"))?;
        let (key, unit_s) = match version {
            Version::Two => ("throttled_usec", 1e-6),
            Version::One => ("throttled_time", 1e-9),
        };
        let of_key = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.parse::<f64>().ok();
        text.lines().find_map(of_key).map(|count| count * unit_s)
    };
    let hierarchies = hierarchies(root, process, "cpu").into_iter();
    let counts = hierarchies.flat_map(|hierarchy| {
        let counts = hierarchy.groups.iter().map(|group| of_group(hierarchy.version, group));
        counts.collect::<Vec<_>>()
    });
    counts.flatten().reduce(|sum, count| sum + count)
}

/// The groups that a process is in, one per mounted hierarchy that has the controller, where they
/// can be seen from here; a group outside of what is mounted is left out. Version 2 counts CPU time
/// whatever its controllers.
pub(crate) fn groups_of(root: &Sysroot, process: &str, controller: &str) -> Vec<(Version, String)> {
    let membership = root.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    let mounts = root.text("proc/self/mountinfo").unwrap_or_default();
    let seen = |(version, mount, path): (Version, Mount<'_>, &str)| {
        let below = path.strip_prefix(mount.group.trim_end_matches('/'))?.trim_matches('/');
        let group = format!("{}/{below}", mount.point.trim_start_matches('/'));
        let group = group.trim_end_matches('/').to_owned();
        (!below.contains("..") && root.has(&group)).then_some((version, group))
    };
    memberships(&membership, &mounts, controller).into_iter().filter_map(seen).collect()
}

/// Where the hierarchy of version 1 that has the controller is mounted.
pub(crate) fn mount_point_v1(root: &Sysroot, controller: &str) -> Option<String> {
    let mounts = root.text("proc/self/mountinfo")?;
    let mount = mounts.lines().find_map(|line| Mount::of(line, Version::One, controller))?;
    Some(mount.point.trim_start_matches('/').to_owned())
}

/// Version, mount and path of each hierarchy that `/proc/PID/cgroup` lists for the controller.
fn memberships<'a>(
    membership: &'a str,
    mounts: &'a str,
    controller: &str,
) -> Vec<(Version, Mount<'a>, &'a str)> {
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let version = if controllers.is_empty() { Version::Two } else { Version::One };
        if version == Version::One && !controllers.split(',').any(|name| name == controller) {
            continue;
        }
        let mount = mounts.lines().find_map(|line| Mount::of(line, version, controller));
        found.extend(mount.map(|mount| (version, mount, path)));
    }
    found
}

/// One mounted hierarchy.
struct Mount<'a> {
    /// The group that is seen at the mount point.
    group: &'a str,
    point: &'a str,
}

impl<'a> Mount<'a> {
    /// `31 23 0:28 GROUP POINT rw … - cgroup|cgroup2 SOURCE rw,memory` (proc(5)).
    fn of(line: &'a str, version: Version, controller: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (group, point) = (fields.next()?, fields.next()?);
        let mut kind = after.split(' ');
        let matches = match (version, kind.next()?) {
            (Version::Two, "cgroup2") => true,
            (Version::One, "cgroup") => kind.nth(1)?.split(',').any(|name| name == controller),
            _ => false,
        };
        matches.then_some(Self { group, point })
    }

    fn groups(&self, root: &Sysroot, path: &str) -> Vec<String> {
        let point = self.point.trim_start_matches('/').to_owned();
        let below = path.strip_prefix(self.group.trim_end_matches('/')).unwrap_or("");
        let mut below = below.trim_matches('/');
        if below.contains("..") || !root.has(&format!("{point}/{below}")) {
            below = "";
        }
        let mut groups = Vec::new();
        while !below.is_empty() {
            groups.push(format!("{point}/{below}"));
            below = below.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        groups.push(point);
        groups
    }
}

/// The effective set of the nearest group that names one; it already heeds all ancestors.
fn cpus(root: &Sysroot, hierarchy: &Hierarchy) -> Option<CpuSet> {
    let files: &[&str] = match hierarchy.version {
        Version::Two => &["cpuset.cpus.effective"],
        Version::One => &["cpuset.effective_cpus", "cpuset.cpus"],
    };
    let mut groups = hierarchy.groups.iter();
    groups.find_map(|group| files.iter().find_map(|file| root.cpus(&format!("{group}/{file}"))))
}

fn quota(root: &Sysroot, hierarchy: &Hierarchy) -> Option<f64> {
    let of_group = |group: &String| -> Option<f64> {
        let (quota, period) = match hierarchy.version {
            Version::Two => {
                let text = root.text(&format!("{group}/cpu.max"))?;
                let (quota, period) = text.split_once(' ')?;
                (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
            }
            Version::One => (
                root.value::<f64>(&format!("{group}/cpu.cfs_quota_us"))?,
                root.value::<f64>(&format!("{group}/cpu.cfs_period_us"))?,
            ),
        };
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    };
    hierarchy
        .groups
        .iter()
        .filter_map(of_group)
        .fold(None, |tightest, quota| least(tightest, Some(quota)))
}

fn memory(root: &Sysroot, hierarchy: &Hierarchy, limits: &mut Limits) {
    let (limit_files, used_file, file_cache): (&[&str], _, _) = match hierarchy.version {
        // Above `memory.high` a group is throttled until it is of no use for measuring.
        Version::Two => (&["memory.max", "memory.high"], "memory.current", "inactive_file"),
        Version::One => {
            (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file")
        }
    };
    for group in &hierarchy.groups {
        let limit_of = |file: &&str| root.value::<u64>(&format!("{group}/{file}"));
        let Some(limit) = limit_files.iter().filter_map(limit_of).min() else { continue };
        if limit >= NO_LIMIT_V1 {
            continue;
        }
        // Cold pages of files count as used, but the kernel drops them first.
        let used = root.value::<u64>(&format!("{group}/{used_file}")).unwrap_or(0);
        let statistics = root.text(&format!("{group}/memory.stat")).unwrap_or_default();
        let droppable = statistics
            .lines()
            .find_map(|line| line.strip_prefix(file_cache)?.trim().parse::<u64>().ok());
        let left = limit.saturating_sub(used.saturating_sub(droppable.unwrap_or(0)));
        limits.memory_bytes = least(limits.memory_bytes, Some(limit));
        limits.memory_left_bytes = least(limits.memory_left_bytes, Some(left));
    }
}

fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}
