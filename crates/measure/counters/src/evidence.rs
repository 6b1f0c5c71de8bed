//! The evidence tier of figures counted here, by trial rather than by the system's word. Containers
//! forbid what the system allows, other programs hold counters, and virtual machines show event
//! sources that count nothing.

use workahead_machine::evidence_tier::CounterState;
use workahead_machine::{EvidenceTier, Machine};

use crate::event::Privilege;
use crate::live::Live;
use crate::source::{Source, Target};
use crate::table::Table;

/// An evidence tier and the reason it is not a better one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The tier.
    pub tier: EvidenceTier,
    /// Why it is not a better one.
    pub reason: String,
}

impl Evidence {
    /// As the system publishes it, without a trial.
    #[must_use]
    pub fn published(machine: &Machine) -> Self {
        Self { tier: machine.counters.tier, reason: machine.counters.reason.clone() }
    }

    /// By opening counters on this process.
    #[must_use]
    pub fn by_trial(machine: &Machine) -> Self {
        let published = Self::published(machine);
        if machine.counters.state != CounterState::Present {
            return published;
        }
        let Some(table) = Table::here() else {
            let reason = "the processor has counters, and no table of events knows it: see \
                          `workahead counters list --table all`";
            return Self { tier: EvidenceTier::C, reason: reason.to_owned() };
        };
        let own = Target::Process(std::process::id());
        match Live.open(&table.always(), Privilege::User, &own) {
            Ok(_) => published,
            Err(error) => Self {
                tier: EvidenceTier::C,
                reason: format!(
                    "the processor has counters, and opening them was refused: {error}"
                ),
            },
        }
    }
}
