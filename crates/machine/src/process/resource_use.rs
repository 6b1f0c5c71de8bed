//! The difference of two looks, with what ended between them.
//!
//! ```text
//! still there            after − before
//! new                    after
//! ended, waited for      in the sums of children of the nearest ancestor that is still there:
//!                        their growth − what the ended had been counted for already
//! ended, not waited for  nothing: the figure is a lower bound, and says so
//! a thread that ended    its times are in its process; its switches and delay are lost
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TICKS_PER_S;
use super::record::{Id, Process, Sums, Thread};
use super::tree::Snapshot;

/// The use of the processes of a tree between two looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceUse {
    /// Time on a CPU, user and system.
    pub cpu_s: f64,
    /// Who counted `cpu_s`.
    pub cpu_clock: CpuClock,
    /// Time on a CPU in user code, in ticks of 10 ms per process.
    pub user_s: f64,
    /// Time on a CPU in the kernel, in ticks of 10 ms per process.
    pub system_s: f64,
    /// Whether a process ended whose time nobody was given: the times and faults are lower bounds.
    pub cpu_is_at_least: bool,
    /// Switches because a thread waited for something.
    pub switches_voluntary: u64,
    /// Switches because a thread had to make room.
    pub switches_involuntary: u64,
    /// Time in which a thread could have run and had no CPU. `None` where the kernel keeps no
    /// account.
    pub run_delay_s: Option<f64>,
    /// Whether a thread ended or was too young to be seen: switches and delay are lower bounds.
    pub threads_are_at_least: bool,
    /// Page faults without reading.
    pub faults_minor: u64,
    /// Page faults that read from a file or swap.
    pub faults_major: u64,
    /// Processes at the end.
    pub processes: usize,
    /// Threads at the end.
    pub threads: usize,
    /// Processes that were there at the beginning and no more at the end.
    pub processes_ended: usize,
    /// Threads that were there at the beginning and no more at the end, those of ended processes
    /// among them.
    pub threads_ended: usize,
}

/// A clock of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuClock {
    /// The scheduler's, per thread, in nanoseconds: when no thread and no process ended.
    Scheduler,
    /// The process's times, in ticks of 10 ms, with those of ended threads and children.
    Ticks,
}

pub(super) fn between(before: &Snapshot, after: &Snapshot) -> ResourceUse {
    let threads = threads(before, after);
    let (sums, lost) = sums(before, after);
    let ended = |id: &&Id| !after.processes.contains_key(id);
    let processes_ended = before.processes.keys().filter(ended).count();
    // Children that were born and waited for in between are in the sums only.
    let unseen = after.processes.values().any(|process| {
        let was = before.processes.get(&process.line.id);
        process.line.children.ticks() > was.map_or(0, |was| was.line.children.ticks())
    });
    let is_whole = threads.ended == 0 && processes_ended == 0 && !unseen;
    let ticks_s = sums.ticks() as f64 / TICKS_PER_S;
    let scheduler_s = threads.total.on_cpu_ns as f64 / 1e9;
    // A thread that was born and ended in between is in its process's ticks only.
    let agree = ticks_s - scheduler_s <= (after.processes.len() + 1) as f64 / TICKS_PER_S;
    let (cpu_s, cpu_clock) = match is_whole && agree && threads.has_schedstat {
        true => (scheduler_s, CpuClock::Scheduler),
        false => (ticks_s, CpuClock::Ticks),
    };
    ResourceUse {
        cpu_s,
        cpu_clock,
        user_s: sums.user_ticks as f64 / TICKS_PER_S,
        system_s: sums.system_ticks as f64 / TICKS_PER_S,
        cpu_is_at_least: lost,
        switches_voluntary: threads.total.switches_voluntary,
        switches_involuntary: threads.total.switches_involuntary,
        run_delay_s: threads.has_schedstat.then(|| threads.total.run_delay_ns as f64 / 1e9),
        threads_are_at_least: !(is_whole && agree),
        faults_minor: sums.faults_minor,
        faults_major: sums.faults_major,
        processes: after.running(),
        threads: after.processes.values().map(|process| process.threads.len()).sum(),
        processes_ended,
        threads_ended: threads.ended,
    }
}

struct Threads {
    total: Thread,
    ended: usize,
    has_schedstat: bool,
}

fn threads(before: &Snapshot, after: &Snapshot) -> Threads {
    let mut found = Threads { total: Thread::default(), ended: 0, has_schedstat: false };
    let none = BTreeMap::new();
    for (id, process) in &after.processes {
        let were = before.processes.get(id).map_or(&none, |was| &was.threads);
        found.ended += were.keys().filter(|tid| !process.threads.contains_key(tid)).count();
        for (tid, now) in &process.threads {
            found.has_schedstat |= now.on_cpu_ns > 0;
            let was = match were.get(tid) {
                Some(was) if now.is_later_than(was) => *was,
                Some(_) => {
                    found.ended += 1;
                    Thread::default()
                }
                None => Thread::default(),
            };
            let total = &mut found.total;
            total.on_cpu_ns += now.on_cpu_ns - was.on_cpu_ns;
            total.run_delay_ns += now.run_delay_ns.saturating_sub(was.run_delay_ns);
            total.switches_voluntary += now.switches_voluntary - was.switches_voluntary;
            total.switches_involuntary += now.switches_involuntary - was.switches_involuntary;
        }
    }
    let gone = before.processes.iter().filter(|(id, _)| !after.processes.contains_key(id));
    found.ended += gone.map(|(_, process)| process.threads.len()).sum::<usize>();
    found
}

/// Times and faults, and whether some were lost.
fn sums(before: &Snapshot, after: &Snapshot) -> (Sums, bool) {
    let mut total = Sums::default();
    let mut lost = false;
    // Sums of ended processes that had been counted already, by the process that inherited them.
    let mut counted: BTreeMap<Id, Sums> = BTreeMap::new();
    for (id, process) in &before.processes {
        if after.processes.contains_key(id) {
            continue;
        }
        match heir(process, before, after) {
            Some(heir) => {
                let counted = counted.entry(heir).or_default();
                *counted = counted.plus(process.line.own).plus(process.line.children);
            }
            None => lost = true,
        }
    }
    for (id, process) in &after.processes {
        let was = before.processes.get(id).map(|was| was.line);
        let own = process.line.own.minus(was.map_or(Sums::default(), |was| was.own));
        let inherited =
            process.line.children.minus(was.map_or(Sums::default(), |was| was.children));
        let known = counted.get(id).copied().unwrap_or_default();
        // Each process's times are cut to whole ticks, so an heir may miss a tick of either kind.
        lost |= inherited.ticks() + 2 < known.ticks();
        total = total.plus(own).plus(inherited.minus(known));
    }
    (total, lost)
}

/// The nearest ancestor of an ended process that is still there.
fn heir(ended: &Process, before: &Snapshot, after: &Snapshot) -> Option<Id> {
    let mut parent = ended.line.parent;
    // Parents were read one by one, so a circle is thinkable; a path is never longer than this.
    for _ in 0..before.processes.len() {
        let found = before.processes.values().find(|process| process.line.id.pid == parent)?;
        if after.processes.contains_key(&found.line.id) {
            return Some(found.line.id);
        }
        parent = found.line.parent;
    }
    None
}
