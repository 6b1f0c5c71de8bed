//! The caches that `--strategy auto` goes by: measured if they are, else as the system says.

use workahead_columns::{Caches, CachesSource};
use workahead_machine::Machine;
use workahead_machine::limits::Limits;

/// The caches of a machine, with its limits if they were measured.
pub(crate) fn of(machine: &Machine, limits: Option<&Limits>) -> Caches {
    let measured = limits.and_then(|limits| measured(machine, limits));
    measured.or_else(|| Caches::reported(machine)).unwrap_or(Caches::ASSUMED)
}

fn measured(machine: &Machine, limits: &Limits) -> Option<Caches> {
    Some(Caches {
        l2_bytes: limits.l2_bytes()?,
        l2_sharers: Caches::sharers(machine),
        llc_bytes: limits.useful_llc_bytes()?,
        source: CachesSource::Measured,
    })
}
