//! The limits at a size: between two measured sizes, the straight line in the logarithms of both.
//!
//! Below the smallest size its figure holds: it is in the first cache already. Above the largest
//! the figure of the largest is still a limit: no larger footprint is faster.

use super::{Limits, LinesPoint, Pages};

impl Limits {
    /// Independent random cache lines per second over a footprint, all threads together: the best
    /// of the three methods. For a number of threads between two that were measured, the line
    /// between them; `None` for more threads than were measured.
    ///
    /// Where the machine gives no huge pages, those who ask for them get 4 KiB pages, and so do
    /// their figures.
    #[must_use]
    pub fn lines_per_s(&self, bytes: usize, threads: usize, pages: Pages) -> Option<f64> {
        let pages = self.pages_given(pages);
        let mut counts: Vec<usize> = self.lines_on(pages).map(|point| point.threads).collect();
        counts.sort_unstable();
        counts.dedup();
        let at = |threads: usize| {
            let points = self.lines_on(pages).filter(move |point| point.threads == threads);
            interpolated(points.map(|point| (point.bytes, point.best_per_s())), bytes)
        };
        let above = counts.iter().copied().find(|&count| count >= threads.max(1))?;
        if above == threads {
            return at(above);
        }
        let below = counts.iter().copied().rfind(|&count| count < threads)?;
        let share = (threads - below) as f64 / (above - below) as f64;
        let (low, high) = (at(below)?, at(above)?);
        Some(low + (high - low) * share)
    }

    /// Nanoseconds of a load that waits for the one before it, over a footprint, on huge pages
    /// where the machine gives them.
    #[must_use]
    pub fn latency_ns(&self, bytes: usize) -> Option<f64> {
        let pages = self.pages_given(Pages::Huge);
        let points = self.latency.iter().filter(|point| point.pages == pages);
        interpolated(points.map(|point| (point.bytes, point.ns)), bytes)
    }

    /// The measured size of the second-level cache.
    #[must_use]
    pub fn l2_bytes(&self) -> Option<usize> {
        self.cache_sizes.l2_bytes
    }

    /// The measured size of the last-level cache that is really ours: in a virtual machine it is
    /// shared with others, and the size that the system reports is theirs too.
    #[must_use]
    pub fn useful_llc_bytes(&self) -> Option<usize> {
        self.cache_sizes.useful_llc_bytes
    }

    /// Nanoseconds of the processor's pause instruction.
    #[must_use]
    pub fn pause_ns(&self) -> f64 {
        self.pause_ns
    }

    /// The pages that a buffer gets when it asks for `pages`.
    fn pages_given(&self, pages: Pages) -> Pages {
        let measured = |pages| self.lines.iter().any(|point| point.pages == pages);
        match pages {
            Pages::Huge if !measured(Pages::Huge) => Pages::Small,
            other => other,
        }
    }

    fn lines_on(&self, pages: Pages) -> impl Iterator<Item = &LinesPoint> {
        self.lines.iter().filter(move |point| point.pages == pages)
    }
}

/// The value at a size, from points in any order.
fn interpolated(points: impl Iterator<Item = (usize, f64)>, bytes: usize) -> Option<f64> {
    let mut points: Vec<(usize, f64)> = points.collect();
    points.sort_by_key(|&(size, _)| size);
    let after = points.partition_point(|&(size, _)| size < bytes);
    let (Some(&(right, high)), Some(&(left, low))) =
        (points.get(after), points.get(after.wrapping_sub(1)))
    else {
        return points.get(after).or(points.last()).map(|&(_, value)| value);
    };
    let share = (bytes as f64 / left as f64).ln() / (right as f64 / left as f64).ln();
    Some(low * (high / low).powf(share))
}

#[cfg(test)]
mod tests;
