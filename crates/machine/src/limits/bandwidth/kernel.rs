//! The loops that stream through memory, in the widest instructions this processor has.
//!
//! One loop, compiled for several instruction sets (the compiler vectorises it) and chosen at run
//! time; only the store that goes past the caches needs an instruction that Rust has no other word
//! for. Every store writes what was there: the line's own place (see
//! [`field`](crate::limits::field)).

use crate::limits::field::LINE_WORDS;

/// The streaming loops for one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Kernels {
    /// The instruction set.
    pub(super) name: &'static str,
    /// Adds up all words.
    pub(super) read: fn(&[u64]) -> u64,
    /// Writes into every word of every line the line's place, the first line's given.
    pub(super) store: fn(&mut [u64], u64),
    /// As `store`, past the caches.
    pub(super) store_past: Option<fn(&mut [u64], u64)>,
}

/// All that this processor can run, the widest last.
pub(super) fn available() -> Vec<Kernels> {
    let mut kernels =
        vec![Kernels { name: "portable", read: sum, store, store_past: past::PORTABLE }];
    kernels.extend(wide::available());
    kernels
}

#[inline(always)]
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0u64; 4 * LINE_WORDS];
    let chunks = words.chunks_exact(sums.len());
    let rest = chunks.remainder();
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

#[inline(always)]
fn store(words: &mut [u64], first: u64) {
    let mut place = first;
    for line in words.chunks_exact_mut(LINE_WORDS) {
        line.fill(place);
        place += LINE_WORDS as u64;
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide {
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_sfence, _mm256_set1_epi64x, _mm256_stream_si256, _mm512_set1_epi64,
        _mm512_stream_si512,
    };

    use super::{Kernels, LINE_WORDS};

    pub(super) fn available() -> Vec<Kernels> {
        let mut kernels = Vec::new();
        if is_x86_feature_detected!("avx2") {
            kernels.push(Kernels {
                name: "avx2",
                // SAFETY: AVX2 was detected.
                read: |words| unsafe { avx2_sum(words) },
                // SAFETY: AVX2 was detected.
                store: |words, first| unsafe { avx2_store(words, first) },
                // SAFETY: AVX2 was detected.
                store_past: Some(|words, first| unsafe { avx2_store_past(words, first) }),
            });
        }
        if is_x86_feature_detected!("avx512f") {
            kernels.push(Kernels {
                name: "avx512",
                // SAFETY: AVX-512 was detected.
                read: |words| unsafe { avx512_sum(words) },
                // SAFETY: AVX-512 was detected.
                store: |words, first| unsafe { avx512_store(words, first) },
                // SAFETY: AVX-512 was detected.
                store_past: Some(|words, first| unsafe { avx512_store_past(words, first) }),
            });
        }
        kernels
    }

    #[target_feature(enable = "avx2")]
    fn avx2_sum(words: &[u64]) -> u64 {
        super::sum(words)
    }

    #[target_feature(enable = "avx2")]
    fn avx2_store(words: &mut [u64], first: u64) {
        super::store(words, first);
    }

    #[target_feature(enable = "avx2")]
    fn avx2_store_past(words: &mut [u64], first: u64) {
        let mut place = first;
        for line in words.chunks_exact_mut(LINE_WORDS) {
            let value = _mm256_set1_epi64x(place.cast_signed());
            let at = line.as_mut_ptr().cast::<__m256i>();
            assert!(at.is_aligned());
            // SAFETY: the line is 64 bytes, borrowed mutably, and aligned as was just checked.
            unsafe {
                _mm256_stream_si256(at, value);
                _mm256_stream_si256(at.add(1), value);
            }
            place += LINE_WORDS as u64;
        }
        fence();
    }

    #[target_feature(enable = "avx512f")]
    fn avx512_sum(words: &[u64]) -> u64 {
        super::sum(words)
    }

    #[target_feature(enable = "avx512f")]
    fn avx512_store(words: &mut [u64], first: u64) {
        super::store(words, first);
    }

    #[target_feature(enable = "avx512f")]
    fn avx512_store_past(words: &mut [u64], first: u64) {
        let mut place = first;
        for line in words.chunks_exact_mut(LINE_WORDS) {
            let at = line.as_mut_ptr().cast::<__m512i>();
            assert!(at.is_aligned());
            // SAFETY: the line is 64 bytes, borrowed mutably, and aligned as was just checked.
            unsafe { _mm512_stream_si512(at, _mm512_set1_epi64(place.cast_signed())) };
            place += LINE_WORDS as u64;
        }
        fence();
    }

    /// Streamed stores are ordered with nothing until the fence; after it they are as others. Not
    /// among the wide code, where Rust 1.89 wants the block below, and later ones warn of it.
    fn fence() {
        // SAFETY: SSE belongs to the baseline of x86-64, and the fence changes no memory.
        unsafe { _mm_sfence() };
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod wide {
    pub(super) fn available() -> Vec<super::Kernels> {
        Vec::new()
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod past {
    use std::arch::x86_64::{_mm_sfence, _mm_stream_si64};

    use super::LINE_WORDS;

    pub(super) const PORTABLE: Option<fn(&mut [u64], u64)> = Some(store_past);

    fn store_past(words: &mut [u64], first: u64) {
        let mut place = first;
        for line in words.chunks_exact_mut(LINE_WORDS) {
            for word in line {
                // SAFETY: one word, borrowed mutably; SSE2 is part of x86-64.
                unsafe { _mm_stream_si64((&raw mut *word).cast(), place.cast_signed()) };
            }
            place += LINE_WORDS as u64;
        }
        // SAFETY: SSE is part of x86-64. Streamed stores are ordered with nothing before it.
        unsafe { _mm_sfence() };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod past {
    use std::arch::asm;

    use super::LINE_WORDS;

    pub(super) const PORTABLE: Option<fn(&mut [u64], u64)> = Some(store_past);

    fn store_past(words: &mut [u64], first: u64) {
        let mut place = first;
        for line in words.chunks_exact_mut(LINE_WORDS) {
            // SAFETY: four pairs are the line's eight words, borrowed mutably. The hint not to
            // cache changes nothing about the order that a program sees.
            unsafe {
                asm!(
                    "stnp {place}, {place}, [{line}]",
                    "stnp {place}, {place}, [{line}, #16]",
                    "stnp {place}, {place}, [{line}, #32]",
                    "stnp {place}, {place}, [{line}, #48]",
                    place = in(reg) place,
                    line = in(reg) line.as_mut_ptr(),
                    options(nostack, preserves_flags)
                );
            }
            place += LINE_WORDS as u64;
        }
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod past {
    pub(super) const PORTABLE: Option<fn(&mut [u64], u64)> = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::{PageBuffer, Pages};

    #[test]
    fn every_instruction_set_reads_and_stores_the_same() {
        const LINES: usize = 1003;
        let kernels = available();
        assert_eq!(kernels[0].name, "portable");
        for kernel in kernels {
            let stores = [Some(kernel.store), kernel.store_past];
            for store in stores.into_iter().flatten() {
                let mut words =
                    PageBuffer::<u64>::zeroed(LINES * LINE_WORDS, Pages::Small).unwrap();
                // All but the first and the last line, as a window.
                let inner = LINE_WORDS..(LINES - 1) * LINE_WORDS;
                store(&mut words[inner.clone()], 8);
                for (i, word) in words.iter().enumerate() {
                    let own = if inner.contains(&i) { i / LINE_WORDS * LINE_WORDS } else { 0 };
                    assert_eq!(*word, own as u64, "{} word {i}", kernel.name);
                }
                let expected: u64 = words.iter().sum();
                assert_eq!((kernel.read)(&words), expected, "{}", kernel.name);
            }
        }
    }
}
