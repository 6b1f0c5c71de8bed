//! The time of the last event at each line: a direct-mapped table that forgets instead of growing.

use crate::ticks::Ticks;

/// A hash whose bits all depend on those of the key: the key times the golden ratio (Fibonacci
/// hashing). Its highest bits are the best ones.
#[inline(always)]
pub(crate) const fn fibonacci_hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Times by line; of two that share one of `PLACES` slots, a power of two, the newer.
#[derive(Debug, Clone)]
pub(crate) struct LineHistory<const PLACES: usize> {
    lines: Box<[(u64, Ticks)]>,
    line_shift: u32,
    /// Nothing was recorded yet: the table need not be read.
    is_empty: bool,
}

impl<const PLACES: usize> LineHistory<PLACES> {
    /// An empty history, of lines of `1 << line_shift` bytes.
    pub(crate) fn new(line_shift: u32) -> Self {
        const { assert!(PLACES.is_power_of_two()) };
        Self { lines: vec![(u64::MAX, 0); PLACES].into(), line_shift, is_empty: true }
    }

    /// Records an event for all addresses of a line.
    #[inline(always)]
    pub(crate) fn note(&mut self, address: u64, when: Ticks) {
        let line = address >> self.line_shift;
        self.lines[Self::place(line)] = (line, when);
        self.is_empty = false;
    }

    /// The time of the last event at an address; `None` if there was none or it is forgotten.
    #[inline(always)]
    pub(crate) fn when(&self, address: u64) -> Option<Ticks> {
        if self.is_empty {
            return None;
        }
        let line = address >> self.line_shift;
        let (held, when) = self.lines[Self::place(line)];
        (held == line).then_some(when)
    }

    #[inline(always)]
    const fn place(line: u64) -> usize {
        (fibonacci_hash(line) >> (64 - PLACES.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_of_two_is_kept() {
        let mut line_history = LineHistory::<2>::new(6);
        assert_eq!(line_history.when(0), None);
        line_history.note(130, 7);
        assert_eq!(
            (line_history.when(128), line_history.when(191), line_history.when(192)),
            (Some(7), Some(7), None)
        );
        // Some of these lines share its slot.
        (3..20).for_each(|line| line_history.note(line * 64, 8));
        assert_eq!((line_history.when(128), line_history.when(19 * 64 + 63)), (None, Some(8)));
    }
}
