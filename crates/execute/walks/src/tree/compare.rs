//! One key against all keys of a line, by the instructions at hand.

use crate::isa::{Avx2, Avx512, Isa, Portable};

/// Comparison of a key with words that hold keys. A word that is NaN is neither less nor equal.
pub trait Compare: Isa {
    /// Bit `i` is set where `words[i] < key`.
    fn less(self, words: &[u32; 16], key: f32) -> u32;
    /// Bit `i` is set where `words[i] == key`.
    fn equal(self, words: &[u32; 8], key: f32) -> u32;
}

#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[inline(always)]
fn mask<const N: usize>(words: &[u32; N], holds: impl Fn(f32) -> bool) -> u32 {
    let mut mask = 0;
    for (i, word) in words.iter().enumerate() {
        mask |= u32::from(holds(f32::from_bits(*word))) << i;
    }
    mask
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use super::{Avx2, Avx512, Compare, Portable};
    use bytemuck::cast;
    use std::arch::x86_64::{
        __m128, __m256, __m512, _CMP_EQ_OQ, _CMP_LT_OQ, _mm_castps_si128, _mm_cmpeq_ps,
        _mm_cmplt_ps, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_ps,
        _mm256_cmp_ps, _mm256_cmp_ps_mask, _mm256_movemask_ps, _mm256_set1_ps, _mm512_cmp_ps_mask,
        _mm512_set1_ps,
    };

    /// Sixteen lanes of all ones or all zeros, to sixteen bits.
    #[inline(always)]
    fn bits([a, b, c, d]: [__m128; 4]) -> u32 {
        // SAFETY: SSE2 belongs to the baseline of x86-64.
        unsafe {
            let low = _mm_packs_epi32(_mm_castps_si128(a), _mm_castps_si128(b));
            let high = _mm_packs_epi32(_mm_castps_si128(c), _mm_castps_si128(d));
            _mm_movemask_epi8(_mm_packs_epi16(low, high)).cast_unsigned()
        }
    }

    impl Compare for Portable {
        #[inline(always)]
        fn less(self, words: &[u32; 16], key: f32) -> u32 {
            let quarters: [__m128; 4] = cast(*words);
            // SAFETY: SSE2 belongs to the baseline of x86-64.
            bits(quarters.map(|quarter| unsafe { _mm_cmplt_ps(quarter, _mm_set1_ps(key)) }))
        }

        #[inline(always)]
        fn equal(self, words: &[u32; 8], key: f32) -> u32 {
            let halves: [__m128; 2] = cast(*words);
            // SAFETY: SSE2 belongs to the baseline of x86-64.
            let [a, b] = halves.map(|half| unsafe { _mm_cmpeq_ps(half, _mm_set1_ps(key)) });
            bits([a, b, a, b]) & 0xFF
        }
    }

    impl Compare for Avx2 {
        #[inline(always)]
        fn less(self, words: &[u32; 16], key: f32) -> u32 {
            let [low, high]: [__m256; 2] = cast(*words);
            // SAFETY: the token proves AVX2.
            unsafe {
                let key = _mm256_set1_ps(key);
                let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(low, key));
                let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(high, key));
                (low | high << 8).cast_unsigned()
            }
        }

        #[inline(always)]
        fn equal(self, words: &[u32; 8], key: f32) -> u32 {
            let words: __m256 = cast(*words);
            // SAFETY: the token proves AVX2.
            unsafe {
                let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(words, _mm256_set1_ps(key));
                _mm256_movemask_ps(equal).cast_unsigned()
            }
        }
    }

    impl Compare for Avx512 {
        #[inline(always)]
        fn less(self, words: &[u32; 16], key: f32) -> u32 {
            // SAFETY: an array of 64 bytes is a register of 64 bytes; the token proves AVX-512 F.
            unsafe {
                let words: __m512 = std::mem::transmute(*words);
                u32::from(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(words, _mm512_set1_ps(key)))
            }
        }

        #[inline(always)]
        fn equal(self, words: &[u32; 8], key: f32) -> u32 {
            let words: __m256 = cast(*words);
            // SAFETY: the token proves AVX-512 F and VL.
            unsafe { u32::from(_mm256_cmp_ps_mask::<_CMP_EQ_OQ>(words, _mm256_set1_ps(key))) }
        }
    }
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
mod elsewhere {
    use super::{Avx2, Avx512, Compare, Portable, mask};

    macro_rules! by_loop {
        ($($isa:ty),*) => {$(
            impl Compare for $isa {
                #[inline(always)]
                fn less(self, words: &[u32; 16], key: f32) -> u32 {
                    mask(words, |word| word < key)
                }
                #[inline(always)]
                fn equal(self, words: &[u32; 8], key: f32) -> u32 {
                    mask(words, |word| word == key)
                }
            }
        )*};
    }

    by_loop!(Portable, Avx2, Avx512);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Detected;
    use crate::with_isa;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_instruction_set_says_the_same(words: [u32; 16], at in 0_usize..16, other: u32) {
            let first: &[u32; 8] = words.first_chunk().unwrap();
            for word in [words[at], words[at] ^ 1, other, 0, 1 << 31, 0x7F80_0000, 0x7FC0_0000] {
                let key = f32::from_bits(word);
                let less = mask(&words, |word| word < key);
                let equal = mask(first, |word| word == key);
                for detected in Detected::all() {
                    let found = with_isa!(detected, isa => {
                        (isa.less(&words, key), isa.equal(first, key))
                    });
                    let name = detected.name();
                    prop_assert_eq!(found, (less, equal), "{} {:?} {}", name, words, key);
                }
            }
        }
    }
}
