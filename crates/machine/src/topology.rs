//! Packages, NUMA nodes, cores and the logical CPUs that share them.
//!
//! A *package* is what sits in a socket, a *core* has one or more logical CPUs, and the logical
//! CPUs of one core are *siblings* (SMT). Linux tells all this below
//! `/sys/devices/system/cpu/cpuN/topology` for CPUs that are online; what a virtual machine's host
//! hides cannot be read there, only probed ([`limits::siblings`](crate::limits::siblings)).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::sysroot::{Sysroot, field};

const CPU: &str = "sys/devices/system/cpu";

/// The package in one socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// The system's number for it.
    pub id: usize,
    /// Its online logical CPUs.
    pub cpus: CpuSet,
}

/// A NUMA node: CPUs and the memory that is near to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The system's number for it.
    pub id: usize,
    /// Its online logical CPUs; none for memory without CPUs.
    pub cpus: CpuSet,
    /// Its memory.
    pub memory_bytes: Option<u64>,
}

/// How strong a core is among its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreKind {
    /// All cores of the machine are alike, or nothing says otherwise.
    Uniform,
    /// A strong core of a hybrid machine.
    Performance,
    /// A small core of a hybrid machine.
    Efficiency,
}

/// A core and its siblings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Its online logical CPUs.
    pub cpus: CpuSet,
    /// How strong it is.
    pub kind: CoreKind,
    /// The package it is in.
    pub package: Option<usize>,
    /// The NUMA node it is in.
    pub node: Option<usize>,
}

/// Simultaneous multi-threading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Smt {
    /// At least one core shows two or more logical CPUs.
    On,
    /// The processor has it and it is switched off: the siblings are offline.
    Off,
    /// Every core shows one logical CPU. In a virtual machine the host may hide siblings.
    None,
    /// The system does not say which logical CPUs share a core.
    Unknown,
}

/// The layout of the online CPUs.
#[derive(Debug, Clone)]
pub(crate) struct Topology {
    pub(crate) packages: Vec<Package>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) cores: Vec<Core>,
    pub(crate) smt: Smt,
}

/// Which CPUs there are: `(present, online)`. Where `/sys` is hidden, what `/proc/cpuinfo` lists.
pub(crate) fn present_and_online(root: &Sysroot) -> (CpuSet, CpuSet) {
    let online = root.cpus(&format!("{CPU}/online")).unwrap_or_else(|| {
        let text = root.text("proc/cpuinfo").unwrap_or_default();
        let number = |line: &str| field(line, "processor")?.parse::<usize>().ok();
        text.lines().filter_map(number).collect()
    });
    let present = root.cpus(&format!("{CPU}/present")).unwrap_or_else(|| online.clone());
    (present, online)
}

pub(crate) fn read(root: &Sysroot, online: &CpuSet) -> Topology {
    let nodes = nodes(root, online);
    let (cores, siblings_known) = cores(root, online, &nodes);
    let smt = match root.text(&format!("{CPU}/smt/control")).as_deref() {
        _ if cores.iter().any(|core| core.cpus.len() > 1) => Smt::On,
        Some("off" | "forceoff") => Smt::Off,
        _ if siblings_known => Smt::None,
        _ => Smt::Unknown,
    };
    Topology { packages: packages(&cores), nodes, cores, smt }
}

fn nodes(root: &Sysroot, online: &CpuSet) -> Vec<Node> {
    const NODES: &str = "sys/devices/system/node";
    let node = |id| {
        let memory = root.text(&format!("{NODES}/node{id}/meminfo")).unwrap_or_default();
        // `Node 0 MemTotal:  24683704 kB`
        let total = memory.lines().find_map(|line| {
            line.split_once("MemTotal:")?.1.trim().split(' ').next()?.parse::<u64>().ok()
        });
        let cpus: CpuSet = root.value(&format!("{NODES}/node{id}/cpulist")).unwrap_or_default();
        Node { id, cpus: cpus.intersection(online), memory_bytes: total.map(|kib| kib << 10) }
    };
    root.numbered(NODES, "node").into_iter().map(node).collect()
}

/// The cores, by first CPU, and whether the system said which CPUs are siblings.
fn cores(root: &Sysroot, online: &CpuSet, nodes: &[Node]) -> (Vec<Core>, bool) {
    let kinds = kinds(root, online);
    let mut siblings_known = !online.is_empty();
    let mut seen = CpuSet::default();
    let mut cores = Vec::new();
    for cpu in online.iter() {
        if seen.contains(cpu) {
            continue;
        }
        let directory = format!("{CPU}/cpu{cpu}/topology");
        // `core_cpus_list` is the new name (5.3) of the same list.
        let siblings = ["core_cpus_list", "thread_siblings_list"]
            .iter()
            .find_map(|file| root.cpus(&format!("{directory}/{file}")));
        siblings_known &= siblings.is_some();
        let alone = CpuSet::from_iter([cpu]);
        let cpus = siblings.map_or(alone, |cpus| cpus.intersection(online));
        seen = seen.iter().chain(cpus.iter()).collect();
        cores.push(Core {
            kind: kinds.get(&cpu).copied().unwrap_or(CoreKind::Uniform),
            // Some ARM systems write -1: not a number of a package, hence unknown.
            package: root.value(&format!("{directory}/physical_package_id")),
            node: nodes.iter().find(|node| node.cpus.contains(cpu)).map(|node| node.id),
            cpus,
        });
    }
    (cores, siblings_known)
}

/// Hybrid machines name two event sources (Intel) or give each CPU a capacity (ARM, and Linux 6.12
/// on hybrid x86).
fn kinds(root: &Sysroot, online: &CpuSet) -> BTreeMap<usize, CoreKind> {
    let named = [("cpu_core", CoreKind::Performance), ("cpu_atom", CoreKind::Efficiency)];
    let of_source = |(source, kind): (&str, CoreKind)| {
        let cpus = root.cpus(&format!("sys/bus/event_source/devices/{source}/cpus"));
        cpus.unwrap_or_default().iter().map(|cpu| (cpu, kind)).collect::<Vec<_>>()
    };
    let kinds: BTreeMap<usize, CoreKind> = named.into_iter().flat_map(of_source).collect();
    if !kinds.is_empty() {
        return kinds;
    }
    let capacity = |cpu| Some((cpu, root.value::<u64>(&format!("{CPU}/cpu{cpu}/cpu_capacity"))?));
    let capacities: Vec<(usize, u64)> = online.iter().filter_map(capacity).collect();
    let most = capacities.iter().map(|&(_, capacity)| capacity).max().unwrap_or(0);
    // Cores of one design differ by a few per cent (favoured cores); small cores by far more.
    let is_small = |capacity: u64| capacity < most / 4 * 3;
    if !capacities.iter().any(|&(_, capacity)| is_small(capacity)) {
        return BTreeMap::new();
    }
    let kind = |small| if small { CoreKind::Efficiency } else { CoreKind::Performance };
    capacities.into_iter().map(|(cpu, capacity)| (cpu, kind(is_small(capacity)))).collect()
}

fn packages(cores: &[Core]) -> Vec<Package> {
    let mut packages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for core in cores {
        if let Some(id) = core.package {
            packages.entry(id).or_default().extend(core.cpus.iter());
        }
    }
    let package =
        |(id, cpus): (usize, Vec<usize>)| Package { id, cpus: cpus.into_iter().collect() };
    packages.into_iter().map(package).collect()
}
