//! Instruction sets chosen at run time, behind a safe face.
//!
//! ```text
//! Detected::best() ─► with_isa!(…, isa => drive) ─► isa.run(closure)
//!                                                     └─ one #[target_feature] function; the whole
//!                                                        drive is inlined into it, intrinsics too
//! ```
//!
//! A token ([`Avx2`], [`Avx512`]) can only be obtained on a CPU that has the instructions, so
//! holding one is the proof that they may be executed (memchr's and pulp's device). Two conditions
//! keep every call out of the hot loop, and the benchmark's disassembly is where to look if one is
//! lost: the closure and all below it are `#[inline(always)]`, and the token is *moved into* the
//! code that needs it. An intrinsic that is not inlined into [`Isa::run`] is a function call,
//! correct and slow.
//!
//! Every build of this crate is for the baseline of its architecture. On CPUs other than x86-64,
//! under Miri, and without the feature `std` that detects, only [`Portable`] can exist.

use alloc::vec;
use alloc::vec::Vec;

/// An instruction set this CPU has: the proof, and the way to run code compiled for it.
///
/// ```
/// use workahead_walks::isa::{Detected, Isa};
/// use workahead_walks::with_isa;
/// let keys = [3_u64, 1, 4, 1];
/// let ones = with_isa!(Detected::best(), isa => keys.iter().filter(|key| **key == 1).count());
/// assert_eq!(ones, 2);
/// ```
pub trait Isa: Copy + Send + Sync + core::fmt::Debug + sealed::Sealed {
    /// Its name in reports.
    const NAME: &'static str;

    /// Runs a closure inside a function compiled for this instruction set.
    ///
    /// Write the closure as `#[inline(always)] || …`; [`with_isa!`](crate::with_isa) does.
    fn run<R>(self, drive: impl FnOnce() -> R) -> R;
}

mod sealed {
    pub trait Sealed {}
}

/// The instructions of every CPU of this architecture (SSE2 on x86-64, NEON on 64-bit ARM).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Portable;

/// AVX2 and what always comes with it: x86-64-v3 (Haswell 2013, Zen 2017).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx2(());

/// AVX-512 F, BW, DQ, VL on top of [`Avx2`]: x86-64-v4 (Skylake-X 2017, Zen 4 2022).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Avx512(());

impl sealed::Sealed for Portable {}
impl sealed::Sealed for Avx2 {}
impl sealed::Sealed for Avx512 {}

impl Isa for Portable {
    const NAME: &'static str = "portable";

    #[inline(always)]
    fn run<R>(self, drive: impl FnOnce() -> R) -> R {
        drive()
    }
}

/// The instruction set of this CPU, to be matched once for a whole batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// The baseline.
    Portable(Portable),
    /// AVX2.
    Avx2(Avx2),
    /// AVX-512.
    Avx512(Avx512),
}

impl Detected {
    /// The widest this CPU has. The answer of the CPU is cached by the standard library.
    #[must_use]
    pub fn best() -> Self {
        match (Avx512::detect(), Avx2::detect()) {
            (Some(isa), _) => Detected::Avx512(isa),
            (None, Some(isa)) => Detected::Avx2(isa),
            (None, None) => Detected::Portable(Portable),
        }
    }

    /// All this CPU has, the baseline first: what tests and comparisons run over.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Detected::Portable(Portable)];
        all.extend(Avx2::detect().map(Detected::Avx2));
        all.extend(Avx512::detect().map(Detected::Avx512));
        all
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Detected::Portable(_) => Portable::NAME,
            Detected::Avx2(_) => Avx2::NAME,
            Detected::Avx512(_) => Avx512::NAME,
        }
    }
}

/// Runs an expression inside the instruction set of a [`Detected`](crate::isa::Detected), with the
/// token bound to a name: the one place where a run-time choice becomes a type.
#[macro_export]
macro_rules! with_isa {
    ($detected:expr, $isa:ident => $drive:expr) => {
        match $detected {
            $crate::isa::Detected::Portable($isa) => $crate::isa::Isa::run(
                $isa,
                #[inline(always)]
                || $drive,
            ),
            $crate::isa::Detected::Avx2($isa) => $crate::isa::Isa::run(
                $isa,
                #[inline(always)]
                || $drive,
            ),
            $crate::isa::Detected::Avx512($isa) => $crate::isa::Isa::run(
                $isa,
                #[inline(always)]
                || $drive,
            ),
        }
    };
}

#[cfg(all(target_arch = "x86_64", feature = "std", not(miri)))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", feature = "std", not(miri))))]
mod elsewhere {
    use super::{Avx2, Avx512, Isa};

    impl Avx2 {
        /// No token on this architecture.
        #[must_use]
        pub fn detect() -> Option<Self> {
            None
        }
    }

    impl Avx512 {
        /// No token on this architecture.
        #[must_use]
        pub fn detect() -> Option<Self> {
            None
        }
    }

    impl Isa for Avx2 {
        const NAME: &'static str = "avx2";
        fn run<R>(self, drive: impl FnOnce() -> R) -> R {
            drive()
        }
    }

    impl Isa for Avx512 {
        const NAME: &'static str = "avx512";
        fn run<R>(self, drive: impl FnOnce() -> R) -> R {
            drive()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_runs_the_same_code() {
        let values: Vec<u32> = (0..1000).collect();
        for detected in Detected::all() {
            let sum = with_isa!(detected, isa => {
                let _proof = isa;
                values.iter().map(|value| value.rotate_left(3)).fold(0_u32, u32::wrapping_add)
            });
            assert_eq!(sum, values.iter().sum::<u32>() << 3, "{}", detected.name());
        }
    }

    #[test]
    fn the_best_is_among_all_and_the_last() {
        assert_eq!(Detected::all().last(), Some(&Detected::best()));
    }

    #[test]
    fn a_wide_token_implies_the_narrower() {
        assert!(Avx512::detect().is_none() || Avx2::detect().is_some());
    }
}
