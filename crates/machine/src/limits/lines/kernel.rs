//! The loops that read random lines. The only unchecked indexing and the only prefetches of this
//! crate; safe to call with any arguments.
//!
//! ```text
//! draw    512 + ahead numbers below `lines`, sixteen generators side by side (vectorised)
//! for i:  prefetch line number[i + ahead];  sum += first word of line number[i]
//! keep    the last `ahead` numbers for the next block, so that every line was requested ahead
//! ```
//!
//! Tried and lost: drawing each number just before its load (the generator's chain halves the rate
//! in cache), and checked indexing (up to a quarter slower in cache, nothing outside).

use super::Method;
use crate::limits::field::LINE_WORDS;

/// Lines per block.
pub(super) const BLOCK: usize = 512;
const LANES: usize = 16;
/// Lines ahead; research on this project's first machine found 32 and 64 best.
const AHEAD_L1: usize = 32;
const AHEAD_L2: usize = 64;
const _: () = {
    assert!(BLOCK.is_multiple_of(LANES));
    assert!(AHEAD_L1.is_multiple_of(LANES) && AHEAD_L2.is_multiple_of(LANES));
};

/// Sixteen xorshift generators (Marsaglia, 2003) side by side.
pub(super) struct Numbers {
    lanes: [u32; LANES],
}

impl Numbers {
    /// Other numbers for every seed.
    pub(super) fn new(seed: u32) -> Self {
        // The lanes must start far apart: neighbouring states of one generator would draw the same
        // lines sixteen times.
        let lanes = std::array::from_fn(|lane| {
            mix(seed.wrapping_mul(LANES as u32).wrapping_add(lane as u32))
        });
        Self { lanes }
    }

    /// Fills with numbers below `bound` (Lemire's multiplication instead of a remainder, 2019).
    #[inline(always)]
    fn draw(&mut self, out: &mut [u32], bound: u32) {
        for chunk in out.chunks_exact_mut(LANES) {
            for (lane, out) in self.lanes.iter_mut().zip(chunk) {
                *lane = step(*lane);
                *out = ((u64::from(*lane) * u64::from(bound)) >> 32) as u32;
            }
        }
    }
}

/// The finaliser of MurmurHash3 (Appleby, 2011), never zero: a xorshift generator sticks there.
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^= x >> 16;
    x | u32::from(x == 0)
}

#[inline(always)]
fn step(mut x: u32) -> u32 {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    x
}

/// Adds up the first words of random lines among the first `lines` of `words`.
///
/// # Panics
/// When `words` is shorter than that.
pub(super) fn sum(
    words: &[u64],
    lines: u32,
    method: Method,
    (numbers, blocks): (&mut Numbers, usize),
) -> u64 {
    assert!(words.len() / LINE_WORDS >= lines as usize && lines > 0);
    match method {
        Method::Plain => plain(words, lines, numbers, blocks),
        Method::PrefetchL1 => ahead::<AHEAD_L1, ToL1>(words, lines, numbers, blocks),
        Method::PrefetchL2 => ahead::<AHEAD_L2, ToL2>(words, lines, numbers, blocks),
    }
}

/// The first word of a line.
///
/// # Safety
/// The line lies inside `words`.
#[inline(always)]
unsafe fn first(words: &[u64], line: u32) -> u64 {
    // SAFETY: the caller's promise, and a line's first word is in the line.
    unsafe { *words.get_unchecked(line as usize * LINE_WORDS) }
}

#[inline(never)]
fn plain(words: &[u64], lines: u32, numbers: &mut Numbers, blocks: usize) -> u64 {
    let mut block = [0u32; BLOCK];
    let mut sum = 0u64;
    for _ in 0..blocks {
        numbers.draw(&mut block, lines);
        for &line in &block {
            // SAFETY: `draw` gives numbers below `lines`, and `sum` has checked that `words` holds
            // `lines` lines.
            sum = sum.wrapping_add(unsafe { first(words, line) });
        }
    }
    sum
}

