//! Threads as `/proc` tells of them (proc(5)).

use std::fs;
use std::path::Path;

use workahead_machine::process::stat_fields;

use crate::settings::Key;

/// A thread, and what its group is named by.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) tid: u32,
    pub(super) pid: u32,
    pub(super) started_ticks: u64,
    /// Of its process.
    name: String,
    /// Of the process that started that, unless it was init.
    parent: Option<String>,
    /// Of control groups of version 2.
    cgroup: Option<String>,
}

/// Times of a thread so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) on_cpu_ns: u64,
    pub(super) waited_ns: u64,
    /// On a CPU.
    pub(super) turns: u64,
}

impl Times {
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            on_cpu_ns: self.on_cpu_ns.saturating_sub(before.on_cpu_ns),
            waited_ns: self.waited_ns.saturating_sub(before.waited_ns),
            turns: self.turns.saturating_sub(before.turns),
        }
    }
}

/// Whose children have no group.
const INIT: u32 = 1;
/// A thread of the kernel (`PF_KTHREAD`).
const OF_KERNEL: u64 = 0x0020_0000;

// Fields of `stat` behind the name.
const STATE: usize = 0;
const PARENT: usize = 1;
const FLAGS: usize = 6;
const START: usize = 19;
const CPU: usize = 36;

impl Task {
    /// The name of its group by a key.
    pub(super) fn group(&self, key: Key) -> Option<String> {
        match key {
            Key::AddressSpace => Some(self.name_alone()),
            Key::Parent => Some(format!("children of {}", self.parent.as_ref()?)),
            Key::Cgroup => self.cgroup.clone(),
            Key::Tag => None,
        }
    }

    pub(super) fn name_alone(&self) -> String {
        format!("{} ({})", self.name, self.pid)
    }
}

/// All threads but those of the kernel and of this process.
pub(super) fn all(proc: &Path) -> Vec<(Task, Times)> {
    let mut found = Vec::new();
    for pid in numbered(proc).filter(|&pid| pid != std::process::id()) {
        let process = proc.join(pid.to_string());
        let name = name(proc, pid);
        let cgroup = text(&process.join("cgroup")).and_then(|lines| {
            lines.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
        });
        for tid in numbered(&process.join("task")) {
            let folder = process.join(format!("task/{tid}"));
            let Some(stat) = text(&folder.join("stat")) else { continue };
            let Some(number) = fields(&stat) else { continue };
            if number(FLAGS).unwrap_or(0) & OF_KERNEL != 0 {
                continue;
            }
            let (Some(started_ticks), Some(parent)) = (number(START), number(PARENT)) else {
                continue;
            };
            let Some(times) = text(&folder.join("schedstat")).and_then(|line| times(&line)) else {
                continue;
            };
            let (name, cgroup) = (name.clone(), cgroup.clone());
            let parent = u32::try_from(parent).ok().filter(|&parent| parent > INIT);
            let parent = parent.map(|parent| format!("{} ({parent})", self::name(proc, parent)));
            found.push((Task { tid, pid, started_ticks, parent, name, cgroup }, times));
        }
    }
    found
}

/// The CPU for which a thread is ready; `None` if it sleeps or has ended.
pub(super) fn ready_on(proc: &Path, task: &Task) -> Option<usize> {
    let stat = text(&proc.join(format!("{}/task/{}/stat", task.pid, task.tid)))?;
    if stat_fields(&stat)?.get(STATE) != Some(&"R") {
        return None;
    }
    usize::try_from(fields(&stat)?(CPU)?).ok()
}

/// Forgets which pages a process used; false if that isn't allowed, or there are too many.
pub(super) fn clear_references(proc: &Path, pid: u32, resident_max_kb: u64) -> bool {
    let status = text(&proc.join(format!("{pid}/status")));
    let resident_kb = status.and_then(|status| status.lines().find_map(|line| kb(line, "VmRSS:")));
    resident_kb.is_some_and(|resident_kb| resident_kb <= resident_max_kb)
        && fs::write(proc.join(format!("{pid}/clear_refs")), "1").is_ok()
}

/// Bytes of the pages that a process used, each page divided by the processes that share it.
pub(super) fn used_bytes(proc: &Path, pid: u32) -> Option<u64> {
    let mappings = text(&proc.join(format!("{pid}/smaps")))?;
    let (mut used_kb, mut resident_kb, mut proportional_kb) = (0.0, 0, 0);
    // In this order, for each mapping.
    for line in mappings.lines() {
        if let Some(rss) = kb(line, "Rss:") {
            resident_kb = rss;
        } else if let Some(pss) = kb(line, "Pss:") {
            proportional_kb = pss;
        } else if let Some(referenced_kb) = kb(line, "Referenced:") {
            let share = proportional_kb as f64 / resident_kb.max(1) as f64;
            used_kb += referenced_kb as f64 * share;
        }
    }
    Some((used_kb * 1024.0) as u64)
}

/// The value of a line of this name.
fn kb(line: &str, name: &str) -> Option<u64> {
    line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// On one line: a process may name itself as it likes (`PR_SET_NAME`, prctl(2)).
fn name(proc: &Path, pid: u32) -> String {
    let name = text(&proc.join(format!("{pid}/comm"))).unwrap_or_default();
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

fn numbered(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The numbers behind the name.
fn fields(stat: &str) -> Option<impl Fn(usize) -> Option<u64>> {
    let fields = stat_fields(stat)?;
    Some(move |at: usize| fields.get(at)?.parse().ok())
}

/// Nanoseconds on a CPU, nanoseconds waiting for one, turns.
fn times(line: &str) -> Option<Times> {
    let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
    Some(Times {
        on_cpu_ns: numbers.next()??,
        waited_ns: numbers.next()??,
        turns: numbers.next()??,
    })
}
