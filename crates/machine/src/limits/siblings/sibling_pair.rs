//! Which two CPUs share a core, out of two witnesses.
//!
//! | the system says | the probe saw | then |
//! |---|---|---|
//! | – | two that halve each other | those, by the probe |
//! | a pair | that the pair does not touch each other | none, by the probe |
//! | a pair | nothing, or nothing clear | the pair, by the system |
//! | none | that no two touch each other | none, by the probe |
//! | none | nothing, or nothing clear | none, by the system |
//!
//! Measurements of CPUs override the reports of a virtual machine about them.

use crate::machine::Machine;

use super::{Behaviour, Siblings};

/// Two CPUs that share a core, if any do, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiblingPair {
    /// The CPUs; `None` where none are seen to share a core.
    pub cpus: Option<(usize, usize)>,
    /// Who says so.
    pub source: Source,
}

/// A witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Topology as the system tells it (sysfs).
    System,
    /// The effect of CPUs on each other when it was measured.
    Probe,
}

impl SiblingPair {
    /// By the table above; `probed` where the machine's limits have been measured.
    #[must_use]
    pub fn of(machine: &Machine, probed: Option<&Siblings>) -> Self {
        let reported = machine.sibling_pair();
        let by_system = Self { cpus: reported, source: Source::System };
        let Some(probed) = probed else { return by_system };
        if let Some(cpus) = probed.pair() {
            return Self { cpus: Some(cpus), source: Source::Probe };
        }
        let concerned = |pair: &&super::Pair| reported.is_none_or(|reported| pair.cpus == reported);
        let mut pairs = probed.pairs.iter().filter(concerned).peekable();
        let are_apart =
            pairs.peek().is_some() && pairs.all(|pair| pair.behaviour() == Behaviour::TwoCores);
        if are_apart { Self { cpus: None, source: Source::Probe } } else { by_system }
    }
}
