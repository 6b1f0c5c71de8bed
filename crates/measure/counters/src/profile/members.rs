//! Which processes are sampled: the roots and, for trees, every descendant.

use std::collections::HashSet;

use workahead_machine::Sysroot;
use workahead_machine::process::Tree;

use super::Target;

/// The processes whose samples count.
#[derive(Debug)]
pub(super) struct Members {
    pids: HashSet<u32>,
    with_children: bool,
}

impl Members {
    /// The members now.
    pub(super) fn now(target: &Target) -> Self {
        match target {
            Target::Process(pid) => Self { pids: HashSet::from([*pid]), with_children: false },
            Target::Trees(roots) => {
                let live = Sysroot::live();
                let below = roots.iter().flat_map(|root| Tree::of(*root).look(&live).pids());
                let pids = roots.iter().copied().chain(below).collect();
                Self { pids, with_children: true }
            }
        }
    }

    /// Whether none of them runs any more.
    pub(super) fn all_gone(&self) -> bool {
        // A process that has ended and was not waited for has no code any more.
        let runs = |pid| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        !self.iter().any(runs)
    }

    /// Whether a process counts.
    pub(super) fn contains(&self, pid: u32) -> bool {
        self.pids.contains(&pid)
    }

    /// The processes, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.pids.iter().copied()
    }

    /// A process was made. A number reused by another process is no longer a member.
    pub(super) fn forked(&mut self, pid: u32, parent: u32) {
        if pid == parent {
            return;
        }
        if self.with_children && self.pids.contains(&parent) {
            self.pids.insert(pid);
        } else {
            self.pids.remove(&pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_count_and_strangers_that_take_their_numbers_do_not() {
        let mut members = Members { pids: HashSet::from([10]), with_children: true };
        members.forked(11, 10);
        members.forked(12, 11);
        members.forked(30, 29);
        members.forked(10, 10);
        assert!([10, 11, 12].iter().all(|pid| members.contains(*pid)));
        assert!(!members.contains(30));
        members.forked(12, 29);
        assert!(!members.contains(12));
    }

    #[test]
    fn a_process_alone_has_no_children() {
        let mut members = Members::now(&Target::Process(10));
        members.forked(11, 10);
        assert!(!members.contains(11));
        assert!(members.contains(10));
    }

    #[test]
    fn a_tree_holds_what_runs_now() {
        let own = std::process::id();
        let members = Members::now(&Target::Trees(vec![own]));
        assert!(members.contains(own));
    }
}
