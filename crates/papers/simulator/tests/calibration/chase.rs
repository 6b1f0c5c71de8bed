//! Pointer chasing.

use workahead_simulator::core::Processor;
use workahead_simulator::op::{Dependence, Op};
use workahead_simulator::preset::{Preset, PresetError};
use workahead_simulator::ticks::cycles;

/// Bytes between loads: no preset has longer lines.
pub(super) const STRIDE: u64 = 512;

/// Number of timed loads.
const TIMED: usize = 1 << 14;

/// Pointer chasing on the first CPU of an otherwise idle machine.
pub(super) struct Chaser {
    processor: Processor,
    pub(super) page: u64,
}

impl Chaser {
    pub(super) fn new(preset: &Preset) -> Result<Self, PresetError> {
        let alone = Preset { cores: 1, prefetcher: None, ..preset.clone() };
        Ok(Self { processor: Processor::new(&alone)?, page: u64::from(preset.page) })
    }

    /// Cycles per load of a random cycle through `bytes` bytes that visits each page in `turns`
    /// turns, after an untimed round.
    pub(super) fn warm(&mut self, bytes: u64, turns: u64) -> f64 {
        let offsets = shuffled(self.page.min(bytes) / STRIDE);
        let offsets: Vec<u64> = offsets.iter().map(|line| line * STRIDE).collect();
        self.cycle(bytes, &offsets, turns)
    }

    /// The same with each page's loads in ascending order, `stride` bytes apart.
    pub(super) fn ascending(&mut self, bytes: u64, stride: u64) -> f64 {
        let offsets: Vec<u64> = (0..self.page / stride).map(|at| at * stride).collect();
        self.cycle(bytes, &offsets, 1)
    }

    /// Cycles per load of untouched memory from `base` on.
    pub(super) fn fresh(&mut self, base: u64, stride: u64) -> f64 {
        // Whole pages, so that each load has its share of a translation.
        let loads = TIMED as u64 / (self.page / stride) * (self.page / stride);
        let loads = loads.max(self.page / stride);
        self.time((0..loads).map(|at| base + at * stride))
    }

    fn cycle(&mut self, bytes: u64, offsets: &[u64], turns: u64) -> f64 {
        let pages = shuffled(bytes.div_ceil(self.page));
        let page_bytes = self.page;
        let cycle = move || {
            let pages = pages.clone();
            (0..turns).flat_map(move |turn| {
                let mine = offsets.iter().skip(turn as usize).step_by(turns as usize);
                let all = pages.clone().into_iter();
                all.flat_map(move |page| mine.clone().map(move |offset| page * page_bytes + offset))
            })
        };
        let within = move |address: &u64| *address < bytes;
        let mut length = 0;
        for address in cycle().filter(within) {
            self.load(address);
            length += 1;
        }
        // Short cycles are repeated.
        let rounds = TIMED.div_ceil(usize::max(length, 1));
        self.time((0..rounds).flat_map(|_| cycle().filter(within)).take(TIMED.min(rounds * length)))
    }

    fn time(&mut self, addresses: impl Iterator<Item = u64>) -> f64 {
        self.processor.drain(0);
        let before = self.processor.now(0);
        let mut loads = 0_u64;
        for address in addresses {
            self.load(address);
            loads += 1;
        }
        self.processor.drain(0);
        cycles(self.processor.now(0) - before) / loads as f64
    }

    #[inline]
    fn load(&mut self, address: u64) {
        self.processor.run(0, Op::Load { address, bytes: 8, after: Dependence::Load });
    }
}

/// A fixed random permutation of the numbers below `count`: Fisher and Yates' shuffle with Knuth's
/// generator MMIX.
fn shuffled(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    let mut state = 0x5EED_u64;
    for at in (1..numbers.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers.swap(at, (state >> 33) as usize % (at + 1));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_lose_nothing() {
        for count in [0, 1, 2, 17, 1000] {
            let mut numbers = shuffled(count);
            let moved = numbers.iter().enumerate().filter(|(at, number)| *at as u64 != **number);
            assert!(count < 17 || moved.count() as u64 > count / 2);
            numbers.sort_unstable();
            assert!(numbers.iter().enumerate().all(|(at, number)| at as u64 == *number));
        }
    }
}
