//! The target of counts, looked up anew before every slot, because servers start and end processes.

use std::path::PathBuf;

use workahead_machine::Sysroot;
use workahead_machine::process::Tree;

use crate::source::Target;

/// The target of a rotation, which may change from slot to slot.
pub trait Targets: Send {
    /// The targets to open counters on now.
    fn current(&mut self) -> Vec<Target>;

    /// Describes the target beside the figures.
    fn description(&self) -> String;
}

/// Everything on some CPUs.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The CPUs.
    pub cpus: Vec<u32>,
}

/// A control group, CPU by CPU.
#[derive(Debug, Clone)]
pub struct ControlGroup {
    /// Its directory.
    pub directory: PathBuf,
    /// The CPUs that it may run on.
    pub cpus: Vec<u32>,
}

/// A process and its descendants, thread by thread and CPU by CPU.
#[derive(Debug)]
pub struct Processes {
    root: Sysroot,
    tree: Tree,
    cpus: Vec<u32>,
}

/// A process and its descendants, counted as one.
#[derive(Debug, Clone, Copy)]
pub struct ProcessTree {
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
    /// A process and its descendants, on these CPUs.
    #[must_use]
    pub fn of(pid: u32, cpus: Vec<u32>) -> Self {
        Self { root: Sysroot::live(), tree: Tree::of(pid), cpus }
    }
}

impl Targets for Machine {
    fn current(&mut self) -> Vec<Target> {
        self.cpus.iter().map(|cpu| Target::Cpu(*cpu)).collect()
    }

    fn description(&self) -> String {
        "everything on the CPUs".to_owned()
    }
}

impl Targets for ControlGroup {
    fn current(&mut self) -> Vec<Target> {
        let of_cpu = |cpu: &u32| Target::CpuOfGroup { cpu: *cpu, group: self.directory.clone() };
        self.cpus.iter().map(of_cpu).collect()
    }

    fn description(&self) -> String {
        "the server's control group, by CPU".to_owned()
    }
}

impl Targets for Processes {
    fn current(&mut self) -> Vec<Target> {
        let threads = self.tree.look(&self.root).threads();
        let targets = threads.iter().flat_map(|thread| {
            self.cpus.iter().map(|cpu| Target::ThreadOnCpu { thread: *thread, cpu: *cpu })
        });
        targets.collect()
    }

    fn description(&self) -> String {
        "the processes and their threads, by CPU".to_owned()
    }
}

impl Targets for ProcessTree {
    fn current(&mut self) -> Vec<Target> {
        vec![Target::Tree(self.pid)]
    }

    fn description(&self) -> String {
        "the processes together, as the kernel accounts for them".to_owned()
    }
}

impl Targets for Command {
    fn current(&mut self) -> Vec<Target> {
        vec![Target::Process(self.pid)]
    }

    fn description(&self) -> String {
        "the command and its children".to_owned()
    }
}
