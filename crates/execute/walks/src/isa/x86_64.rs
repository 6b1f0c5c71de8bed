//! Detection on x86-64, and the functions that carry the target features.

use std::arch::is_x86_feature_detected as has;

use super::{Avx2, Avx512, Isa};

impl Avx2 {
    /// The token, where this CPU (and the system, for the wider registers) has the instructions.
    #[must_use]
    #[inline]
    pub fn detect() -> Option<Self> {
        (has!("avx2")
            && has!("bmi1")
            && has!("bmi2")
            && has!("fma")
            && has!("lzcnt")
            && has!("movbe")
            && has!("popcnt"))
        .then_some(Self(()))
    }
}

impl Avx512 {
    /// The token, where this CPU (and the system, for the wider registers) has the instructions.
    #[must_use]
    #[inline]
    pub fn detect() -> Option<Self> {
        (Avx2::detect().is_some()
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl"))
        .then_some(Self(()))
    }
}

impl Isa for Avx2 {
    const NAME: &'static str = "avx2";

    #[inline(always)]
    fn run<R>(self, drive: impl FnOnce() -> R) -> R {
        #[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,movbe,popcnt")]
        fn compiled<R>(drive: impl FnOnce() -> R) -> R {
            drive()
        }
        // SAFETY: the token exists, so `detect` has found every feature in the list.
        unsafe { compiled(drive) }
    }
}

impl Isa for Avx512 {
    const NAME: &'static str = "avx512";

    #[inline(always)]
    fn run<R>(self, drive: impl FnOnce() -> R) -> R {
        #[target_feature(
            enable = "avx2,bmi1,bmi2,fma,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512dq,avx512vl"
        )]
        fn compiled<R>(drive: impl FnOnce() -> R) -> R {
            drive()
        }
        // SAFETY: the token exists, so `detect` has found every feature in the list.
        unsafe { compiled(drive) }
    }
}
