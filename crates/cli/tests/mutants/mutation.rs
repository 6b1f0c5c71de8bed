//! Changes to the bytes of a file.

use super::fields::Field;
use super::process::Random;

/// Numbers where programs go wrong.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    127,
    255,
    65_535,
    i32::MAX as u64,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];
/// Texts where parsers go wrong.
const TEXTS: [&str; 18] = [
    "",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "9223372036854775808",
    "-9223372036854775809",
    "1e-400",
    "true",
    "\"",
    "\"\"",
    "'",
    "[]",
    "{}",
    "\u{1b}[2J\u{7}",
    "\0",
    "\u{feff}\u{202e}",
];

/// A number that is often where programs go wrong.
fn number(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => NUMBERS[random.below(NUMBERS.len())],
        1 => random.below(1 << 20) as u64,
        _ => NUMBERS[random.below(NUMBERS.len())].wrapping_add(random.below(5) as u64),
    }
}

/// Flips, sets, cuts, repeats or removes some bytes.
pub(crate) fn anywhere(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = whole.to_vec();
    let at = random.below(whole.len());
    let end = (at + 1 + random.below(16)).min(mutant.len());
    match random.below(6) {
        0 => mutant[at] ^= 1 << random.below(8),
        1 => mutant[at] = random.below(256) as u8,
        2 => {
            let bytes = number(random).to_le_bytes();
            let end = (at + [1, 2, 4, 8][random.below(4)]).min(mutant.len());
            mutant[at..end].copy_from_slice(&bytes[..end - at]);
        }
        3 => mutant.truncate(at),
        4 => {
            let copy = mutant[at..end].to_vec();
            mutant.splice(at..at, copy);
        }
        _ => {
            mutant.drain(at..end);
        }
    }
    mutant
}

/// Changes one field; the others still say what is there.
pub(crate) fn in_field(whole: &[u8], fields: &[Field], random: &mut Random) -> Vec<u8> {
    let mut mutant = whole.to_vec();
    let field = &fields[random.below(fields.len())];
    let bytes = field.bytes.clone();
    match field.form {
        super::fields::Form::Varint => {
            // As long as before: nothing that follows moves.
            let old = varint(&whole[bytes.clone()]);
            let new = match random.below(4) {
                0 => old.wrapping_add(2),
                1 => old.wrapping_sub(2),
                2 => old << random.below(8),
                _ => number(random),
            };
            let last = bytes.len() - 1;
            for (place, to) in mutant[bytes].iter_mut().enumerate() {
                let more = if place < last { 128 } else { 0 };
                *to = (new >> (7 * place)) as u8 & 127 | more;
            }
        }
        super::fields::Form::Fixed => {
            let number = match random.below(3) {
                0 => {
                    let mut old = [0; 8];
                    old[..bytes.len()].copy_from_slice(&whole[bytes.clone()]);
                    let near = [1, 4, 8, u64::MAX, 1 << 20][random.below(5)];
                    u64::from_le_bytes(old).wrapping_add(near)
                }
                _ => number(random),
            };
            let number = number.to_le_bytes();
            let length = bytes.len();
            mutant[bytes].copy_from_slice(&number[..length]);
        }
        super::fields::Form::Text => {
            let deep = "[".repeat(1 + random.below(2_000));
            let long = "9".repeat(1 + random.below(70_000));
            let text = match random.below(TEXTS.len() + 3) {
                0 => &deep,
                1 => &long,
                2 => std::str::from_utf8(&whole[fields[random.below(fields.len())].bytes.clone()])
                    .unwrap_or(""),
                at => TEXTS[at - 3],
            };
            mutant.splice(bytes, text.bytes());
        }
    }
    mutant
}

fn varint(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 127))
}
