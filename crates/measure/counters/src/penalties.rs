//! The cost of a miss on this machine, and the CPI that it adds up to if nothing overlaps.
//!
//! ```text
//!   latency of dependent loads over footprints (measured limits, in ns)
//!     L1 ─► L2 ─► last level ─► memory        a miss is charged the step to the next level
//!     small pages over huge ones              a walk of the page table is charged the difference
//!   × GHz while running (from the counts)  =  penalties in cycles
//! ```
//!
//! Keeton et al. (1998, section 5.3) took hit times from the manual and the L2's penalty from
//! counters; here the same box is measured, while its siblings are idle: with a busy sibling a miss
//! waits longer, and nothing measures by how much. No penalty of a mispredicted branch is measured:
//! theirs is quoted.

use workahead_machine::limits::Limits;
use workahead_machine::pages::Pages;

use crate::cycles::{Component, NonOverlappedSum, Origin, Penalty, StallCause, Value, missing};
use crate::event::Privilege;
use crate::metrics::Metrics;

/// Nanoseconds that a miss of each level costs beyond a hit there, siblings idle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    /// From the first level to the second.
    pub l1_ns: f64,
    /// From the second level to the last.
    pub l2_ns: f64,
    /// From the last level to memory.
    pub l3_ns: f64,
    /// A walk of the page table; none where only one size of pages was measured.
    pub walk_ns: Option<f64>,
}

/// Cycles of a mispredicted branch (Keeton et al. 1998, Table 5: 15 on average).
const BRANCH_CYCLES: f64 = 15.0;

/// A footprint that every first-level cache holds.
const L1_BYTES: usize = 16 << 10;

/// A footprint of this many times the last level is nearly all misses.
const BEYOND: usize = 8;

impl Penalties {
    /// Out of measured limits; `None` where a level's size or latency is unknown.
    #[must_use]
    pub fn of(limits: &Limits) -> Option<Self> {
        let (l2_bytes, llc_bytes) = (limits.l2_bytes()?, limits.useful_llc_bytes()?);
        let l1_ns = limits.latency_ns(L1_BYTES)?;
        let l2_ns = limits.latency_ns(l2_bytes / 2)?;
        let llc_ns = limits.latency_ns((l2_bytes.saturating_mul(2)).max(llc_bytes / 2))?;
        let beyond = llc_bytes.saturating_mul(BEYOND);
        let memory_ns = limits.latency_ns(beyond)?;
        let step = |from: f64, to: f64| (to - from).max(0.0);
        Some(Self {
            l1_ns: step(l1_ns, l2_ns),
            l2_ns: step(l2_ns, llc_ns),
            l3_ns: step(llc_ns, memory_ns),
            walk_ns: walk_ns(limits, beyond),
        })
    }

    /// The bar of Keeton's figure 8 for a run at a given number of cycles per nanosecond.
    #[must_use]
    pub fn non_overlapped(
        &self,
        metrics: &Metrics,
        privilege: Privilege,
        ghz: f64,
    ) -> NonOverlappedSum {
        let value = |name: &str| -> Value {
            let valued = metrics.get(name, privilege, None);
            let valued = valued.or_else(|| metrics.get(name, Privilege::Both, None));
            match valued.map(|valued| (valued.value, valued.why.as_deref())) {
                Some((Some(value), _)) => Ok(value),
                Some((None, why)) => Err(missing(name, why.unwrap_or("it was not counted"))),
                None => Err(missing(name, "it was not requested")),
            }
        };
        let of_misses = |called: &str, name: &str, penalty_ns: f64| {
            let per_instruction = value(name).map(|mpki| mpki / 1000.0);
            Component::of_events(called, &per_instruction, penalty_ns * ghz, chase())
        };
        let mut components = vec![
            Component::of_cycles("computation", &value("computation_cpi")),
            Component::of_cycles("resource stalls", &value("resource_stall_cpi")),
            of_misses("L1 instruction misses", "l1i_mpki", self.l1_ns),
            of_misses("L1 data misses", "l1d_mpki", self.l1_ns),
            of_misses("L2 misses", "l2_mpki", self.l2_ns),
            of_misses("last-level misses", "l3_mpki", self.l3_ns),
        ];
        if let Some(walk_ns) = self.walk_ns {
            components.push(of_misses("ITLB misses", "itlb_mpki", walk_ns));
            components.push(of_misses("DTLB misses", "dtlb_mpki", walk_ns));
        }
        let mispredicted = value("branch_mpki").map(|mpki| mpki / 1000.0);
        let branches =
            Component::of_events("mispredicted branches", &mispredicted, BRANCH_CYCLES, quoted());
        components.push(branches);
        NonOverlappedSum { components }
    }

    /// Penalties of the stall components of a logical CPU, in cycles at `ghz` cycles a nanosecond
    /// (Hassanein et al. 2008, section 4.6). A miss of several levels is charged by each of them,
    /// so that the steps make its whole way. Walks are left out where none was measured.
    #[must_use]
    pub fn of_stalls(&self, ghz: f64) -> Vec<Penalty> {
        let measured = |cause, ns: f64| Penalty { cause, cycles: ns * ghz, origin: chase() };
        let mut penalties = vec![
            measured(StallCause::L3, self.l3_ns),
            measured(StallCause::L2, self.l2_ns),
            measured(StallCause::L1d, self.l1_ns),
            measured(StallCause::Fetch, self.l1_ns),
        ];
        if let Some(walk_ns) = self.walk_ns {
            penalties.push(measured(StallCause::Dtlb, walk_ns));
            penalties.push(measured(StallCause::Itlb, walk_ns));
        }
        let (cause, cycles) = (StallCause::Branch, BRANCH_CYCLES);
        penalties.push(Penalty { cause, cycles, origin: quoted() });
        penalties
    }
}

fn chase() -> Origin {
    Origin::Measured("loads that wait for each other, siblings idle".to_owned())
}

fn quoted() -> Origin {
    Origin::Quoted("Keeton et al. 1998, Table 5".to_owned())
}

/// Extra latency of small pages for a load far beyond the caches.
fn walk_ns(limits: &Limits, bytes: usize) -> Option<f64> {
    let nearest = |pages: Pages| {
        let points = limits.latency.iter().filter(|point| point.pages == pages);
        points.min_by_key(|point| point.bytes.abs_diff(bytes)).map(|point| (point.bytes, point.ns))
    };
    let ((small_bytes, small_ns), (huge_bytes, huge_ns)) =
        (nearest(Pages::Small)?, nearest(Pages::Huge)?);
    (small_bytes == huge_bytes).then(|| (small_ns - huge_ns).max(0.0))
}

#[cfg(test)]
mod tests;
