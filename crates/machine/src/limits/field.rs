//! The memory that limits are measured on: lines that hold their own place.
//!
//! ```text
//! line      0               1               2
//! words  [  0 …7 words… | 8 …7 words… | 16 …         word 0 of each line = its index in words
//! ```
//!
//! So a load's result can be checked, a load can be made to depend on the one before it (see
//! [`latency`](super::latency)), every window is as good as the whole, and what is stored by the
//! bandwidth kernels is what was there. The first touch of memory costs many times a later one (and
//! in a virtual machine whose host gives memory lazily, seconds per GiB), so a field is touched as
//! far as it is needed, by all threads at once, and used for all measurements.

use crate::cpus::CpuSet;
use crate::error::Error;
use crate::pages::{PageBuffer, Pages};

use super::team;

/// Bytes of a line, the unit in which memory is fetched.
pub const LINE_BYTES: usize = 64;
/// Words of a line.
pub(super) const LINE_WORDS: usize = LINE_BYTES / size_of::<u64>();

/// Memory to measure on.
pub struct Field {
    words: PageBuffer<u64>,
    /// Words that have been touched, and hold what they should.
    ready: usize,
    pages: Pages,
}

impl Field {
    /// Reserves memory without touching it.
    ///
    /// # Errors
    /// When the memory cannot be allocated.
    pub fn new(bytes: usize, pages: Pages) -> Result<Self, Error> {
        let lines = bytes.div_ceil(LINE_BYTES).max(1);
        Ok(Self { words: PageBuffer::zeroed(lines * LINE_WORDS, pages)?, ready: 0, pages })
    }

    /// Touches the field up to `bytes` (rounded up to lines), by one thread on each CPU.
    ///
    /// # Errors
    /// When a CPU is not allowed.
    pub fn touch(&mut self, bytes: usize, cpus: &[usize], allowed: &CpuSet) -> Result<(), Error> {
        let end =
            (bytes.div_ceil(LINE_BYTES).max(1) * LINE_WORDS).clamp(self.ready, self.words.len());
        let from = self.ready;
        let fresh = &mut self.words[from..end];
        if fresh.is_empty() {
            return Ok(());
        }
        // Whole huge pages each, so that no page is requested twice.
        let share = (fresh.len().div_ceil(cpus.len())).next_multiple_of(super::HUGE_PAGE_WORDS);
        let parts: Vec<_> = fresh
            .chunks_mut(share)
            .enumerate()
            .map(|(i, part)| std::sync::Mutex::new((from + i * share, part)))
            .collect();
        team::together(&cpus[..parts.len()], allowed, |i| {
            // Nobody else locks part i: the lock only proves it.
            if let Ok(mut part) = parts[i].lock() {
                let (first, words) = &mut *part;
                fill(words, *first);
            }
        })?;
        self.ready = end;
        Ok(())
    }

    /// Which pages the field requested.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Bytes touched.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ready * size_of::<u64>()
    }

    /// Bytes of the field that really lie on huge pages.
    #[must_use]
    pub fn huge_bytes(&self) -> Option<usize> {
        self.words.huge_bytes()
    }

    /// The words touched.
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.ready]
    }

    /// As [`Field::words`], to store into: word 0 of every line must be left as it is.
    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[..self.ready]
    }

    /// A window of `bytes` (at most the whole), another one for every `turn`: where in physical
    /// memory a footprint happens to lie decides which cache sets it competes for, so repetitions
    /// should not all lie in the same place. Returns its first word and its length in words.
    pub(super) fn window(&self, bytes: usize, turn: usize) -> (usize, usize) {
        let len = (bytes.div_ceil(LINE_BYTES).max(1) * LINE_WORDS).min(self.ready);
        let spare = (self.ready - len) / super::HUGE_PAGE_WORDS;
        // Steps of the golden section visit the places evenly, in any number of turns.
        let place = (turn as u128 * 0x9e37_79b9_7f4a_7c15) as u64;
        let start = ((u128::from(place) * (spare as u128 + 1)) >> 64) as usize;
        (start * super::HUGE_PAGE_WORDS, len)
    }
}

/// Writes every line: its own place, in all its words.
fn fill(words: &mut [u64], first: usize) {
    for (i, line) in words.chunks_mut(LINE_WORDS).enumerate() {
        line.fill((first + i * LINE_WORDS) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn every_line_holds_its_own_place_however_it_was_touched() {
        let machine = Machine::here();
        let allowed = &machine.cpus.allowed;
        let cpus = machine.cpus_for(allowed.len()).unwrap();
        let mut field = Field::new(9 << 20, Pages::Huge).unwrap();
        for bytes in [64, 5000, 3 << 20, 1 << 20, 9 << 20, 90 << 20] {
            field.touch(bytes, &cpus, allowed).unwrap();
        }
        assert_eq!(field.bytes(), 9 << 20);
        for (i, line) in field.words().chunks(LINE_WORDS).enumerate() {
            assert_eq!(line[0], (i * LINE_WORDS) as u64);
        }
    }

    #[test]
    fn windows_lie_inside_and_move() {
        let allowed = crate::pin::affinity().unwrap();
        let mut field = Field::new(32 << 20, Pages::Small).unwrap();
        field.touch(32 << 20, &[allowed.first().unwrap()], &allowed).unwrap();
        let starts: std::collections::BTreeSet<usize> = (0..16)
            .map(|turn| {
                let (start, len) = field.window(4 << 20, turn);
                assert!(start + len <= field.words().len());
                start
            })
            .collect();
        assert!(starts.len() > 8, "{starts:?}");
        assert_eq!(field.window(32 << 20, 3), (0, (32 << 20) / 8));
        assert_eq!(field.window(64 << 20, 3).1, (32 << 20) / 8);
    }
}
