//! One hash function for every table: multiplicative, high bits first.
//!
//! Fibonacci hashing (Knuth, TAOCP 3, §6.4): one multiplication, no dependence on the table's size,
//! and the bits worth using are the high ones. Consecutive keys spread evenly; an adversary is not
//! resisted, as none of the papers' tables does.

/// Hashes a 32-bit key to 32 bits; use the high ones.
#[inline(always)]
#[must_use]
pub const fn hash_u32(key: u32) -> u32 {
    key.wrapping_mul(0x9E37_79B1)
}

/// Hashes a 64-bit key to 64 bits; use the high ones.
///
/// Both halves of one wide product (the folded multiply of wyhash and ahash): the low half spreads
/// consecutive keys evenly, the high half breaks the strides that cluster under the low half alone.
#[inline(always)]
#[must_use]
pub const fn hash_u64(key: u64) -> u64 {
    let product = key as u128 * 0x9E37_79B9_7F4A_7C15;
    (product >> 64) as u64 ^ product as u64
}
