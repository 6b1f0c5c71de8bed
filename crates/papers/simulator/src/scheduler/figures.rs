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
    /// Switches, in the order of time: all, or the last of a long run.
    pub dispatches: Vec<Dispatch>,
}

/// What the switches summed so far leave to the next.
#[derive(Debug)]
pub(super) struct Running {
    /// The last task of each CPU.
    last: Vec<Option<usize>>,
    /// The group that runs on each.
    groups: Vec<Option<Group>>,
    since: Ticks,
}

impl Running {
    pub(super) fn new(cpus: usize) -> Self {
        Self { last: vec![None; cpus], groups: vec![None; cpus], since: 0 }
    }
}

impl Figures {
    /// Adds what the switches say, up to the end of a run; `groups` are those of tasks with others
    /// in their group.
    pub(super) fn of_dispatches(
        &mut self,
        running: &mut Running,
        end: Ticks,
        groups: &[Option<Group>],
    ) {
        self.sort();
        let turns = std::mem::take(&mut self.dispatches);
        let stop = Dispatch { at: end, cpu: 0, task: None };
        for turn in turns.iter().chain([&stop]) {
            self.add(running, turn, end, groups);
        }
        self.dispatches = turns;
    }

    /// Adds what the switches before a time say, and drops them: none is to come before it, and the
    /// run does not end before it.
    pub(super) fn fold(&mut self, running: &mut Running, before: Ticks, groups: &[Option<Group>]) {
        self.sort();
        let rest = self.dispatches.partition_point(|turn| turn.at < before);
        let rest = self.dispatches.split_off(rest);
        for turn in std::mem::replace(&mut self.dispatches, rest) {
            self.add(running, &turn, before, groups);
        }
    }

    fn sort(&mut self) {
        self.dispatches.sort_by_key(|turn| (turn.at, turn.cpu));
    }

    fn add(
        &mut self,
        running: &mut Running,
        turn: &Dispatch,
        end: Ticks,
        groups: &[Option<Group>],
    ) {
        let Running { last, groups: runs, since } = running;
        let gone = turn.at.min(end).saturating_sub(*since);
        *since = turn.at.max(*since);
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
            return;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks 0 to 3 in turn on two CPUs, idle now and then, summed at the end or as time passes.
    #[test]
    fn sums_do_not_depend_on_when_they_are_made() {
        let groups = [Group::new(1), Group::new(1), Group::new(1), None];
        let of = |at: u64| {
            let task = (at * 7 % 5) as usize;
            Dispatch { at: at / 3 * 2, cpu: (at % 2) as usize, task: (task < 4).then_some(task) }
        };
        let all: Vec<Dispatch> = (0..300).map(of).collect();
        let end = 210;
        let mut whole = Figures { dispatches: all.clone(), ..Figures::default() };
        whole.of_dispatches(&mut Running::new(2), end, &groups);
        assert!(whole.co_run > 0 && whole.group_switches > 0 && whole.switches > 100);
        let (mut parts, mut running) = (Figures::default(), Running::new(2));
        for turn in all {
            parts.dispatches.push(turn);
            if parts.dispatches.len() >= 20 {
                parts.fold(&mut running, turn.at, &groups);
                assert!(parts.dispatches.len() <= 3);
            }
        }
        parts.of_dispatches(&mut running, end, &groups);
        assert!(parts.dispatches.len() < 23);
        assert_eq!(Figures { dispatches: whole.dispatches.clone(), ..parts }, whole);
    }
}