#[inline(never)]
fn ahead<const AHEAD: usize, H: Hint>(
    words: &[u64],
    lines: u32,
    numbers: &mut Numbers,
    blocks: usize,
) -> u64 {
    const { assert!(AHEAD <= AHEAD_L2) };
    let mut block = [0u32; BLOCK + AHEAD_L2];
    let block = &mut block[..BLOCK + AHEAD];
    let mut sum = 0u64;
    numbers.draw(&mut block[..AHEAD], lines);
    for _ in 0..blocks {
        numbers.draw(&mut block[AHEAD..], lines);
        for i in 0..BLOCK {
            H::line(words.as_ptr().wrapping_add(block[i + AHEAD] as usize * LINE_WORDS));
            // SAFETY: as in `plain`; numbers kept from the block before were below `lines` too.
            sum = sum.wrapping_add(unsafe { first(words, block[i]) });
        }
        block.copy_within(BLOCK.., 0);
    }
    sum
}

/// Where a prefetch brings a line.
trait Hint {
    /// Asks for the line at an address; any address will do.
    fn line(address: *const u64);
}

struct ToL1;
struct ToL2;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

    impl super::Hint for super::ToL1 {
        #[inline(always)]
        fn line(address: *const u64) {
            // SAFETY: a prefetch changes no architectural state and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
        }
    }

    impl super::Hint for super::ToL2 {
        #[inline(always)]
        fn line(address: *const u64) {
            // SAFETY: a prefetch changes no architectural state and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod instructions {
    use std::arch::asm;

    impl super::Hint for super::ToL1 {
        #[inline(always)]
        fn line(address: *const u64) {
            // SAFETY: a prefetch changes no architectural state and never faults.
            unsafe {
                asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags));
            }
        }
    }

    impl super::Hint for super::ToL2 {
        #[inline(always)]
        fn line(address: *const u64) {
            // SAFETY: a prefetch changes no architectural state and never faults.
            unsafe {
                asm!("prfm pldl2keep, [{}]", in(reg) address, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod instructions {
    impl super::Hint for super::ToL1 {
        fn line(_: *const u64) {}
    }
    impl super::Hint for super::ToL2 {
        fn line(_: *const u64) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(lines: u32) -> Vec<u64> {
        (0..lines as usize * LINE_WORDS).map(|word| (word / LINE_WORDS) as u64).collect()
    }

    #[test]
    fn every_method_reads_the_lines_that_were_drawn() {
        for lines in [1, 2, 3, 1000, 4099] {
            let words = field(lines);
            // Drawing replayed by hand: the plain order is the order of the numbers.
            let mut numbers = Numbers::new(7);
            let mut drawn = vec![0; 3 * BLOCK];
            numbers.draw(&mut drawn, lines);
            let expected: u64 = drawn.iter().map(|&line| u64::from(line)).sum();
            for method in Method::ALL {
                let got = sum(&words, lines, method, (&mut Numbers::new(7), 3));
                assert_eq!(got, expected, "{method:?}, {lines} lines");
            }
        }
    }

    #[test]
    fn numbers_are_spread_evenly_and_differ_by_seed() {
        let mut counts = [0u32; 64];
        let mut drawn = vec![0; 64 * 1024];
        Numbers::new(3).draw(&mut drawn, 64);
        drawn.iter().for_each(|&line| counts[line as usize] += 1);
        assert!(counts.iter().all(|&count| (800..1250).contains(&count)), "{counts:?}");
        let distinct: std::collections::HashSet<u32> = {
            Numbers::new(5).draw(&mut drawn, u32::MAX);
            drawn.iter().copied().collect()
        };
        assert!(distinct.len() > drawn.len() - 8, "{} distinct", distinct.len());
        let mut other = vec![0; 64];
        Numbers::new(4).draw(&mut other, 1 << 20);
        let mut one = vec![0; 64];
        Numbers::new(3).draw(&mut one, 1 << 20);
        assert_ne!(one, other);
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn a_field_that_is_too_short_is_refused() {
        sum(&field(3), 4, Method::Plain, (&mut Numbers::new(1), 1));
    }
}
