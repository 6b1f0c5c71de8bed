//! The kernel's own accounts of processes, read twice a slot, where there is nothing else to count.
//!
//! perf's events of a process or a control group are switched at every change of task, which costs
//! some microseconds: worth it for what the processor counts, too much for what the kernel keeps in
//! `/proc` anyway. A server that changes tasks 30,000 times a second lost 4 % to six such events.
//! Not apart by CPU or by privilege: the accounts are of processes.

use std::collections::BTreeMap;

use workahead_machine::Sysroot;
use workahead_machine::process::{Snapshot, Tree, migrations_of};

use crate::event::{Code, Event, Privilege, Software};
use crate::source::{CountError, Counting, Reading, Source, Target};

/// Reads a tree of processes, and nothing else.
#[derive(Debug, Clone)]
pub struct Accounts {
    root: Sysroot,
    /// Remembers the processes it has seen, by the tree's first process.
    trees: BTreeMap<u32, Tree>,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { root: Sysroot::live(), trees: BTreeMap::new() }
    }
}

impl Accounts {
    /// Why an event is in no account; `None` if it is in one.
    #[must_use]
    pub fn lacks(&self, event: &Event) -> Option<&'static str> {
        match event.code {
            Code::Software(Software::CpuClock) => Some("for processes task_clock says the same"),
            Code::Software(Software::CpuMigrations)
                if migrations_of(&self.root, std::process::id()).is_none() =>
            {
                Some("this kernel keeps no account of it (CONFIG_SCHED_DEBUG)")
            }
            Code::Software(_) => None,
            _ => Some("the kernel keeps no account of it"),
        }
    }
}

impl Source for Accounts {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let Target::Tree(pid) = target else {
            return Err(CountError::Failed(format!("no account is kept of {target} alone")));
        };
        let refused = |event: &Event, why: &str| CountError::NoSuchEvent {
            event: event.name.clone(),
            why: why.to_owned(),
        };
        let mut kinds = Vec::with_capacity(group.len());
        for event in group {
            match (event.code.clone(), self.lacks(event)) {
                _ if privilege != Privilege::Both => {
                    return Err(refused(event, "accounts are of user and kernel together"));
                }
                (Code::Software(software), None) => kinds.push(software),
                (_, why) => return Err(refused(event, why.unwrap_or("no such account"))),
            }
        }
        let tree = self.trees.entry(*pid).or_insert_with(|| Tree::of(*pid)).clone();
        Ok(Box::new(Account { root: self.root.clone(), tree, kinds, begun: None }))
    }
}

/// The accounts of one tree between two looks.
struct Account {
    root: Sysroot,
    tree: Tree,
    kinds: Vec<Software>,
    begun: Option<Look>,
}

/// What the accounts say at one moment.
struct Look {
    processes: Snapshot,
    /// Moves to another CPU, by thread.
    migrations: BTreeMap<u32, u64>,
}

impl Account {
    fn look(&mut self) -> Look {
        let processes = self.tree.look(&self.root);
        let of_thread = |thread: u32| Some((thread, migrations_of(&self.root, thread)?));
        let migrations = match self.kinds.contains(&Software::CpuMigrations) {
            true => processes.threads().into_iter().filter_map(of_thread).collect(),
            false => BTreeMap::new(),
        };
        Look { processes, migrations }
    }
}

impl Counting for Account {
    fn begin(&mut self) -> Result<(), CountError> {
        self.begun = Some(self.look());
        Ok(())
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        let ended = self.look();
        let Some(begun) = self.begun.take() else {
            return Err(CountError::Failed("read before it began".to_owned()));
        };
        if ended.processes.running() == 0 {
            return Err(CountError::Gone("every process that was counted".to_owned()));
        }
        let used = ended.processes.since(&begun.processes);
        let on_cpu_ns = (used.cpu_s * 1e9).round() as u64;
        let migrations = ended.migrations.iter().map(|(thread, now)| {
            now.saturating_sub(begun.migrations.get(thread).copied().unwrap_or_default())
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
        let mut accounts = Accounts::default();
        let group = [event("task_clock"), event("minor_faults"), event("context_switches")];
        let own = Target::Tree(std::process::id());
        let mut counting = accounts.open(&group, Privilege::Both, &own).unwrap();
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
    fn refuses_what_no_account_says() {
        let mut accounts = Accounts::default();
        let own = Target::Tree(std::process::id());
        let group = [event("cpu_clock")];
        assert!(accounts.open(&group, Privilege::Both, &own).is_err());
        let group = [event("task_clock")];
        assert!(accounts.open(&group, Privilege::User, &own).is_err());
        assert!(accounts.open(&group, Privilege::Both, &Target::Cpu(0)).is_err());
        // No process has this number: there is nothing to be read at the end.
        let nobody = Target::Tree(u32::MAX >> 1);
        let mut counting = accounts.open(&group, Privilege::Both, &nobody).unwrap();
        counting.begin().unwrap();
        assert!(matches!(counting.end(), Err(CountError::Gone(_))));
    }
}
