//! The last event of each line: a direct-mapped table that forgets instead of growing.

use crate::ticks::Ticks;

/// A hash whose bits all depend on those of the key: the key times the golden ratio (Fibonacci
/// hashing). Its highest bits are the best ones.
#[inline(always)]
pub(crate) const fn fibonacci_hash(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Events by line, of which the time is enough for most; of two lines that share one of `PLACES`
/// slots, a power of two, the newer.
#[derive(Debug, Clone)]
pub(crate) struct LineHistory<const PLACES: usize, E = Ticks> {
    lines: Box<[(u64, E)]>,
    line_shift: u32,
    /// Nothing was recorded yet: the table need not be read.
    is_empty: bool,
}

impl<const PLACES: usize, E: Copy + Default> LineHistory<PLACES, E> {
    /// An empty history, of lines of `1 << line_shift` bytes.
    pub(crate) fn new(line_shift: u32) -> Self {
        const { assert!(PLACES.is_power_of_two()) };
        Self { lines: vec![(u64::MAX, E::default()); PLACES].into(), line_shift, is_empty: true }
    }

    /// Records an event for all addresses of a line.
    #[inline(always)]
    pub(crate) fn note(&mut self, address: u64, event: E) {
        let line = address >> self.line_shift;
        self.lines[Self::place(line)] = (line, event);
        self.is_empty = false;
    }

    /// The last event at an address; `None` if there was none or it is forgotten.
    #[inline(always)]
    pub(crate) fn last(&self, address: u64) -> Option<E> {
        if self.is_empty {
            return None;
        }
        let line = address >> self.line_shift;
        let (held, event) = self.lines[Self::place(line)];
        (held == line).then_some(event)
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
        assert_eq!(line_history.last(0), None);
        line_history.note(130, 7);
        assert_eq!(
            (line_history.last(128), line_history.last(191), line_history.last(192)),
            (Some(7), Some(7), None)
        );
        // Some of these lines share its slot.
        (3..20).for_each(|line| line_history.note(line * 64, 8));
        assert_eq!((line_history.last(128), line_history.last(19 * 64 + 63)), (None, Some(8)));
    }
}
