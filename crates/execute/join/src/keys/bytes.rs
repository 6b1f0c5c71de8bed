//! Byte keys as two integers that are equal for few different keys, and their hash.
//!
//! ```text
//! at most 15 bytes   [ b0 … b7 ] [ b8 … b14 │ length ]          equal integers: equal keys
//! longer             [ start   ] [ length   │ 255    ]  ──►  … bytes … one after the other
//! null               [ 0       ] [ 0        │ 254    ]
//! ```
//!
//! Like Umbra's strings (Neumann, Freitag, CIDR 2020), but without the prefix: the hash has already
//! separated different keys, and the comparison mostly confirms equal ones. A short key costs one
//! miss to compare, a long one two.

/// Longest key held in its two integers.
const SHORT_MAX: usize = 15;

const TAG_SHIFT: u32 = 56;
const LONG: u64 = 255 << TAG_SHIFT;
const NULL: u64 = 254 << TAG_SHIFT;

/// Integers of a key.
pub(crate) const WIDTH: usize = 2;

/// A null, if nulls are equal.
pub(crate) const NULL_KEY: [u64; WIDTH] = [0, NULL];

/// Encodes and hashes a key; long keys are appended to `long`.
#[inline(always)]
pub(crate) fn encode(key: &[u8], long: &mut Vec<u8>) -> ([u64; WIDTH], u64) {
    if key.len() <= SHORT_MAX {
        let encoded = short(key);
        return (encoded, hash_encoded(&encoded));
    }
    append(key, long)
}

#[inline(never)]
fn append(key: &[u8], long: &mut Vec<u8>) -> ([u64; WIDTH], u64) {
    let start = long.len() as u64;
    long.extend_from_slice(key);
    ([start, LONG | key.len() as u64], hash_long(key))
}

/// The bytes of a long key.
#[inline]
pub(crate) fn long_range(encoded: [u64; WIDTH]) -> Option<std::ops::Range<usize>> {
    if encoded[1] < LONG {
        return None;
    }
    let start = encoded[0] as usize;
    Some(start..start + (encoded[1] & !LONG) as usize)
}

/// Overlapping reads: no loop, and no copy of variable length.
#[inline(always)]
fn short(key: &[u8]) -> [u64; WIDTH] {
    let length = key.len();
    let tag = (length as u64) << TAG_SHIFT;
    if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        // The bytes of the last eight that the first integer lacks, if any.
        let rest = (u64::from_le_bytes(*last) >> 1) >> (8 * (16 - length) - 1);
        return [u64::from_le_bytes(*first), rest | tag];
    }
    if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        let last = u64::from(u32::from_le_bytes(*last)) << (8 * (length - 4));
        return [u64::from(u32::from_le_bytes(*first)) | last, tag];
    }
    if length == 0 {
        return [0, tag];
    }
    let byte = |at: usize| u64::from(key[at]) << (8 * at);
    [byte(0) | byte(length / 2) | byte(length - 1), tag]
}

/// Odd constants with as many ones as zeros (the primes of wyhash).
const MIX: [u64; 3] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3];

/// The folded multiply of wyhash (Wang Yi): both halves of a wide product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// The hash of an encoded key.
#[inline(always)]
pub(crate) fn hash_encoded(encoded: &[u64]) -> u64 {
    let mut hash = MIX[2];
    for pair in encoded.chunks(2) {
        let second = pair.get(1).copied().unwrap_or(0);
        hash = fold(pair[0] ^ MIX[0] ^ hash, second ^ MIX[1]);
    }
    fold(hash ^ MIX[1], MIX[2])
}

fn hash_long(key: &[u8]) -> u64 {
    // The length is mixed first: next to the bytes, one of them could cancel it.
    let mut hash = fold(key.len() as u64 ^ MIX[2], MIX[1]);
    let (pairs, _) = key.as_chunks::<16>();
    let mixed = |hash: u64, pair: &[u8; 16]| {
        let pair = u128::from_le_bytes(*pair);
        fold(pair as u64 ^ MIX[0] ^ hash, (pair >> 64) as u64 ^ MIX[1])
    };
    for pair in pairs {
        hash = mixed(hash, pair);
    }
    // The last 16 bytes again, with those that no pair had.
    let last = key.last_chunk().expect("a long key has 16 bytes");
    fold(mixed(hash, last) ^ MIX[1], MIX[2])
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn short_keys_hold_their_bytes_and_length() {
        let text = b"abcdefghijklmno";
        let mut seen = HashSet::new();
        for length in 0..=SHORT_MAX {
            let mut padded = [0; 16];
            padded[..length].copy_from_slice(&text[..length]);
            padded[15] = length as u8;
            let expected = u128::from_le_bytes(padded);
            let encoded = short(&text[..length]);
            assert_eq!(encoded, [expected as u64, (expected >> 64) as u64], "{length}");
            assert!(seen.insert(encoded) && long_range(encoded).is_none());
        }
        assert!(seen.insert(short(b"\0")) && seen.insert(short(b"\0\0")));
        assert!(long_range(NULL_KEY).is_none() && !seen.contains(&NULL_KEY));
    }

    #[test]
    fn long_keys_are_found_again() {
        let (mut long, text) = (Vec::new(), b"0123456789abcdefghijklmnop");
        let mut all = Vec::new();
        for length in SHORT_MAX + 1..=text.len() {
            all.push((&text[..length], encode(&text[..length], &mut long).0));
        }
        for (key, encoded) in all {
            assert_eq!(&long[long_range(encoded).unwrap()], key);
        }
    }

    #[test]
    fn hashes_differ_by_any_byte_and_by_length() {
        let mut seen = HashMap::new();
        let mut add = |key: &[u8]| {
            let (_, hash) = encode(key, &mut Vec::new());
            let before = seen.insert(hash, key.to_vec());
            assert!(before.as_ref().is_none_or(|before| before == key), "{before:?} {key:?}");
        };
        for length in 0..70 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut key = vec![7; length];
                    key[at] = byte;
                    add(&key);
                }
            }
            add(&vec![0; length]);
        }
        let pairs: HashSet<u64> =
            (0..100).flat_map(|a| (0..100).map(move |b| hash_encoded(&[a, b]))).collect();
        assert_eq!(pairs.len(), 10_000);
        let odd: HashSet<u64> = (0..1000).map(|a| hash_encoded(&[1, 2, a])).collect();
        assert_eq!(odd.len(), 1000);
    }
}
