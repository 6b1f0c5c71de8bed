//! The description of this computer, read once.
//!
//! ```text
//! /proc, /sys below a root ─► topology, caches, memory, huge pages, control groups,
//!                             virtualisation, event sources              ─► Machine
//! the processor itself     ─► translation buffers, name of the hypervisor ─┘  (live root only)
//! ```

use serde::{Deserialize, Serialize};

use crate::caches::{self, Cache};
use crate::cgroup;
use crate::cpus::CpuSet;
use crate::error::Error;
use crate::evidence_tier::Counters;
use crate::memory::{HugePages, Memory};
use crate::pin;
use crate::sysroot::{Sysroot, field};
use crate::tlb::Tlb;
use crate::topology::{self, Core, CoreKind, Node, Package, Smt};
use crate::virtualisation::Virtualisation;

/// A computer, as far as it tells.
///
/// ```
/// use workahead_machine::Machine;
/// let machine = Machine::here();
/// assert!(!machine.allowed_cpus().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: Option<String>,
    /// Instruction set: `x86_64`, `aarch64`… or `unknown`.
    pub architecture: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Real hardware or not.
    pub virtualisation: Virtualisation,
    /// Which logical CPUs there are, and which this process may use.
    pub cpus: Cpus,
    /// Simultaneous multi-threading.
    pub smt: Smt,
    /// The packages in the sockets; empty when unknown.
    pub packages: Vec<Package>,
    /// NUMA nodes; empty when unknown.
    pub nodes: Vec<Node>,
    /// Cores of the online CPUs, with their siblings.
    pub cores: Vec<Core>,
    /// Caches as the system describes them; empty when unknown.
    pub caches: Vec<Cache>,
    /// Memory.
    pub memory: Memory,
    /// Large pages.
    pub huge_pages: HugePages,
    /// Translation buffers.
    pub tlb: Tlb,
    /// Hardware counters and the evidence tier.
    pub counters: Counters,
}

/// Sets of logical CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cpus {
    /// In the machine.
    pub present: CpuSet,
    /// Switched on.
    pub online: CpuSet,
    /// This process may run there: online, and left by affinity and control groups.
    pub allowed: CpuSet,
    /// CPU seconds per second that the control groups grant, if they limit it.
    pub quota: Option<f64>,
}

impl Machine {
    /// The machine this process runs on. Read it before pinning: a thread's pin narrows what it
    /// is allowed.
    #[must_use]
    pub fn here() -> Self {
        Self::read(&Sysroot::live())
    }

    /// The machine described below a root.
    #[must_use]
    pub fn read(root: &Sysroot) -> Self {
        let limits = cgroup::limits(root);
        let cpus = read_cpus(root, &limits);
        let topology = topology::read(root, &cpus.online);
        let virtualisation = Virtualisation::read(root);
        Self {
            processor: processor(root),
            architecture: architecture(root),
            kernel: root.text("proc/sys/kernel/osrelease"),
            smt: topology.smt,
            packages: topology.packages,
            nodes: topology.nodes,
            cores: topology.cores,
            caches: caches::read(root, &cpus.online),
            memory: Memory::read(root, &limits),
            huge_pages: HugePages::read(root),
            tlb: Tlb::read(root),
            counters: Counters::read(root, &virtualisation),
            virtualisation,
            cpus,
        }
    }

    /// The CPUs this process may use.
    #[must_use]
    pub fn allowed_cpus(&self) -> &CpuSet {
        &self.cpus.allowed
    }

    /// CPUs for a number of threads, best first: one per core, strong cores before small ones,
    /// node by node; only then second siblings.
    ///
    /// # Errors
    /// When there are fewer allowed CPUs than threads.
    pub fn cpus_for(&self, threads: usize) -> Result<Vec<usize>, Error> {
        let mut order: Vec<_> = self.cpus.allowed.iter().map(|cpu| (self.rank(cpu), cpu)).collect();
        if threads > order.len() {
            return Err(Error::TooManyThreads { threads, allowed: self.cpus.allowed.clone() });
        }
        order.sort_unstable();
        Ok(order.into_iter().take(threads).map(|(_, cpu)| cpu).collect())
    }

