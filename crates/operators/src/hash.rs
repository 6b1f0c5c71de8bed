//! One hash function for every table: multiplicative, high bits first.
//!
//! Fibonacci hashing (Knuth, TAOCP 3, §6.4): one multiplication, no dependence on the table's size,
//! and the bits worth using are the high ones. Consecutive keys spread evenly; an adversary is not
//! resisted, as none of the seeds' tables does.

/// Hashes a 32-bit key to 32 bits; use the high ones.
#[inline(always)]
#[must_use]
pub const fn hash_u32(key: u32) -> u32 {
    key.wrapping_mul(0x9E37_79B1)
}
