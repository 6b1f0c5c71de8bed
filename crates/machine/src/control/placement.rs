//! Where threads go: which logical CPUs a program may use, and in which order they fill up.
//!
//! The four policies that Chang (2013) lists and wished to be offered:
//!
//! ```text
//! two nodes of two cores of two siblings     node 0: 0,4 1,5    node 1: 2,6 3,7
//!   cores-first        0 1 2 3 4 5 6 7       no core twice before every core once
//!   siblings-first     0 4 1 5 2 6 3 7       a core full before the next one
//!   one-llc-first      0 1 4 5 2 3 6 7       a last-level cache full before the next one
//!   spread-over-nodes  0 2 1 3 4 6 5 7       node by node in turn
//! ```
//!
//! A policy that gives the same order as another on this machine is not another measurement, so it
//! is refused in words.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Unsupported;
use crate::cpus::CpuSet;
use crate::machine::Machine;
use crate::topology::CoreKind;

/// A policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// One thread per core first.
    CoresFirst,
    /// Both siblings of a core first.
    SiblingsFirst,
    /// One last-level cache first, in it one thread per core first.
    OneLlcFirst,
    /// In turn over the nodes, in each one thread per core first.
    SpreadOverNodes,
}

impl Placement {
    /// All of them.
    pub const ALL: [Placement; 4] = [
        Placement::CoresFirst,
        Placement::SiblingsFirst,
        Placement::OneLlcFirst,
        Placement::SpreadOverNodes,
    ];

    /// As studies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Placement::CoresFirst => "cores-first",
            Placement::SiblingsFirst => "siblings-first",
            Placement::OneLlcFirst => "one-llc-first",
            Placement::SpreadOverNodes => "spread-over-nodes",
        }
    }

    /// The allowed CPUs in the order in which they fill up.
    ///
    /// # Errors
    /// In words, when this machine has not what the policy is about.
    pub fn order(self, machine: &Machine) -> Result<Vec<usize>, Unsupported> {
        let seats: Vec<Seat> = seats(machine);
        let several =
            |what: fn(&Seat) -> usize| seats.iter().map(what).collect::<BTreeSet<_>>().len() > 1;
        let lacks = match self {
            Placement::CoresFirst => None,
            Placement::SiblingsFirst if !several(|seat| seat.sibling) => {
                Some("no two allowed CPUs are seen to share a core")
            }
            Placement::OneLlcFirst if !several(|seat| seat.llc) => {
                Some("all allowed CPUs share one last-level cache, or none is known")
            }
            Placement::SpreadOverNodes if !several(|seat| seat.node) => {
                Some("all allowed CPUs are in one node")
            }
            _ => None,
        };
        if let Some(lacks) = lacks {
            let name = self.name();
            return Err(Unsupported(format!(
                "placement {name} is the same as cores-first: {lacks}"
            )));
        }
        let mut seats = seats;
        seats.sort_by_key(|seat| self.key(seat));
        Ok(seats.into_iter().map(|seat| seat.cpu).collect())
    }

    /// The CPUs for a number of threads.
    ///
    /// # Errors
    /// As [`order`](Self::order), and when there are fewer CPUs.
    pub fn cpus(self, machine: &Machine, threads: usize) -> Result<CpuSet, Unsupported> {
        let order = self.order(machine)?;
        if threads == 0 || threads > order.len() {
            return Err(Unsupported(format!(
                "{threads} CPUs requested, only {} allowed ({})",
                order.len(),
                machine.allowed_cpus()
            )));
        }
        Ok(order.into_iter().take(threads).collect())
    }

    fn key(self, seat: &Seat) -> [usize; 5] {
        let Seat { cpu, core, in_node, sibling, small, node, llc } = *seat;
        let small = usize::from(small);
        match self {
            Placement::CoresFirst => [sibling, small, node, core, cpu],
            Placement::SiblingsFirst => [small, node, core, sibling, cpu],
            Placement::OneLlcFirst => [llc, sibling, small, core, cpu],
            Placement::SpreadOverNodes => [sibling, small, in_node, node, cpu],
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Placement {
    type Err = Unsupported;

    fn from_str(text: &str) -> Result<Placement, Unsupported> {
        Placement::ALL.into_iter().find(|placement| placement.name() == text).ok_or_else(|| {
            let names = Placement::ALL.map(Placement::name).join(", ");
            Unsupported(format!("unknown placement `{text}`: write one of {names}"))
        })
    }
}

/// Where a logical CPU is.
#[derive(Debug, Clone, Copy)]
struct Seat {
    cpu: usize,
    /// Which core.
    core: usize,
    /// How many cores of its node come before it.
    in_node: usize,
    /// How many siblings of its core come before it.
    sibling: usize,
    small: bool,
    node: usize,
    /// Which last-level cache.
    llc: usize,
}

fn seats(machine: &Machine) -> Vec<Seat> {
    let allowed = machine.allowed_cpus();
    let caches = last_level_caches(machine);
    let mut seats: Vec<Seat> = Vec::new();
    for (core, described) in machine.cores.iter().enumerate() {
        let node = described.node.or(described.package).unwrap_or(0);
        let before: BTreeSet<usize> =
            seats.iter().filter(|seat| seat.node == node).map(|seat| seat.core).collect();
        let usable = described.cpus.intersection(allowed);
        seats.extend(usable.iter().enumerate().map(|(sibling, cpu)| Seat {
            cpu,
            core,
            in_node: before.len(),
            sibling,
            small: described.kind == CoreKind::Efficiency,
            node,
            llc: caches.iter().position(|cpus| cpus.contains(cpu)).unwrap_or(0),
        }));
    }
    // Where the system does not say which CPUs share a core, each is one.
    let unknown = allowed.iter().filter(|&cpu| machine.core_of(cpu).is_none());
    let alone =
        |cpu| Seat { cpu, core: cpu, in_node: cpu, sibling: 0, small: false, node: 0, llc: 0 };
    seats.extend(unknown.map(alone));
    seats
}

fn last_level_caches(machine: &Machine) -> Vec<CpuSet> {
    let data = machine.caches.iter().filter(|cache| cache.holds_data());
    let last = data.clone().map(|cache| cache.level).max().unwrap_or(0);
    let mut found: Vec<CpuSet> =
        data.filter(|cache| cache.level == last).map(|cache| cache.cpus.clone()).collect();
    found.sort();
    found
}
