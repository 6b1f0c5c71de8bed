//! The kernel's process accounting, read twice a slot, for software events only.
//!
//! perf's events of a process or a control group are switched at every change of task, which costs
//! some microseconds: worth it for what the processor counts, too much for what the kernel keeps in
//! `/proc` anyway. A server that changes tasks 30,000 times a second lost 4 % to six such events.
//! It does not distinguish CPUs or privileges.

use std::collections::BTreeMap;

use workahead_machine::Sysroot;
use workahead_machine::process::{Snapshot, Tree, migrations_of};

use crate::event::{Code, Event, Privilege, Software};
use crate::source::{CountError, Counting, Reading, Source, Target};

/// Reads the process accounting of a process and its descendants.
#[derive(Debug, Clone)]
pub struct ProcessAccounting {
    root: Sysroot,
    /// Remembers the processes it has seen, by the tree's first process.
    trees: BTreeMap<u32, Tree>,
}

impl Default for ProcessAccounting {
    fn default() -> Self {
        Self { root: Sysroot::live(), trees: BTreeMap::new() }
    }
}

impl ProcessAccounting {
    /// Why process accounting lacks an event; `None` if it has it.
    #[must_use]
    pub fn lacks(&self, event: &Event) -> Option<&'static str> {
        match event.code {
            Code::Software(Software::CpuClock) => Some("for processes it equals task_clock"),
            Code::Software(Software::CpuMigrations)
                if migrations_of(&self.root, std::process::id()).is_none() =>
            {
                Some("this kernel does not account for it (CONFIG_SCHED_DEBUG)")
            }
            Code::Software(_) => None,
            _ => Some("the kernel does not account for it"),
        }
    }
}

impl Source for ProcessAccounting {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let Target::Tree(pid) = target else {
            return Err(CountError::Failed(format!("the kernel does not account for {target}")));
        };
        let refused = |event: &Event, why: &str| CountError::NoSuchEvent {
            event: event.name.clone(),
            why: why.to_owned(),
        };
        let mut kinds = Vec::with_capacity(group.len());
        for event in group {
            match (event.code.clone(), self.lacks(event)) {
                _ if privilege != Privilege::Both => {
                    return Err(refused(event, "process accounting has user and kernel together"));
                }
                (Code::Software(software), None) => kinds.push(software),
                (_, why) => return Err(refused(event, why.unwrap_or("not in process accounting"))),
            }
        }
        let tree = self.trees.entry(*pid).or_insert_with(|| Tree::of(*pid)).clone();
        Ok(Box::new(TreeAccounting { root: self.root.clone(), tree, kinds, start: None }))
    }
}

/// The accounting of one tree between two readings.
struct TreeAccounting {
    root: Sysroot,
    tree: Tree,
    kinds: Vec<Software>,
    start: Option<Totals>,
}

/// The accounting at one moment.
struct Totals {
    processes: Snapshot,
    /// Moves to another CPU, by thread.
    migrations: BTreeMap<u32, u64>,
}

impl TreeAccounting {
    fn totals(&mut self) -> Totals {
        let processes = self.tree.look(&self.root);
        let of_thread = |thread: u32| Some((thread, migrations_of(&self.root, thread)?));
        let migrations = match self.kinds.contains(&Software::CpuMigrations) {
            true => processes.threads().into_iter().filter_map(of_thread).collect(),
            false => BTreeMap::new(),
        };
        Totals { processes, migrations }
    }
}

impl Counting for TreeAccounting {
    fn begin(&mut self) -> Result<(), CountError> {
        self.start = Some(self.totals());
        Ok(())
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        let end = self.totals();
        let Some(start) = self.start.take() else {
            return Err(CountError::Failed("read before it began".to_owned()));
        };
        if end.processes.running() == 0 {
            return Err(CountError::Gone("every process that was counted".to_owned()));
        }
        let used = end.processes.since(&start.processes);
        let on_cpu_ns = (used.cpu_s * 1e9).round() as u64;
        let migrations = end.migrations.iter().map(|(thread, now)| {
            now.saturating_sub(start.migrations.get(thread).copied().unwrap_or_default())
        });
        let migrations: u64 = migrations.sum();
        let value = |kind: &Software| match kind {
            Software::TaskClock | Software::CpuClock => on_cpu_ns,
            Software::PageFaults => used.faults_minor + used.faults_major,
            Software::MinorFaults => used.faults_minor,
            Software::MajorFaults => used.faults_major,
            Software::ContextSwitches => used.switches_voluntary + used.switches_involuntary,
            Software::CpuMigrations => migrations,
        };
        let values = self.kinds.iter().map(value).collect();
        Ok(Reading { enabled_ns: on_cpu_ns, running_ns: on_cpu_ns, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;

    fn event(name: &str) -> Event {
        Table::software().event(name).expect("one of the kernel's").clone()
    }

    #[test]
    fn counts_what_this_process_does() {
        let mut accounting = ProcessAccounting::default();
        let group = [event("task_clock"), event("minor_faults"), event("context_switches")];
        let own = Target::Tree(std::process::id());
        let mut counting = accounting.open(&group, Privilege::Both, &own).unwrap();
        counting.begin().unwrap();
        // Each of these sleeps is a switch, each of the pages a fault, and the loop takes time.
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let pages = std::hint::black_box(vec![1_u8; 8 << 20]);
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 60 {
            std::hint::black_box(&pages);
        }
        let Reading { enabled_ns, running_ns, values } = counting.end().unwrap();
        assert_eq!(enabled_ns, running_ns);
        assert!(values[0] > 5_000_000, "{values:?}");
        assert!(values[1] > 100, "{values:?}");
        assert!(values[2] >= 20, "{values:?}");
    }

    #[test]
    fn refuses_what_the_kernel_does_not_account_for() {
        let mut accounting = ProcessAccounting::default();
        let own = Target::Tree(std::process::id());
        let group = [event("cpu_clock")];
        assert!(accounting.open(&group, Privilege::Both, &own).is_err());
        let group = [event("task_clock")];
        assert!(accounting.open(&group, Privilege::User, &own).is_err());
        assert!(accounting.open(&group, Privilege::Both, &Target::Cpu(0)).is_err());
        // No process has this number: there is nothing to be read at the end.
        let missing = Target::Tree(u32::MAX >> 1);
        let mut counting = accounting.open(&group, Privilege::Both, &missing).unwrap();
        counting.begin().unwrap();
        assert!(matches!(counting.end(), Err(CountError::Gone(_))));
    }
}
