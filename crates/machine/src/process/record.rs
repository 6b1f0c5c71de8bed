//! One process and its threads as `/proc/PID` tells (proc(5)).

use std::collections::BTreeMap;

use crate::sysroot::{Sysroot, field};

/// A process, identified by number and start time: numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) pid: usize,
    pub(super) started_ticks: u64,
}

/// Sums that the kernel keeps per process: its own and that of children it has waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    pub(super) faults_minor: u64,
    pub(super) faults_major: u64,
}

impl Sums {
    pub(super) fn plus(self, other: Sums) -> Sums {
        Sums {
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
            faults_minor: self.faults_minor + other.faults_minor,
            faults_major: self.faults_major + other.faults_major,
        }
    }

    /// The difference; nothing less than nothing.
    pub(super) fn minus(self, other: Sums) -> Sums {
        Sums {
            user_ticks: self.user_ticks.saturating_sub(other.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(other.system_ticks),
            faults_minor: self.faults_minor.saturating_sub(other.faults_minor),
            faults_major: self.faults_major.saturating_sub(other.faults_major),
        }
    }

    pub(super) fn ticks(self) -> u64 {
        self.user_ticks + self.system_ticks
    }
}

/// The counts of a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) on_cpu_ns: u64,
    pub(super) run_delay_ns: u64,
    pub(super) switches_voluntary: u64,
    pub(super) switches_involuntary: u64,
}

impl Thread {
    /// Nothing a thread does runs backwards: one that seems to is another with the same number.
    pub(super) fn is_later_than(&self, before: &Thread) -> bool {
        self.on_cpu_ns >= before.on_cpu_ns
            && self.switches_voluntary >= before.switches_voluntary
            && self.switches_involuntary >= before.switches_involuntary
    }
}

/// The line of `/proc/PID/stat`, without threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: Id,
    pub(super) parent: usize,
    pub(super) is_zombie: bool,
    pub(super) own: Sums,
    pub(super) children: Sums,
}

/// A process with its threads, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) line: Line,
    pub(super) threads: BTreeMap<usize, Thread>,
}

/// How often a thread has moved to another CPU (`/proc/PID/sched`, kernel/sched/debug.c). `None`
/// where the kernel keeps no account, or the thread has ended.
#[must_use]
pub fn migrations_of(root: &Sysroot, thread: u32) -> Option<u64> {
    let text = root.text(&format!("proc/{thread}/sched"))?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// The fields behind the name in a text of `/proc/PID/stat`, `PID (NAME) STATE PARENT …`: the name
/// may hold anything, spaces and brackets too, so they are counted from the last bracket. `None`
/// without a name.
#[must_use]
pub fn stat_fields(text: &str) -> Option<Vec<&str>> {
    Some(text[text.rfind(')')? + 1..].split_ascii_whitespace().collect())
}

/// The line of a process; `None` if there is none.
pub(super) fn line(root: &Sysroot, pid: usize) -> Option<Line> {
    let text = root.text(&format!("proc/{pid}/stat"))?;
    let fields = stat_fields(&text)?;
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    // Children's times may be printed with a sign; none below zero was ever seen.
    let sums = |user: usize, minor: usize| {
        Some(Sums {
            user_ticks: number(user)?,
            system_ticks: number(user + 1)?,
            faults_minor: number(minor)?,
            faults_major: number(minor + 2)?,
        })
    };
    Some(Line {
        id: Id { pid, started_ticks: number(19)? },
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: fields.first() == Some(&"Z"),
        own: sums(11, 7)?,
        children: sums(13, 8)?,
    })
}

/// A process's threads. One that ends while it is read is left out.
pub(super) fn threads(root: &Sysroot, pid: usize) -> BTreeMap<usize, Thread> {
    let tasks = format!("proc/{pid}/task");
    let thread = |tid: usize| Some((tid, thread(root, &format!("{tasks}/{tid}"))?));
    root.numbered(&tasks, "").into_iter().filter_map(thread).collect()
}

fn thread(root: &Sysroot, task: &str) -> Option<Thread> {
    let status = root.text(&format!("{task}/status"))?;
    let count = |key: &str| field(&status, key).and_then(|count| count.parse().ok()).unwrap_or(0);
    // Nanoseconds on a CPU, nanoseconds waiting for one, slices (sched-stats in the kernel's
    // documentation). Missing where the kernel was built without; zeros where it is switched off.
    let schedstat = root.text(&format!("{task}/schedstat")).unwrap_or_default();
    let mut times = schedstat.split_ascii_whitespace().map(|ns| ns.parse::<u64>().unwrap_or(0));
    Some(Thread {
        on_cpu_ns: times.next().unwrap_or(0),
        run_delay_ns: times.next().unwrap_or(0),
        switches_voluntary: count("voluntary_ctxt_switches"),
        switches_involuntary: count("nonvoluntary_ctxt_switches"),
    })
}
