//! What came of it.

use workahead_policy::Group;

use crate::ticks::Ticks;

/// From then on a CPU runs this task, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When.
    pub at: Ticks,
    /// Which CPU.
    pub cpu: usize,
    /// Which task.
    pub task: Option<usize>,
}

/// How a task fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wait {
    /// Time on its CPU, with the switches to it.
    pub ran: Ticks,
    /// Time in the queue.
    pub waited: Ticks,
    /// The longest of it at once; what it waits at the end of a run counts.
    pub waited_max: Ticks,
    /// How often it got the CPU.
    pub turns: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Decisions.
    pub decisions: u64,
    /// Decisions for which a sibling of the thread that ran last was in the queue, or on a slave a
    /// thread of the published group.
    pub chances: u64,
    /// Of those, taken: one of them got the CPU.
    pub taken: u64,
    /// Changes of the thread of a CPU.
    pub switches: u64,
    /// Of those, to a sibling.
    pub sibling_switches: u64,
    /// Time of CPUs with threads that have siblings.
    pub grouped: Ticks,
    /// Of that, while a sibling ran on another CPU.
    pub co_run: Ticks,
    /// By task.
    pub tasks: Vec<Wait>,
    /// Who ran when, in the order of time.
    pub turns: Vec<Turn>,
}

impl Figures {
    /// Counts what turns say, up to the end of a run; `groups` are those of tasks with siblings.
    pub(super) fn of_turns(&mut self, cpus: usize, end: Ticks, groups: &[Option<Group>]) {
        self.turns.sort_by_key(|turn| (turn.at, turn.cpu));
        let mut last: Vec<Option<usize>> = vec![None; cpus];
        let mut runs: Vec<Option<Group>> = vec![None; cpus];
        let mut since = 0;
        let stop = [Turn { at: end, cpu: 0, task: None }];
        for turn in self.turns.iter().chain(&stop) {
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
                let is_sibling = groups[task].is_some() && groups[task] == groups[before];
                self.sibling_switches += u64::from(is_sibling);
            }
            runs[turn.cpu] = groups[task];
        }
    }
}