    /// How many siblings of the core come before this CPU, whether the core is small, its node.
    fn rank(&self, cpu: usize) -> (usize, bool, usize) {
        let Some(core) = self.core_of(cpu) else { return (0, false, 0) };
        let usable = core.cpus.intersection(&self.cpus.allowed);
        let before = usable.iter().take_while(|&sibling| sibling != cpu).count();
        (before, core.kind == CoreKind::Efficiency, core.node.unwrap_or(0))
    }

    /// The core a CPU belongs to.
    #[must_use]
    pub fn core_of(&self, cpu: usize) -> Option<&Core> {
        self.cores.iter().find(|core| core.cpus.contains(cpu))
    }

    /// Two allowed CPUs that the system says share a core.
    #[must_use]
    pub fn sibling_pair(&self) -> Option<(usize, usize)> {
        self.cores.iter().find_map(|core| {
            let usable = core.cpus.intersection(&self.cpus.allowed);
            let mut cpus = usable.iter();
            Some((cpus.next()?, cpus.next()?))
        })
    }

    /// Bytes of the data cache of a level that the first allowed CPU uses, as the system says.
    #[must_use]
    pub fn cache_bytes(&self, level: u32) -> Option<u64> {
        let cpu = self.cpus.allowed.first()?;
        let mut caches = self.caches.iter();
        let found = caches
            .find(|cache| cache.level == level && cache.holds_data() && cache.cpus.contains(cpu))?;
        Some(found.bytes)
    }

    /// A short name for a machine, for saved figures: the same for the same hardware, CPUs, memory
    /// and page settings, whatever runs on it now.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        const GIB: u64 = 1 << 30;
        let whole_gib = |bytes: Option<u64>| bytes.map(|bytes| bytes.div_ceil(GIB));
        let memory = (
            whole_gib(self.memory.total_bytes),
            whole_gib(self.memory.cgroup_limit_bytes),
            self.huge_pages.transparent,
        );
        let text = format!(
            "{:?} {} {:?} {:?} {:?} {:?} {memory:?}",
            self.processor,
            self.architecture,
            self.virtualisation,
            self.cpus,
            self.cores,
            self.caches,
        );
        format!("{:016x}", fnv_1a(text.as_bytes()))
    }
}

/// The hash of Fowler, Noll and Vo: stable over versions of this program and of its compiler.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn read_cpus(root: &Sysroot, limits: &cgroup::Limits) -> Cpus {
    let (mut present, mut online) = topology::present_and_online(root);
    let status = root.text("proc/self/status").unwrap_or_default();
    let listed = field(&status, "Cpus_allowed_list").and_then(|list| list.parse().ok());
    let own = root.is_live().then(pin::affinity).and_then(Result::ok);
    let affinity = own.or(listed);
    // Where `/sys` and `/proc/cpuinfo` are both hidden, only our allowance is known.
    if online.is_empty() {
        online = affinity.clone().unwrap_or_default();
        present = online.clone();
    }
    let mut allowed = online.clone();
    for limit in [&affinity, &limits.cpus].into_iter().flatten() {
        // A limit that leaves nothing was read from another world (a container's own numbers).
        let left = allowed.intersection(limit);
        if !left.is_empty() {
            allowed = left;
        }
    }
    Cpus { present, online, allowed, quota: limits.cpu_quota }
}

/// `model name` on x86; ARM gives numbers, and a device tree may name the board.
fn processor(root: &Sysroot) -> Option<String> {
    let cpuinfo = root.text("proc/cpuinfo")?;
    if let Some(name) = field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "cpu model")) {
        return Some(name.to_owned());
    }
    if let Some(board) = root.text("proc/device-tree/model") {
        return Some(board);
    }
    let implementer = field(&cpuinfo, "CPU implementer")?;
    let part = field(&cpuinfo, "CPU part")?;
    Some(format!("ARM implementer {implementer}, part {part}"))
}

fn architecture(root: &Sysroot) -> String {
    if root.is_live() {
        return std::env::consts::ARCH.to_owned();
    }
    if let Some(reported) = root.text("proc/sys/kernel/arch") {
        return reported;
    }
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let guess = if field(&cpuinfo, "CPU implementer").is_some() {
        "aarch64"
    } else if field(&cpuinfo, "vendor_id").is_some() {
        "x86_64"
    } else {
        "unknown"
    };
    guess.to_owned()
}
