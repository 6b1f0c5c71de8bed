//! When something was last said of a line: a table that forgets rather than grows.

use crate::ticks::Ticks;

/// A number all of whose bits depend on those of a key: the golden ratio's multiple of it
/// (Fibonacci hashing). Its highest bits are the best ones.
#[inline(always)]
pub(crate) const fn multiplied(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Times by line, the newer of two that share one of `PLACES`, a power of two.
#[derive(Debug, Clone)]
pub(crate) struct LineHistory<const PLACES: usize> {
    lines: Box<[(u64, Ticks)]>,
    line_shift: u32,
    /// Nothing was ever said: the table need not be looked at.
    is_empty: bool,
}

impl<const PLACES: usize> LineHistory<PLACES> {
    /// Nothing, of lines of `1 << line_shift` bytes.
    pub(crate) fn new(line_shift: u32) -> Self {
        const { assert!(PLACES.is_power_of_two()) };
        Self { lines: vec![(u64::MAX, 0); PLACES].into(), line_shift, is_empty: true }
    }

    /// Something is said of all addresses of a line.
    #[inline(always)]
    pub(crate) fn note(&mut self, address: u64, when: Ticks) {
        let line = address >> self.line_shift;
        self.lines[Self::place(line)] = (line, when);
        self.is_empty = false;
    }

    /// When something was said of an address; nothing where that is forgotten.
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
        (multiplied(line) >> (64 - PLACES.trailing_zeros())) as usize
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
        // Of so many lines some share its place.
        (3..20).for_each(|line| line_history.note(line * 64, 8));
        assert_eq!((line_history.when(128), line_history.when(19 * 64 + 63)), (None, Some(8)));
    }
}
