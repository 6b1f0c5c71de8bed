//! The caches that `--strategy auto` goes by: measured if they are, else as the system says.

use workahead_columns::{Caches, CachesSource};
use workahead_machine::Machine;
use workahead_machine::limits::Limits;

/// The caches of a machine, with its limits if they were measured.
pub(crate) fn of(machine: &Machine, limits: Option<&Limits>) -> Caches {
    limits.and_then(measured).or_else(|| reported(machine)).unwrap_or(Caches::ASSUMED)
}

fn measured(limits: &Limits) -> Option<Caches> {
    Some(Caches {
        l2_bytes: limits.l2_bytes()?,
        llc_bytes: limits.useful_llc_bytes()?,
        source: CachesSource::Measured,
    })
}

fn reported(machine: &Machine) -> Option<Caches> {
    let data = || machine.caches.iter().filter(|cache| cache.holds_data());
    let l2 = data().filter(|cache| cache.level == 2).map(|cache| cache.bytes).min()?;
    let last = data().map(|cache| cache.level).max()?;
    let llc = data().filter(|cache| cache.level == last).map(|cache| cache.bytes).min()?;
    Some(Caches { l2_bytes: l2 as usize, llc_bytes: llc as usize, source: CachesSource::Reported })
}
