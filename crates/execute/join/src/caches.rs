//! Cache sizes, for sizing batches and choosing the table layout.

use workahead_machine::Machine;
use workahead_machine::limits::Limits;

use crate::display::Bytes;

/// Cache sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caches {
    /// Second level, of one core.
    pub l2_bytes: usize,
    /// CPUs that share it and work on the join: siblings of a core, or the cores of a cluster.
    pub l2_sharers: usize,
    /// Last level, as far as it is useful to one process.
    pub llc_bytes: usize,
    /// Source of the sizes.
    pub source: CachesSource,
}

/// Source of cache sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachesSource {
    /// The machine's latency curve.
    Measured,
    /// The operating system.
    Reported,
    /// Defaults.
    Assumed,
}

impl CachesSource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Reported => "reported",
            Self::Assumed => "assumed",
        }
    }
}

impl Caches {
    /// Small server caches, for machines that report none.
    pub const ASSUMED: Self = Self {
        l2_bytes: 1 << 20,
        l2_sharers: 1,
        llc_bytes: 32 << 20,
        source: CachesSource::Assumed,
    };

    /// The caches of a machine: measured if `limits` has them, else reported, else assumed.
    #[must_use]
    pub fn of(machine: &Machine, limits: Option<&Limits>) -> Self {
        let measured = limits.and_then(|limits| Self::measured(machine, limits));
        measured.or_else(|| Self::reported(machine)).unwrap_or(Self::ASSUMED)
    }

    /// Describes in which cache a table of a given size fits.
    #[must_use]
    pub fn describe_fit(&self, table_bytes: usize) -> String {
        let (l2, llc) = (Bytes(self.l2_bytes), Bytes(self.llc_bytes));
        let from = self.source.name();
        if table_bytes <= self.l2_bytes {
            format!("fits in L2 ({l2} {from})")
        } else if table_bytes <= self.llc_bytes {
            format!("exceeds L2 ({l2} {from}), fits in the last-level cache")
        } else {
            format!("exceeds the last-level cache ({llc} {from})")
        }
    }

    fn measured(machine: &Machine, limits: &Limits) -> Option<Self> {
        Some(Self {
            l2_bytes: limits.l2_bytes()?,
            l2_sharers: Self::sharers(machine),
            llc_bytes: limits.useful_llc_bytes()?,
            source: CachesSource::Measured,
        })
    }

    /// The sizes reported by the operating system for the CPUs this process may run on, if any.
    #[must_use]
    pub fn reported(machine: &Machine) -> Option<Self> {
        let data = || machine.caches.iter().filter(|cache| cache.holds_data());
        let l2 = || data().filter(|cache| cache.level == 2);
        let last = data().map(|cache| cache.level).max()?;
        let llc = data().filter(|cache| cache.level == last).map(|cache| cache.bytes).min()?;
        let l2_bytes = l2().map(|cache| cache.bytes).min()? as usize;
        let l2_sharers = Self::sharers(machine);
        let source = CachesSource::Reported;
        Some(Self { l2_bytes, l2_sharers, llc_bytes: llc as usize, source })
    }

    /// The most CPUs, of those this process may run on, that share a second-level cache.
    #[must_use]
    pub fn sharers(machine: &Machine) -> usize {
        let allowed = machine.allowed_cpus();
        let l2 = machine.caches.iter().filter(|cache| cache.holds_data() && cache.level == 2);
        l2.map(|cache| cache.cpus.intersection(allowed).len()).max().unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_fit_is_described_with_the_compared_sizes() {
        let caches = Caches { source: CachesSource::Measured, ..Caches::ASSUMED };
        for (bytes, place) in [
            (500 << 10, "fits in L2 (1.0 MiB measured)"),
            (20 << 20, "exceeds L2 (1.0 MiB measured), fits in the last-level cache"),
            (4 << 30, "exceeds the last-level cache (32 MiB measured)"),
        ] {
            assert_eq!(caches.describe_fit(bytes), place);
        }
    }
}
