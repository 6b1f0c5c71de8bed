//! Numbers that several threads may read and write, while nobody has them otherwise.
//! (`AtomicU64::from_mut_slice` of the standard library, which is not stable.)

use std::sync::atomic::AtomicU64;

/// Numbers as atomic ones.
pub(super) fn atomics(numbers: &mut [u64]) -> &[AtomicU64] {
    const { assert!(align_of::<AtomicU64>() == align_of::<u64>()) };
    // SAFETY: both types have the same size, alignment (asserted) and valid values, and the unique
    // borrow that this one takes the place of says that every access is through it.
    unsafe { &*(std::ptr::from_mut(numbers) as *const [AtomicU64]) }
}
