//! One key against the four of a bucket, by the instructions at hand.

use super::SLOTS;
use crate::isa::{Avx2, Avx512, Isa, Portable};

/// Comparison of a key with the keys of a bucket.
pub trait Compare: Isa {
    /// Bit `i` is set where `keys[i] == key`.
    fn equal(self, keys: &[u64; SLOTS], key: u64) -> u32;
}

#[inline(always)]
fn equal_portable(keys: &[u64; SLOTS], key: u64) -> u32 {
    let mut mask = 0;
    for (slot, held) in keys.iter().enumerate() {
        mask |= u32::from(*held == key) << slot;
    }
    mask
}

impl Compare for Portable {
    #[inline(always)]
    fn equal(self, keys: &[u64; SLOTS], key: u64) -> u32 {
        equal_portable(keys, key)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use super::{Avx2, Avx512, Compare, SLOTS};
    use std::arch::x86_64::{
        __m256i, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_cmpeq_epi64_mask,
        _mm256_loadu_si256, _mm256_movemask_pd, _mm256_set1_epi64x,
    };

    const _: () = assert!(size_of::<[u64; SLOTS]>() == size_of::<__m256i>());

    impl Compare for Avx2 {
        #[inline(always)]
        fn equal(self, keys: &[u64; SLOTS], key: u64) -> u32 {
            // SAFETY: the token proves AVX2; the array is exactly the 32 bytes of an unaligned
            // load.
            unsafe {
                let held = _mm256_loadu_si256(keys.as_ptr().cast());
                let equal = _mm256_cmpeq_epi64(held, _mm256_set1_epi64x(key.cast_signed()));
                _mm256_movemask_pd(_mm256_castsi256_pd(equal)).cast_unsigned()
            }
        }
    }

    impl Compare for Avx512 {
        #[inline(always)]
        fn equal(self, keys: &[u64; SLOTS], key: u64) -> u32 {
            // SAFETY: the token proves AVX-512 F and VL; the load is as above.
            unsafe {
                let held = _mm256_loadu_si256(keys.as_ptr().cast());
                u32::from(_mm256_cmpeq_epi64_mask(held, _mm256_set1_epi64x(key.cast_signed())))
            }
        }
    }
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
mod elsewhere {
    use super::{Avx2, Avx512, Compare, SLOTS, equal_portable};

    impl Compare for Avx2 {
        fn equal(self, keys: &[u64; SLOTS], key: u64) -> u32 {
            equal_portable(keys, key)
        }
    }

    impl Compare for Avx512 {
        fn equal(self, keys: &[u64; SLOTS], key: u64) -> u32 {
            equal_portable(keys, key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Detected;
    use crate::with_isa;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_instruction_set_says_the_same(keys: [u64; SLOTS], at in 0..SLOTS, other: u64) {
            for key in [keys[at], other, 0, u64::MAX, keys[at] ^ 1, keys[at] ^ (1 << 63)] {
                let expected = equal_portable(&keys, key);
                for detected in Detected::all() {
                    let mask = with_isa!(detected, isa => isa.equal(&keys, key));
                    prop_assert_eq!(mask, expected, "{} {:?} {}", detected.name(), keys, key);
                }
            }
        }

        #[test]
        fn equal_keys_are_all_found(key: u64, slots in 0_u32..16) {
            let keys = std::array::from_fn(|slot| if slots >> slot & 1 == 1 { key } else { !key });
            for detected in Detected::all() {
                prop_assert_eq!(with_isa!(detected, isa => isa.equal(&keys, key)), slots);
            }
        }
    }
}
