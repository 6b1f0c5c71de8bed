//! Whom to count, looked up anew before every slot, because servers start and end processes.

use std::path::PathBuf;

use workahead_machine::Sysroot;
use workahead_machine::process::Tree;

use crate::source::Target;

/// Somebody who is counted over many slots.
pub trait Whom: Send {
    /// Whom to open now.
    fn targets(&mut self) -> Vec<Target>;

    /// In words, for those who read the figures.
    fn words(&self) -> String;
}

/// Everything on some CPUs.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The CPUs.
    pub cpus: Vec<u32>,
}

/// A control group, by CPU.
#[derive(Debug, Clone)]
pub struct ControlGroup {
    /// Its directory.
    pub directory: PathBuf,
    /// The CPUs that it may run on.
    pub cpus: Vec<u32>,
}

/// A process and everything that it started, thread by thread and CPU by CPU.
#[derive(Debug)]
pub struct Processes {
    root: Sysroot,
    tree: Tree,
    cpus: Vec<u32>,
}

/// A process and everything that it started, all of it together.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    /// The process.
    pub pid: u32,
}

/// A process that is about to start, all CPUs together.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// The process.
    pub pid: u32,
}

impl Processes {
    /// The tree that grows from a process, on these CPUs.
    #[must_use]
    pub fn of(pid: u32, cpus: Vec<u32>) -> Self {
        Self { root: Sysroot::live(), tree: Tree::of(pid), cpus }
    }
}

impl Whom for Machine {
    fn targets(&mut self) -> Vec<Target> {
        self.cpus.iter().map(|cpu| Target::Cpu(*cpu)).collect()
    }

    fn words(&self) -> String {
        "everything on the CPUs".to_owned()
    }
}

impl Whom for ControlGroup {
    fn targets(&mut self) -> Vec<Target> {
        let of_cpu = |cpu: &u32| Target::CpuOfGroup { cpu: *cpu, group: self.directory.clone() };
        self.cpus.iter().map(of_cpu).collect()
    }

    fn words(&self) -> String {
        "the server's control group, by CPU".to_owned()
    }
}

impl Whom for Processes {
    fn targets(&mut self) -> Vec<Target> {
        let threads = self.tree.look(&self.root).threads();
        let pairs = threads.iter().flat_map(|thread| {
            self.cpus.iter().map(|cpu| Target::ThreadOnCpu { thread: *thread, cpu: *cpu })
        });
        pairs.collect()
    }

    fn words(&self) -> String {
        "the processes and their threads, by CPU".to_owned()
    }
}

impl Whom for Together {
    fn targets(&mut self) -> Vec<Target> {
        vec![Target::Tree(self.pid)]
    }

    fn words(&self) -> String {
        "the processes together, as the kernel accounts for them".to_owned()
    }
}

impl Whom for Command {
    fn targets(&mut self) -> Vec<Target> {
        vec![Target::Process(self.pid)]
    }

    fn words(&self) -> String {
        "the command and what it starts".to_owned()
    }
}
