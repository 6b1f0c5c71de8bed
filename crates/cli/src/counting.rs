//! Whether hardware events are counted here: not as the system publishes it, but tried. Containers
//! forbid what the system allows, other programs hold counters, and virtual machines show event
//! sources that count nothing.

use workahead_counters::event::Privilege;
use workahead_counters::live::Live;
use workahead_counters::source::{Source, Target};
use workahead_counters::table::Table;
use workahead_machine::evidence_tier::CounterState;
use workahead_machine::{EvidenceTier, Machine};

/// What trying showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tried {
    pub(crate) tier: EvidenceTier,
    pub(crate) reason: String,
}

impl Tried {
    /// What the system publishes, untried.
    pub(crate) fn not(machine: &Machine) -> Self {
        Self { tier: machine.counters.tier, reason: machine.counters.reason.clone() }
    }
}

/// The tier of figures that are counted here, and why it is not a better one.
pub(crate) fn tried(machine: &Machine) -> Tried {
    let as_published = Tried::not(machine);
    if machine.counters.state != CounterState::Present {
        return as_published;
    }
    let Some(table) = Table::here() else {
        let reason = "the processor has counters, and no table of events knows it: see \
                      `workahead counters list --table all`";
        return Tried { tier: EvidenceTier::C, reason: reason.to_owned() };
    };
    let own = Target::Process(std::process::id());
    match Live.open(&table.always(), Privilege::User, &own) {
        Ok(_) => as_published,
        Err(error) => Tried {
            tier: EvidenceTier::C,
            reason: format!("the processor has counters, and opening them was refused: {error}"),
        },
    }
}
