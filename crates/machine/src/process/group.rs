//! CPU time as a control group counts it: nothing is lost when processes end (cgroups(7)).
//!
//! Version 2 has `cpu.stat` in every group, whatever its controllers; version 1 has the controller
//! `cpuacct`. Which one was read is part of the answer. A group counts everybody in it, so it is
//! the server's only when nobody else is there: [`Own`] makes such a group where that is allowed.

use serde::{Deserialize, Serialize};

use super::TICKS_PER_S;
use crate::cgroup::{self, Version};
use crate::sysroot::Sysroot;

/// A control group whose CPU time can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    version: Version,
    directory: String,
}

/// CPU time of a group since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GroupCpu {
    /// All of it.
    pub cpu_s: f64,
    /// In user code; sampled, not exact, in version 1.
    pub user_s: f64,
    /// In the kernel; sampled, not exact, in version 1.
    pub system_s: f64,
}

impl GroupCpu {
    /// The use since an earlier reading of the same group.
    #[must_use]
    pub fn since(&self, before: &GroupCpu) -> GroupCpu {
        GroupCpu {
            cpu_s: (self.cpu_s - before.cpu_s).max(0.0),
            user_s: (self.user_s - before.user_s).max(0.0),
            system_s: (self.system_s - before.system_s).max(0.0),
        }
    }
}

impl Group {
    /// The group of a process: the one with the fewest strangers in it, version 2 where both are
    /// alike. `pids` are those who are not strangers.
    #[must_use]
    pub fn of(root: &Sysroot, pids: &[u32]) -> Option<Group> {
        let process = pids.first()?.to_string();
        let mut found = groups(root, &process);
        found.sort_by_key(|group| (group.strangers(root, pids), group.version == Version::One));
        found.into_iter().next()
    }

    /// The group in words, e.g. `cgroup v2 sys/fs/cgroup/system.slice/postgresql.service`.
    #[must_use]
    pub fn name(&self) -> String {
        let version = if self.version == Version::Two { 2 } else { 1 };
        format!("cgroup v{version} /{}", self.directory)
    }

    /// The group's directory, where the kernel can count events of groups by it: those of version
    /// 2 (perf_event_open(2), `PERF_FLAG_PID_CGROUP`).
    #[must_use]
    pub fn for_events(&self, root: &Sysroot) -> Option<std::path::PathBuf> {
        (self.version == Version::Two).then(|| root.path(&self.directory))
    }

    /// CPU time of everything in the group and below it.
    #[must_use]
    pub fn cpu(&self, root: &Sysroot) -> Option<GroupCpu> {
        let at = &self.directory;
        if self.version == Version::Two {
            let text = root.text(&format!("{at}/cpu.stat"))?;
            let seconds = |key| Some(number_after(&text, key)? / 1e6);
            return Some(GroupCpu {
                cpu_s: seconds("usage_usec")?,
                user_s: seconds("user_usec")?,
                system_s: seconds("system_usec")?,
            });
        }
        let text = root.text(&format!("{at}/cpuacct.stat"))?;
        let seconds = |key| Some(number_after(&text, key)? / TICKS_PER_S);
        Some(GroupCpu {
            cpu_s: root.value::<f64>(&format!("{at}/cpuacct.usage"))? / 1e9,
            user_s: seconds("user")?,
            system_s: seconds("system")?,
        })
    }

    /// How many processes of the group are none of these, those of groups below it counted too.
    #[must_use]
    pub fn strangers(&self, root: &Sysroot, pids: &[u32]) -> usize {
        let mut left = vec![self.directory.clone()];
        let mut strangers = 0;
        while let Some(directory) = left.pop() {
            let members = root.text(&format!("{directory}/cgroup.procs")).unwrap_or_default();
            let members = members.lines().filter_map(|pid| pid.trim().parse::<u32>().ok());
            strangers += members.filter(|pid| !pids.contains(pid)).count();
            let below = root.names(&directory).into_iter();
            let below = below.map(|name| format!("{directory}/{name}"));
            left.extend(below.filter(|path| root.has(&format!("{path}/cgroup.procs"))));
        }
        strangers
    }
}

/// Every group of a process whose CPU time can be read.
fn groups(root: &Sysroot, process: &str) -> Vec<Group> {
    let groups = cgroup::groups_of(root, process, "cpuacct").into_iter();
    let groups = groups.map(|(version, directory)| Group { version, directory });
    groups.filter(|group| group.cpu(root).is_some()).collect()
}

/// `key 123` on a line of its own.
fn number_after(text: &str, key: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let (name, number) = line.split_once(' ')?;
        (name == key).then(|| number.trim().parse().ok())?
    })
}

/// A group made for one server; removed when dropped, which the kernel allows once it is empty.
#[derive(Debug)]
pub struct Own {
    root: Sysroot,
    group: Group,
}

/// Groups of ours are named so, then the number of the process that made them.
const PREFIX: &str = "workahead-";

impl Own {
    /// Makes a group below the one that this process is in. Groups that killed runs left empty are
    /// removed on the way.
    ///
    /// # Errors
    /// In words, why this machine does not let us.
    pub fn make(root: &Sysroot, name: &str) -> Result<Own, String> {
        let mut parents = groups(root, "self");
        parents.sort_by_key(|group| group.version == Version::One);
        let mut refusal = "no control group that counts CPU time is mounted".to_owned();
        for parent in parents {
            remove_leftovers(root, &parent.directory);
            let directory = format!("{}/{PREFIX}{}-{name}", parent.directory, std::process::id());
            let group = Group { version: parent.version, directory };
            match std::fs::create_dir(root.path(&group.directory)) {
                Ok(()) => return Ok(Own { root: root.clone(), group }),
                Err(error) => refusal = format!("{} can't be made ({error})", group.name()),
            }
        }
        Err(refusal)
    }

    /// Moves a process into the group; those it starts afterwards are born there.
    ///
    /// # Errors
    /// In words, why the kernel refused.
    pub fn take(&self, pid: u32) -> Result<(), String> {
        let file = format!("{}/cgroup.procs", self.group.directory);
        let moved = self.root.write(&file, &pid.to_string());
        moved.map_err(|error| format!("process {pid} can't be moved there ({error})"))
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Refused while a process is in it: then the next run's `make` removes it.
        let _ = std::fs::remove_dir(self.root.path(&self.group.directory));
    }
}

fn remove_leftovers(root: &Sysroot, parent: &str) {
    for name in root.names(parent) {
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if maker.is_some_and(|pid| !root.has(&format!("proc/{pid}"))) {
            // Refused unless it is empty.
            let _ = std::fs::remove_dir(root.path(&format!("{parent}/{name}")));
        }
    }
}
