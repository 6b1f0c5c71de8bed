//! Other programs on the machine: CPU time of processes by the name of their program (proc(5)).
//!
//! A program's children that ended are in the sums of the process that waited for them, so that a
//! build is seen although each compiler of it lives for a second.

use std::collections::BTreeMap;

use super::TICKS_PER_S;
use super::record::{self, Id};
use crate::sysroot::Sysroot;

/// CPU time of every process at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbours {
    processes: BTreeMap<Id, (String, u64)>,
}

impl Neighbours {
    /// Reads it, without processes of these numbers.
    #[must_use]
    pub fn look(root: &Sysroot, without: &[u32]) -> Self {
        let is_meant = |pid: &usize| !without.iter().any(|one| *one as usize == *pid);
        let one = |pid: usize| {
            let line = record::line(root, pid)?;
            let name = root.text(&format!("proc/{pid}/comm"))?;
            Some((line.id, (name, line.own.ticks() + line.children.ticks())))
        };
        let pids = root.numbered("proc", "").into_iter().filter(is_meant);
        Self { processes: pids.filter_map(one).collect() }
    }

    /// CPU seconds since an earlier look by name, those that used most first.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<(String, f64)> {
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (id, (name, ticks)) in &self.processes {
            let was = before.processes.get(id).map_or(0, |(_, ticks)| *ticks);
            *by_name.entry(name).or_default() += ticks.saturating_sub(was);
        }
        let seconds = |(name, ticks): (&str, u64)| (name.to_owned(), ticks as f64 / TICKS_PER_S);
        let mut all: Vec<(String, f64)> =
            by_name.into_iter().filter(|(_, ticks)| *ticks > 0).map(seconds).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_worked_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let process = |pid: u32, name: &str, ticks: u64| {
            let at = directory.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("comm"), format!("{name}\n")).unwrap();
            let stat =
                format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {pid} 0 0");
            std::fs::write(at.join("stat"), stat).unwrap();
        };
        let root = Sysroot::at(directory.path()).unwrap();
        [(7, "make"), (8, "cc"), (9, "postgres")]
            .iter()
            .for_each(|(pid, name)| process(*pid, name, 100));
        let before = Neighbours::look(&root, &[9]);
        process(7, "make", 150);
        process(10, "make", 25);
        process(9, "postgres", 900);
        let used = Neighbours::look(&root, &[9]).since(&before);
        assert_eq!(used, [("make".to_owned(), 0.75)]);
    }
}
