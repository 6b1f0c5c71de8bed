//! Which processes belong to a server: one process and everything it started.
//!
//! A process whose parent ends is given another one (init, or a reaper), so the links alone would
//! lose it. A tree therefore remembers the processes it has seen, and a look finds: those, still
//! alive, and all their descendants now.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{self, Id, Line, Process};
use super::resource_use::{self, ResourceUse};
use crate::sysroot::Sysroot;

/// A process and its descendants, looked at again and again.
///
/// ```
/// use workahead_machine::{Sysroot, process::Tree};
/// let mut tree = Tree::of(std::process::id());
/// let before = tree.look(&Sysroot::live());
/// let _work: u64 = (0..1000).sum();
/// let used = tree.look(&Sysroot::live()).since(&before);
/// assert!(used.cpu_s >= 0.0 && used.processes >= 1);
/// ```
#[derive(Debug, Clone)]
pub struct Tree {
    pid: usize,
    seen: BTreeSet<Id>,
}

/// The counts of the processes of a tree at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// By number.
    pub(super) processes: BTreeMap<Id, Process>,
}

impl Tree {
    /// The tree that grows from a process.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        Self { pid: pid as usize, seen: BTreeSet::new() }
    }

    /// Reads what every process of the tree has done so far. Nothing is in it once all have ended.
    pub fn look(&mut self, root: &Sysroot) -> Snapshot {
        let lines: BTreeMap<usize, Line> = lines(root).map(|line| (line.id.pid, line)).collect();
        let mut members: BTreeSet<usize> =
            lines.values().filter(|line| self.has_seen(line)).map(|line| line.id.pid).collect();
        loop {
            let is_new =
                |line: &&Line| members.contains(&line.parent) && !members.contains(&line.id.pid);
            let new: Vec<usize> = lines.values().filter(is_new).map(|line| line.id.pid).collect();
            if new.is_empty() {
                break;
            }
            members.extend(new);
        }
        let process = |pid: &usize| {
            let line = lines[pid];
            (line.id, Process { line, threads: record::threads(root, *pid) })
        };
        let processes: BTreeMap<Id, Process> = members.iter().map(process).collect();
        self.seen.extend(processes.keys());
        Snapshot { processes }
    }

    /// Whether this is the process that the tree grows from, or one that was in it before.
    fn has_seen(&self, line: &Line) -> bool {
        match self.seen.iter().any(|id| id.pid == self.pid) {
            true => self.seen.contains(&line.id),
            false => line.id.pid == self.pid,
        }
    }
}

/// A process and its descendants that run now: itself first, then its children, then theirs. None
/// when it has ended, waited for or not.
#[must_use]
pub fn running_below(root: &Sysroot, pid: u32) -> Vec<u32> {
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut below = Vec::new();
    for line in lines(root).filter(|line| !line.is_zombie) {
        if line.id.pid == pid as usize {
            below.push(line.id.pid);
        }
        children.entry(line.parent).or_default().push(line.id.pid);
    }
    let mut at = 0;
    while let Some(parent) = below.get(at) {
        below.extend(children.remove(parent).into_iter().flatten());
        at += 1;
    }
    below.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect()
}

/// Of every process, by its number.
fn lines(root: &Sysroot) -> impl Iterator<Item = Line> {
    root.numbered("proc", "").into_iter().filter_map(move |pid| record::line(root, pid))
}

impl Snapshot {
    /// The use since an earlier look at the same tree.
    #[must_use]
    pub fn since(&self, before: &Snapshot) -> ResourceUse {
        resource_use::between(before, self)
    }

    /// The numbers of the processes, smallest first.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        let number = |id: &Id| u32::try_from(id.pid).ok();
        self.processes.keys().filter_map(number).collect()
    }

    /// The numbers of all their threads, smallest first.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        let threads = self.processes.values().flat_map(|process| process.threads.keys());
        let mut threads: Vec<u32> =
            threads.filter_map(|thread| u32::try_from(*thread).ok()).collect();
        threads.sort_unstable();
        threads
    }

    /// How many processes run; one that has ended and is not waited for does not.
    #[must_use]
    pub fn running(&self) -> usize {
        self.processes.values().filter(|process| !process.line.is_zombie).count()
    }
}
