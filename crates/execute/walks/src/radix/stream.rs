//! Whole cache lines, stored past the caches.
//!
//! An ordinary store first reads the line it writes and then throws something else out of the
//! cache. A line that is complete needs neither: x86-64 has stores that leave from the core's fill
//! buffers straight to memory (*Intel 64 and IA-32 Optimization Reference Manual*, §9.4,
//! non-temporal stores). Elsewhere, and under Miri, they are ordinary ones.
//!
//! Such stores are not ordered with any others. Hence no function gives one away: lines are lent to
//! a [`Stream`] for the time of a call, which ends with a fence.

use bytemuck::{Pod, Zeroable};

/// Words of a line.
pub(super) const WORDS: usize = 8;

/// One cache line.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u64; WORDS]);

const _: () = assert!(size_of::<Line>() == crate::place::LINE_BYTES);

/// Lines that can only be stored to, until all that was stored is there.
pub(super) struct Stream<'a> {
    lines: &'a mut [Line],
}

/// Lends two runs of lines for the time of a call; whatever it stores is there when it returns, or
/// panics.
#[inline(always)]
pub(super) fn past_caches<R>(
    one: &mut [Line],
    other: &mut [Line],
    store: impl for<'a> FnOnce(&mut Stream<'a>, &mut Stream<'a>) -> R,
) -> R {
    let _fence = Fence;
    store(&mut Stream { lines: one }, &mut Stream { lines: other })
}

/// A fence when it goes.
struct Fence;

impl Drop for Fence {
    #[inline(always)]
    fn drop(&mut self) {
        instructions::fence();
    }
}

impl Stream<'_> {
    /// Stores a line.
    ///
    /// # Panics
    /// If there is no such line.
    #[inline(always)]
    pub(super) fn store(&mut self, at: usize, line: &Line) {
        instructions::store(&mut self.lines[at], line);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_sfence, _mm_stream_si128};

    use super::Line;

    const PIECES: usize = size_of::<Line>() / size_of::<__m128i>();
    const _: () = assert!(align_of::<Line>() >= align_of::<__m128i>());

    #[inline(always)]
    pub(super) fn store(to: &mut Line, from: &Line) {
        let (to, from) = ((&raw mut *to).cast::<__m128i>(), (&raw const *from).cast::<__m128i>());
        for piece in 0..PIECES {
            // SAFETY: SSE2 is in the baseline of x86-64; both lines are whole and aligned to 64
            // bytes, and `piece` stays within them. Nothing reads or writes `to` in another way
            // before `Fence` has gone: `Stream` holds the only borrow of it until then.
            unsafe { _mm_stream_si128(to.add(piece), _mm_load_si128(from.add(piece))) };
        }
    }

    #[inline(always)]
    pub(super) fn fence() {
        // SAFETY: SSE is in the baseline of x86-64; a fence touches no memory.
        unsafe { _mm_sfence() };
    }
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
mod instructions {
    use super::Line;

    pub(super) fn store(to: &mut Line, from: &Line) {
        *to = *from;
    }

    pub(super) fn fence() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_there_after_the_call() {
        let (mut one, mut other) = (vec![Line::zeroed(); 9], vec![Line::zeroed(); 9]);
        let line = |at: usize| Line(std::array::from_fn(|word| (at * WORDS + word) as u64));
        past_caches(&mut one, &mut other, |one, other| {
            for at in (0..9).rev() {
                one.store(at, &line(at));
                other.store(8 - at, &line(at));
            }
        });
        for at in 0..9 {
            assert_eq!((one[at].0, other[at].0), (line(at).0, line(8 - at).0));
        }
    }

    #[test]
    fn what_was_stored_before_a_panic_is_there() {
        let (mut one, mut other) = (vec![Line::zeroed(); 2], Vec::new());
        let stored = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            past_caches(&mut one, &mut other, |one, _| {
                one.store(1, &Line([7; WORDS]));
                one.store(2, &Line([8; WORDS]));
            });
        }));
        assert!(stored.is_err(), "there is no line 2");
        assert_eq!((one[0].0, one[1].0), ([0; WORDS], [7; WORDS]));
    }
}
