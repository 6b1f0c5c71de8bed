//! The caches that `--strategy auto` goes by: measured if they are, else as the system says.

use workahead_columns::{Caches, CachesSource};
use workahead_machine::Machine;

/// The caches of this machine.
pub(crate) fn here() -> Caches {
    reported(&Machine::here()).unwrap_or(Caches::ASSUMED)
}

fn reported(machine: &Machine) -> Option<Caches> {
    let data = || machine.caches.iter().filter(|cache| cache.holds_data());
    let l2 = data().filter(|cache| cache.level == 2).map(|cache| cache.bytes).min()?;
    let last = data().map(|cache| cache.level).max()?;
    let llc = data().filter(|cache| cache.level == last).map(|cache| cache.bytes).min()?;
    Some(Caches { l2_bytes: l2 as usize, llc_bytes: llc as usize, source: CachesSource::Reported })
}
