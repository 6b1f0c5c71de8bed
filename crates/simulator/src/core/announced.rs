//! When something was last said of an address.

use crate::ticks::Ticks;

/// Places remembered: a set of 8,192 references has more than any other schedule announces.
const PLACES: usize = 1 << 14;

/// Bytes of a place: what is said of one address of a line is said of all.
const LINE_SHIFT: u32 = 6;

/// Times by line, the newer of two that share a place.
#[derive(Debug, Clone)]
pub(super) struct Announced(Vec<(u64, Ticks)>);

impl Announced {
    pub(super) fn new() -> Self {
        Self(vec![(u64::MAX, 0); PLACES])
    }

    #[inline(always)]
    pub(super) fn note(&mut self, address: u64, when: Ticks) {
        let line = address >> LINE_SHIFT;
        self.0[place(line)] = (line, when);
    }

    #[inline(always)]
    pub(super) fn when(&self, address: u64) -> Option<Ticks> {
        let line = address >> LINE_SHIFT;
        let (held, when) = self.0[place(line)];
        (held == line).then_some(when)
    }
}

#[inline(always)]
const fn place(line: u64) -> usize {
    (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.trailing_zeros())) as usize
}
