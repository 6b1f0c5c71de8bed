//! The sizes of caches, out of the latency curve.
//!
//! ```text
//! latency                        ┌──────╱   memory: rises on, with the TLB's misses
//!                          3     │
//!                 ┌──────────────┘
//!          2 ┌────┘              a ladder of three steps: where they lie are the sizes of L1,
//!      ──────┘                   L2, and of the last level that is really ours
//!            L1   L2             useful LLC                                log footprint
//! ```
//!
//! Reading a knee where a fixed latency is crossed (Manegold's Calibrator, CWI, 2000) needs to know
//! how slow each level is, and on a busy machine hangs on single points. So the whole curve is
//! fitted first: for all places and shapes of the steps a least-squares fit of their heights (see
//! [`ladder`]). The fit that leaves the least error says how slow the levels are; its places are
//! rough, as they hang on the shape assumed. A cache's size is then read from the curve itself: the
//! footprint of which a quarter of the accesses miss.
//!
//! ```text
//! cyclic walk, oldest line replaced     a quarter misses just beyond the cache's size
//! random replacement, random accesses   C/S are found: at 4/3 of the size
//! ```
//!
//! L2 is a core's own, and read from the best passes: whatever else slows a pass down is not a
//! limit.
//! The last level is shared, in a virtual machine with strangers. What they usually leave is the
//! *useful* size, and that is what a table has to fit into: it is read from the median passes.

mod ladder;

use serde::{Deserialize, Serialize};

use super::latency::LatencyPoint;
use ladder::Ladder;

/// Sizes of caches as the latency curve shows them; `None` where it shows no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheSizes {
    /// The second-level cache.
    pub l2_bytes: Option<usize>,
    /// The last-level cache, as far as it is ours.
    pub useful_llc_bytes: Option<usize>,
}

/// Fewer points can't show three steps.
const POINTS_LEAST: usize = 12;
/// A step by a smaller factor than this is noise.
const STEP_LEAST: f64 = 1.2;
/// A curve up to here has left the second level for memory, if there is no third.
const MEMORY_SHOWN_BYTES: f64 = (64 << 20) as f64;

/// A footprint is as large as a cache when this share of the accesses misses it.
const MISSES: f64 = 0.25;
/// At this multiple of the size of the last level nearly all accesses go to memory, and the TLB
/// does not yet add much. (6 and 8 move the sizes of recorded curves by 6 % at most.)
const MEMORY_BEYOND: f64 = 7.0;

impl CacheSizes {
    /// The sizes that a curve shows; its points may be in any order.
    #[must_use]
    pub fn of(points: &[LatencyPoint]) -> Self {
        let best = never_falling(points, |point| point.ns);
        let usual = never_falling(points, |point| point.median_ns);
        if best.len() < POINTS_LEAST || usual.len() < POINTS_LEAST {
            return Self::default();
        }
        let Some(ladder) = Ladder::fitted(&best) else { return Self::default() };
        // Steps that the curve really shows, by rank: 0 to 2 for L1 to the last level.
        let steps: Vec<usize> = (0..3).filter(|&step| ladder.factor(step) >= STEP_LEAST).collect();
        let size = |step: usize, curve: &[(f64, f64)]| {
            let rank = steps.iter().position(|&shown| shown == step)?;
            let before = steps[..rank].last().map_or(curve[0].0, |&before| ladder.bytes[before]);
            let after = steps.get(rank + 1).map(|&after| ladder.bytes[after]);
            Some(knee(curve, before, ladder.bytes[step], after))
        };
        let (l2, llc) = (size(1, &best), size(2, &usual));
        let shows_memory = best[best.len() - 1].0 >= MEMORY_SHOWN_BYTES;
        // A curve with one step after the first level is that of a processor whose second level is
        // the last: whichever of the two places the fit gave to the step.
        let only = l2.xor(llc).filter(|_| shows_memory);
        let l2 = l2.or(only);
        // No last level is smaller than the level before it, however busy the machine is.
        Self { l2_bytes: l2, useful_llc_bytes: llc.or(only).max(l2.filter(|_| llc.is_some())) }
    }
}

/// The size of a cache whose step is roughly at a place, between those of its neighbours. How slow
/// the levels are is read half-way between two steps, or well beyond the last.
fn knee(curve: &[(f64, f64)], before: f64, place: f64, after: Option<f64>) -> usize {
    let beyond = after.map_or(place * MEMORY_BEYOND, |after| (place * after).sqrt());
    let low = latency_at(curve, (before * place).sqrt());
    let high = latency_at(curve, beyond);
    crossed(curve, low + MISSES * (high - low)).round() as usize
}

/// The latency of a footprint: the next larger one's that was measured.
fn latency_at(curve: &[(f64, f64)], bytes: f64) -> f64 {
    curve[curve.partition_point(|point| point.0 < bytes).min(curve.len() - 1)].1
}

/// Where a never falling curve reaches a latency: between two points, the straight line in the
/// logarithms of both.
fn crossed(curve: &[(f64, f64)], ns: f64) -> f64 {
    let after = curve.partition_point(|point| point.1 < ns).min(curve.len() - 1);
    let (right, high) = curve[after];
    let (left, low) = curve[after.saturating_sub(1)];
    let share = if high > low { (ns / low).ln() / (high / low).ln() } else { 1.0 };
    left * (right / left).powf(share.clamp(0.0, 1.0))
}

/// One figure of the points by size. No footprint is slower than a larger one: a point above is a
/// disturbance.
fn never_falling(points: &[LatencyPoint], ns: impl Fn(&LatencyPoint) -> f64) -> Vec<(f64, f64)> {
    let mut curve: Vec<(f64, f64)> = points
        .iter()
        .map(|point| (point.bytes as f64, ns(point)))
        .filter(|&(bytes, ns)| bytes > 0.0 && ns.is_finite() && ns > 0.0)
        .collect();
    curve.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut least = f64::INFINITY;
    for point in curve.iter_mut().rev() {
        least = least.min(point.1);
        point.1 = least;
    }
    curve
}

#[cfg(test)]
mod tests;
