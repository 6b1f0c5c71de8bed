//! Lines on their way: whoever needs one waits for it, and asks for it no second time.

use crate::ticks::Ticks;

/// Lines remembered. More than any machine has on their way by far; two that share a place are the
/// exception, and then the older is taken to have arrived.
const PLACES: usize = 1024;

/// When lines arrive that were asked for lately.
#[derive(Debug, Clone)]
pub(super) struct Fills {
    lines: Vec<(u64, Ticks)>,
    line_shift: u32,
    /// When the last of them arrives.
    latest: Ticks,
}

impl Fills {
    /// None, of lines of `1 << line_shift` bytes.
    pub(super) fn new(line_shift: u32) -> Self {
        Self { lines: vec![(u64::MAX, 0); PLACES], line_shift, latest: 0 }
    }

    /// When the line of an address can be used that otherwise could be at `ready`.
    #[inline(always)]
    pub(super) fn ready(&self, address: u64, ready: Ticks) -> Ticks {
        if ready >= self.latest {
            return ready;
        }
        let line = address >> self.line_shift;
        let (held, arrives) = self.lines[Self::place(line)];
        if held == line { ready.max(arrives) } else { ready }
    }

    /// A line will arrive.
    #[inline(always)]
    pub(super) fn note(&mut self, address: u64, arrives: Ticks) {
        let line = address >> self.line_shift;
        self.lines[Self::place(line)] = (line, arrives);
        self.latest = self.latest.max(arrives);
    }

    #[inline(always)]
    const fn place(line: u64) -> usize {
        (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.trailing_zeros())) as usize
    }
}
