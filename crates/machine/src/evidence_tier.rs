//! The machine's evidence: hardware counters, and the evidence tier that follows.
//!
//! | tier | evidence |
//! |---|---|
//! | A | all counters: real hardware, and leave to watch the whole machine |
//! | B | some counters: a virtual machine's core events, or leave to watch only oneself |
//! | C | software events and time |
//! | D | instruction-level tools (cachegrind): chosen by a study, never by a machine |
//! | E | a model: chosen by a study, never by a machine |
//!
//! Only what the system publishes is read here; that a counter really counts is for the one who
//! opens it to find out. perf_event_open(2) describes `perf_event_paranoid`.

use serde::{Deserialize, Serialize};

use crate::sysroot::{Sysroot, field};
use crate::virtualisation::{VirtualKind, Virtualisation};

/// How much a figure can prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EvidenceTier {
    /// All hardware counters.
    A,
    /// Some hardware counters.
    B,
    /// Software events and time.
    C,
    /// Instruction-level tools.
    D,
    /// A model.
    E,
}

/// Hardware performance counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Whether this process can count hardware events.
    pub state: CounterState,
    /// Event sources of cores (`cpu`, `cpu_core`, `armv8_pmuv3_0`…).
    pub sources: Vec<String>,
    /// `perf_event_paranoid`; `None` when the kernel has no performance events at all.
    pub paranoid: Option<i64>,
    /// Whether the kernel's watchdog for stuck CPUs holds a counter of each
    /// (`/proc/sys/kernel/nmi_watchdog`).
    #[serde(default)]
    pub watchdog: bool,
    /// The tier of figures taken here.
    pub tier: EvidenceTier,
    /// Why the tier is not A, and what would raise it.
    pub reason: String,
}

/// Whether hardware events can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterState {
    /// There is an event source and leave to use it.
    Present,
    /// There is an event source but no leave to use it.
    Forbidden,
    /// There is no event source, on real hardware or unknown.
    NoEventSource,
    /// There is no event source because the virtual machine is given none.
    HiddenByVirtualMachine,
}

/// Bits of `CapEff` in `/proc/self/status` (linux/capability.h).
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;

impl Counters {
    pub(crate) fn read(root: &Sysroot, virtualisation: &Virtualisation) -> Self {
        let paranoid = root.value::<i64>("proc/sys/kernel/perf_event_paranoid");
        let sources = core_sources(root);
        let is_virtual = virtualisation.kind == VirtualKind::Virtual;
        let (state, tier, reason) = match (sources.is_empty(), leave(root, paranoid)) {
            (true, _) if is_virtual => (
                CounterState::HiddenByVirtualMachine,
                EvidenceTier::C,
                "the virtual machine is given no event source: run on real hardware, or on a \
                 virtual machine with a virtual PMU",
            ),
            (true, _) => (
                CounterState::NoEventSource,
                EvidenceTier::C,
                "the kernel shows no event source for this processor",
            ),
            (false, Leave::Nothing) => (
                CounterState::Forbidden,
                EvidenceTier::C,
                "perf_event_paranoid forbids it: write 1 (or 0) to \
                 /proc/sys/kernel/perf_event_paranoid, or grant CAP_PERFMON",
            ),
            (false, _) if is_virtual => (
                CounterState::Present,
                EvidenceTier::B,
                "a virtual machine has core events only: run on real hardware",
            ),
            (false, Leave::Itself) => (
                CounterState::Present,
                EvidenceTier::B,
                "only this process may be watched: write 0 to \
                 /proc/sys/kernel/perf_event_paranoid, or grant CAP_PERFMON",
            ),
            (false, Leave::Machine) => (CounterState::Present, EvidenceTier::A, "all counters"),
        };
        let watchdog = state == CounterState::Present && holds_counter(root, &sources);
        Self { state, sources, paranoid, watchdog, tier, reason: reason.to_owned() }
    }
}

/// Whether the watchdog that is on counts cycles. On Arm only where interrupts that can't be
/// held off were switched on; else CPUs watch each other, and it is "on" without a counter
/// (lib/Kconfig.debug, HARDLOCKUP_DETECTOR_BUDDY).
fn holds_counter(root: &Sysroot, sources: &[String]) -> bool {
    let is_arm = sources.iter().any(|source| source.starts_with("arm"));
    let interrupts = || {
        let words = root.text("proc/cmdline").unwrap_or_default();
        words.split_whitespace().any(|word| word == "irqchip.gicv3_pseudo_nmi=1")
    };
    let is_on = root.value::<u32>("proc/sys/kernel/nmi_watchdog").is_some_and(|on| on != 0);
    is_on && (!is_arm || interrupts())
}

/// The kernel's permission for this process to count.
enum Leave {
    Nothing,
    Itself,
    Machine,
}

fn leave(root: &Sysroot, paranoid: Option<i64>) -> Leave {
    let status = root.text("proc/self/status").unwrap_or_default();
    let capabilities = field(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let privileged = capabilities.unwrap_or(0) & (CAP_SYS_ADMIN | CAP_PERFMON) != 0;
    match paranoid {
        None => Leave::Nothing,
        Some(_) if privileged => Leave::Machine,
        Some(..=0) => Leave::Machine,
        Some(1..=2) => Leave::Itself,
        // 3 and 4 are distributions' own: nothing without privilege.
        Some(_) => Leave::Nothing,
    }
}

/// The kernel's own tools tell core sources from others the same way: by the name `cpu`, or by a
/// file `cpus` (others have `cpumask`).
fn core_sources(root: &Sysroot) -> Vec<String> {
    const SOURCES: &str = "sys/bus/event_source/devices";
    let is_core = |name: &String| name == "cpu" || root.has(&format!("{SOURCES}/{name}/cpus"));
    root.names(SOURCES).into_iter().filter(is_core).collect()
}
