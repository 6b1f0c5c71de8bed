//! The latency of a load that needs the result of the load before it.
//!
//! Source: lmbench's `lat_mem_rd` (McVoy and Staelin, USENIX 1996, §6.1) and Manegold's Calibrator
//! (CWI, 2000): a chain of loads over footprints of growing size, each line once per lap, in random
//! order so that no prefetcher can guess the next.
//!
//! ```text
//! classical:  at = next[at]                       the chain is stored, and must be shuffled first
//! here:       at = word[at + (line[i+1] − line[i])]     word[x] = x, so the sum is line[i+1]
//! ```
//!
//! Building a stored chain over 4 GiB costs seconds of random writes. Lines that hold their own
//! place ([`Field`]) give the same dependence for nothing: the address needs the value just loaded,
//! while the differences come from a permutation of the line numbers that the core computes ahead,
//! off the chain. One addition is on the chain. (A constant in every line would do as well on most
//! processors, but some predict constant loads.)

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::error::Error;
use crate::pages::Pages;

use super::field::{Field, LINE_BYTES, LINE_WORDS};
use super::team;

/// The latency over one footprint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// The footprint.
    pub bytes: usize,
    /// On these pages.
    pub pages: Pages,
    /// Nanoseconds of one load that waits for the one before it: the best pass.
    pub ns: f64,
    /// The same in the median pass: what the neighbours usually leave.
    pub median_ns: f64,
}

/// A footprint of `sections` (8 to 15) × 2^`section_log2` lines: eight sizes in an octave, each of
/// which can be permuted with a few multiplications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    sections: usize,
    section_log2: u32,
}

impl Shape {
    /// The largest shape within a given number of bytes; at least eight lines.
    fn within(bytes: usize) -> Self {
        let lines = (bytes / LINE_BYTES).max(8);
        let section_log2 = lines.ilog2() - 3;
        Self { sections: lines >> section_log2, section_log2 }
    }

    fn lines(self) -> usize {
        self.sections << self.section_log2
    }

    /// The line visited at a step of the lap: a section in turn, and within it a place that depends
    /// on both (two rounds of multiply and shift are a permutation of the section).
    #[inline(always)]
    fn line(self, round: usize, section: usize) -> usize {
        let mask = (1usize << self.section_log2) - 1;
        let half = self.section_log2.div_ceil(2);
        let mut place = (round ^ section.wrapping_mul(0x5851_f42d_4c95_7f2d)) & mask;
        place = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
        place ^= place >> half;
        place = place.wrapping_mul(0xd6e8_feb8_6659_fd93) & mask;
        place ^= place >> half;
        section << self.section_log2 | place
    }
}

/// Where a chain stands, so that it can be taken up again.
struct Chain {
    shape: Shape,
    /// First word of the window.
    start: usize,
    round: usize,
    /// The word visited last; also the value found there.
    at: usize,
}

impl Chain {
    /// Follows the chain for some rounds (one line of each section); returns the lines visited.
    #[inline(never)]
    fn follow(&mut self, words: &[u64], rounds: usize) -> usize {
        let Self { shape, start, .. } = *self;
        let (mut at, mut before) = (self.at, self.at);
        for round in self.round..self.round + rounds {
            for section in 0..shape.sections {
                let next = start + shape.line(round, section) * LINE_WORDS;
                at = words[at.wrapping_add(next.wrapping_sub(before))] as usize;
                before = next;
            }
        }
        self.round += rounds;
        self.at = at;
        rounds * shape.sections
    }
}

/// Lines between two looks at the clock.
const LINES_PER_LOOK: usize = 1 << 11;
/// A footprint up to this size is read once from end to end before it is timed, so that as much of
/// it is in cache as will fit.
const WARMED_BYTES: usize = 256 << 20;

/// Rounds from turn to turn: odd, of the golden section's 32 digits.
const TURN_ROUNDS: usize = 0x9e37_79b9;

/// Nanoseconds per dependent load over a footprint of (nearly) `bytes`, by the CPU's own time.
/// `turn` chooses the window, so that repetitions see other physical pages.
///
/// # Errors
/// When the CPU is not allowed.
pub fn on_field(
    field: &Field,
    bytes: usize,
    cpu: usize,
    turn: usize,
    duration: Duration,
) -> Result<f64, Error> {
    let shape = Shape::within(bytes.min(field.bytes()));
    let (start, len) = field.window(shape.lines() * LINE_BYTES, turn);
    let allowed = std::iter::once(cpu).collect();
    let mut times = team::together(&[cpu], &allowed, |_| {
        let words = field.words();
        if len * size_of::<u64>() <= WARMED_BYTES {
            let warm = words[start..start + len].iter().step_by(LINE_WORDS);
            std::hint::black_box(warm.fold(0u64, |sum, word| sum.wrapping_add(*word)));
        }
        // Another part of the lap in every turn: a huge footprint is hardly visited twice.
        let round = turn.wrapping_mul(TURN_ROUNDS) & (usize::MAX >> 1);
        let mut chain = Chain { shape, start, round, at: start };
        let rounds = (LINES_PER_LOOK / shape.sections).max(1);
        chain.follow(words, rounds);
        let began = Moment::now();
        let mut lines = 0;
        while lines == 0 || began.wall_s() < duration.as_secs_f64() {
            lines += chain.follow(words, rounds);
        }
        let elapsed = began.elapsed();
        // The chain ends on the line that the permutation names: no load was skipped.
        let last = shape.line(chain.round - 1, shape.sections - 1);
        assert_eq!(chain.at, start + last * LINE_WORDS, "the field does not hold its own places");
        elapsed.cpu_s * 1e9 / lines as f64
    })?;
    Ok(times.pop().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Pages;

    #[test]
    fn a_lap_visits_every_line_once() {
        for bytes in [512, 640, 1 << 10, 7 << 12, 5 << 16, 11 << 17, 3 << 20] {
            let shape = Shape::within(bytes);
            assert!(
                shape.lines() * LINE_BYTES <= bytes && shape.lines() * LINE_BYTES * 9 > bytes * 8
            );
            let mut visited = vec![false; shape.lines()];
            for round in 0..1usize << shape.section_log2 {
                for section in 0..shape.sections {
                    let line = shape.line(round + (5 << 20), section);
                    assert!(!std::mem::replace(&mut visited[line], true), "{line} twice");
                }
            }
        }
    }

    #[test]
    fn neighbours_in_time_are_not_neighbours_in_memory() {
        let shape = Shape::within(2 << 20);
        let lines: Vec<usize> = (0..1000).map(|round| shape.line(round, 0)).collect();
        let near = lines.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 64).count();
        assert!(near < 100, "{near} of 999 steps stay within a page");
    }

    #[test]
    fn the_chain_is_followed_on_any_window() {
        let allowed = crate::pin::affinity().unwrap();
        let cpu = allowed.first().unwrap();
        let mut field = Field::new(16 << 20, Pages::Huge).unwrap();
        field.touch(16 << 20, &[cpu], &allowed).unwrap();
        for (turn, bytes) in [(0, 4 << 10), (1, 1 << 20), (2, 16 << 20), (3, 64 << 20), (4, 1)] {
            let ns = on_field(&field, bytes, cpu, turn, Duration::from_micros(300)).unwrap();
            assert!(ns > 0.0 && ns.is_finite());
        }
    }
}
