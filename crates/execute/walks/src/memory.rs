//! Who reacts to the places a walk asks for.
//!
//! The only file with a hint instruction in it.

use crate::place::{Intent, LINE_BYTES, Place, References};

/// The memory a walk runs over: the real one, or one that watches.
///
/// The running example is a walk over a chained table: it asks for a bucket head by returning its
/// [`Place`], the schedule calls [`fetch`](Memory::fetch), and a step later the walk calls
/// [`read`](Memory::read) on the head.
pub trait Memory {
    /// Reads through a reference the walk was given; a watching memory sees the address.
    fn read<'a, T>(&mut self, at: &'a T) -> &'a T;

    /// Reads a place the walk did not ask for because it is always in cache: the next entry of a
    /// sequential input, the top levels of a tree. Declared, so that law 1 can except it.
    fn read_hot<'a, T>(&mut self, at: &'a T) -> &'a T;

    /// Writes a place the walk asked for.
    fn write<T>(&mut self, at: &mut T, value: T);

    /// Announces a place that will be touched soon. A hint: it may be ignored or lost.
    fn fetch(&mut self, place: Place, intent: Intent);

    /// Which way a branch of the walk goes that data decide: returned as it is. The machine that
    /// executes the walk guesses it by itself; this tells a memory that watches.
    #[inline(always)]
    fn decided(&mut self, _branch: Branch, taken: bool) -> bool {
        taken
    }

    /// An entry of a work-ahead set, which has room for the places of an `A`, was given those of a
    /// `B` for a helper to load; none is one of dummies only. The set itself has stored them: this
    /// tells a memory that watches.
    #[inline(always)]
    fn posted<A: References, B: References>(&mut self, _entry: usize, _asks: Option<&B>) {}

    /// Announces all places of a step.
    #[inline(always)]
    fn fetch_all(&mut self, places: &impl References, intent: Intent) {
        places.each(|place| self.fetch(place, intent));
    }
}

/// Branches of walks that data decide. Which phase a row is in is none: rows that are interleaved
/// are mostly in the same one, as are those of a row in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Branch {
    /// A cell has the hash code that is looked for.
    SameHash,
    /// A record has the key.
    SameKey,
    /// A list has another cell.
    GoesOn,
    /// A node is not a leaf.
    Inner,
    /// A separator is less than the key: a step of a binary search.
    Less,
    /// A leaf or a bucket has the key.
    Found,
}

/// Plain loads and stores; announcements are ignored.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

impl Memory for Direct {
    #[inline(always)]
    fn read<'a, T>(&mut self, at: &'a T) -> &'a T {
        at
    }
    #[inline(always)]
    fn read_hot<'a, T>(&mut self, at: &'a T) -> &'a T {
        at
    }
    #[inline(always)]
    fn write<T>(&mut self, at: &mut T, value: T) {
        *at = value;
    }
    #[inline(always)]
    fn fetch(&mut self, _: Place, _: Intent) {}
}

/// How near a prefetch hint brings a line.
pub trait Hint: Copy + Default {
    /// Asks for one line.
    fn line(address: *const u8, intent: Intent);
}

/// Into the first-level cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToL1;
/// Into the second-level cache: its queue is longer than the first level's fill buffers, which pays
/// where a machine can keep more misses in flight there (research: up to 1.6 times at 128 MiB).
#[derive(Debug, Clone, Copy, Default)]
pub struct ToL2;

/// Plain loads and stores; announcements become prefetch instructions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prefetching<H = ToL1>(H);

impl<H: Hint> Memory for Prefetching<H> {
    #[inline(always)]
    fn read<'a, T>(&mut self, at: &'a T) -> &'a T {
        at
    }
    #[inline(always)]
    fn read_hot<'a, T>(&mut self, at: &'a T) -> &'a T {
        at
    }
    #[inline(always)]
    fn write<T>(&mut self, at: &mut T, value: T) {
        *at = value;
    }
    #[inline(always)]
    fn fetch(&mut self, place: Place, intent: Intent) {
        let mut offset = 0;
        while offset < place.bytes() {
            H::line(place.address().wrapping_add(offset), intent);
            offset += LINE_BYTES;
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use super::{Hint, Intent, ToL1, ToL2};
    use core::arch::asm;
    use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};

    #[inline(always)]
    fn exclusive(address: *const u8) {
        // SAFETY: `prefetchw` changes no architectural state and never faults; on CPUs without it
        // the encoding is a no-op.
        unsafe { asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags)) };
    }

    impl Hint for ToL1 {
        #[inline(always)]
        fn line(address: *const u8, intent: Intent) {
            match intent {
                // SAFETY: a prefetch changes no architectural state and never faults.
                Intent::Read => unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) },
                Intent::Write => exclusive(address),
            }
        }
    }

    impl Hint for ToL2 {
        #[inline(always)]
        fn line(address: *const u8, intent: Intent) {
            match intent {
                // SAFETY: a prefetch changes no architectural state and never faults.
                Intent::Read => unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) },
                Intent::Write => exclusive(address),
            }
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod instructions {
    use super::{Hint, Intent, ToL1, ToL2};
    use core::arch::asm;

    impl Hint for ToL1 {
        #[inline(always)]
        fn line(address: *const u8, intent: Intent) {
            // SAFETY: `prfm` is a hint: it changes no architectural state and never faults.
            unsafe {
                match intent {
                    Intent::Read => {
                        asm!(
                            "prfm pldl1keep, [{}]",
                            in(reg) address,
                            options(nostack, preserves_flags),
                        );
                    }
                    Intent::Write => {
                        asm!(
                            "prfm pstl1keep, [{}]",
                            in(reg) address,
                            options(nostack, preserves_flags),
                        );
                    }
                }
            }
        }
    }

    impl Hint for ToL2 {
        #[inline(always)]
        fn line(address: *const u8, intent: Intent) {
            // SAFETY: as above.
            unsafe {
                match intent {
                    Intent::Read => {
                        asm!(
                            "prfm pldl2keep, [{}]",
                            in(reg) address,
                            options(nostack, preserves_flags),
                        );
                    }
                    Intent::Write => {
                        asm!(
                            "prfm pstl2keep, [{}]",
                            in(reg) address,
                            options(nostack, preserves_flags),
                        );
                    }
                }
            }
        }
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod instructions {
    use super::{Hint, Intent, ToL1, ToL2};

    impl Hint for ToL1 {
        fn line(_: *const u8, _: Intent) {}
    }
    impl Hint for ToL2 {
        fn line(_: *const u8, _: Intent) {}
    }
}
