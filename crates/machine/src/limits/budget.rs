//! How much time and memory a measurement may take, and how far it is.

use std::time::Duration;

use crate::machine::Machine;

/// How much time and memory a measurement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Time that the phases share.
    time: Duration,
    /// Memory touched at a time.
    memory_bytes: usize,
    /// Whether fewer sizes will do.
    is_quick: bool,
}

/// More would show nothing new: every cache and every TLB is exhausted long before.
const FOOTPRINT_MAX_BYTES: usize = 4 << 30;
/// So much even of a machine that has next to nothing.
const FOOTPRINT_MIN_BYTES: usize = 1 << 20;
/// Most processors' caches end before this, and those that do not are fitted on fewer points.
const KNEES_MAX_BYTES: usize = 64 << 20;

impl Budget {
    /// About 29 seconds, and a quarter of the memory that may be used now (at most 4 GiB).
    #[must_use]
    pub fn full(machine: &Machine) -> Self {
        let memory_bytes = quarter(machine).min(FOOTPRINT_MAX_BYTES);
        Self { time: Duration::from_secs(29), memory_bytes, is_quick: false }
    }

    /// A rough look: about 3 seconds, at most 128 MiB.
    #[must_use]
    pub fn quick(machine: &Machine) -> Self {
        let memory_bytes = quarter(machine).min(128 << 20);
        Self { time: Duration::from_secs(3), memory_bytes, is_quick: true }
    }

    /// The most memory that is touched at a time.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The time aimed at.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    pub(super) fn is_quick(&self) -> bool {
        self.is_quick
    }

    pub(super) fn percent(&self, percent: u32) -> Duration {
        self.time * percent / 100
    }

    /// Footprints for latency up to `bytes`: eight in an octave, or four, for a curve that shows
    /// knees; two where there is only memory.
    pub(super) fn fine_sizes(&self, bytes: usize) -> Vec<usize> {
        let step = if self.is_quick { 2 } else { 1 };
        let is_kept = |eighths: usize, octave: usize| {
            eighths.is_multiple_of(if octave >= KNEES_MAX_BYTES { 4 } else { step })
        };
        octaves(bytes)
            .flat_map(|octave| (8..16).map(move |eighths| (eighths, octave)))
            .filter(|&(eighths, octave)| is_kept(eighths, octave))
            .map(|(eighths, octave)| octave / 8 * eighths)
            .take_while(|&size| size <= bytes)
            .collect()
    }

    /// Footprints up to `bytes` an octave apart, or two.
    pub(super) fn coarse_sizes(&self, bytes: usize) -> Vec<usize> {
        octaves(bytes).step_by(if self.is_quick { 2 } else { 1 }).collect()
    }
}

/// A quarter of what may be used, down to a power of two, as the sizes are.
fn quarter(machine: &Machine) -> usize {
    let quarter = machine.memory.allowed_bytes.unwrap_or(u64::MAX) / 4;
    let bytes = usize::try_from(quarter).unwrap_or(usize::MAX).max(FOOTPRINT_MIN_BYTES);
    1 << bytes.ilog2()
}

/// Footprints from 16 KiB to `bytes`, an octave apart.
fn octaves(bytes: usize) -> impl Iterator<Item = usize> {
    (14..usize::BITS).map(|log2| 1 << log2).take_while(move |&size| size <= bytes)
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// The present measurement.
    pub step: &'a str,
    /// From 0 to 1.
    pub done: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_memory(allowed_bytes: Option<u64>) -> Machine {
        let mut machine = Machine::here();
        machine.memory.allowed_bytes = allowed_bytes;
        machine
    }

    #[test]
    fn no_more_than_a_quarter_of_the_memory() {
        let full = |allowed| Budget::full(&with_memory(Some(allowed))).memory_bytes();
        assert_eq!(full(23 << 30), 4 << 30);
        assert_eq!(full(9 << 30), 2 << 30);
        assert_eq!(full(1 << 30), 256 << 20);
        assert_eq!(full(0), FOOTPRINT_MIN_BYTES);
        assert_eq!(Budget::full(&with_memory(None)).memory_bytes(), FOOTPRINT_MAX_BYTES);
        assert_eq!(Budget::quick(&with_memory(Some(23 << 30))).memory_bytes(), 128 << 20);
        assert_eq!(Budget::quick(&with_memory(Some(64 << 20))).memory_bytes(), 16 << 20);
    }

    #[test]
    fn sizes_are_exact_at_every_octave() {
        let budget = Budget::full(&with_memory(None));
        let coarse = budget.coarse_sizes(4 << 30);
        assert_eq!(coarse.len(), 19);
        assert!(coarse.iter().all(|size| size.is_power_of_two()));
        let fine = budget.fine_sizes(64 << 20);
        assert_eq!((fine.len(), fine[0], fine[96]), (97, 16 << 10, 64 << 20));
        assert!(fine.is_sorted());
        let finer = budget.fine_sizes(256 << 20);
        assert_eq!(finer[96..], [64 << 20, 96 << 20, 128 << 20, 192 << 20, 256 << 20]);
    }
}
