//! Results of a run with run queues.

use workahead_policy::Group;

use crate::ticks::Ticks;

/// A CPU switches to a task, or to idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// Time of the switch.
    pub at: Ticks,
    /// The CPU.
    pub cpu: usize,
    /// The task; `None` for idle.
    pub task: Option<usize>,
}

/// Dispatcher and waiting time of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wait {
    /// Time on its CPU, including the switches to it.
    pub ran: Ticks,
    /// Time in the queue.
    pub waited: Ticks,
    /// Longest single wait, including one at the end of the run.
    pub waited_max: Ticks,
    /// Number of dispatches.
    pub dispatches: u64,
}

/// Counts of decisions, and times by task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Decisions of a CPU.
    pub decisions: u64,
    /// Decisions with a thread of the last one's group in the queue, or on a slave of the published
    /// group.
    pub chances: u64,
    /// Chances in which such a thread was dispatched.
    pub taken: u64,
    /// Switches from one thread to another.
    pub switches: u64,
    /// Switches within a group.
    pub group_switches: u64,
    /// CPU time of threads with others in their group.
    pub grouped: Ticks,
    /// Of that, time while a thread of the group ran on another CPU.
    pub co_run: Ticks,
    /// Times by task.
    pub tasks: Vec<Wait>,
    /// All switches, in the order of time.
    pub dispatches: Vec<Dispatch>,
}

impl Figures {
    /// Adds what the switches say, up to the end of a run; `groups` are those of tasks with others
    /// in their group.
    pub(super) fn of_dispatches(&mut self, cpus: usize, end: Ticks, groups: &[Option<Group>]) {
        self.dispatches.sort_by_key(|turn| (turn.at, turn.cpu));
        let mut last: Vec<Option<usize>> = vec![None; cpus];
        let mut runs: Vec<Option<Group>> = vec![None; cpus];
        let mut since = 0;
        let stop = [Dispatch { at: end, cpu: 0, task: None }];
        for turn in self.dispatches.iter().chain(&stop) {
            let gone = turn.at.min(end).saturating_sub(since);
            since = since.max(turn.at);
            for (cpu, group) in runs.iter().enumerate() {
                let Some(group) = group else { continue };
                let others = runs.iter().enumerate().filter(|(other, _)| *other != cpu);
                self.grouped += gone;
                if others.into_iter().any(|(_, other)| other.as_ref() == Some(group)) {
                    self.co_run += gone;
                }
            }
            let Some(task) = turn.task else {
                runs[turn.cpu] = None;
                continue;
            };
            let before = last[turn.cpu].replace(task);
            if let Some(before) = before.filter(|before| *before != task) {
                self.switches += 1;
                let is_member = groups[task].is_some() && groups[task] == groups[before];
                self.group_switches += u64::from(is_member);
            }
            runs[turn.cpu] = groups[task];
        }
    }
}
