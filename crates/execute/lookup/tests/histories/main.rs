//! Random histories of both indexes, and of the maps of the standard library beside them.
//!
//! ```text
//! seed ─► keys, hash function, technique … ─► operations ─► the same answers as HashMap, BTreeMap
//! ```
//!
//! A fuzzer's loop without a fuzzer, on stable: `LOOKUP_CASES=100000 cargo test --release -p
//! workahead-lookup --all-features --test histories` runs long, as `cargo xtask test --full` does
//! with 3000, and `LOOKUP_SEED=N` a history again that failed: every failure names its seed.

mod hash;
mod ordered;
#[cfg(feature = "hashbrown")]
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use workahead_lookup::Technique;
use workahead_walks::random::Random;

/// Histories of a test whose number is not given.
const CASES: u64 = 10;

/// Runs histories from seeds, or that of one seed.
fn histories(run: impl Fn(&mut Random)) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seeds = match number("LOOKUP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LOOKUP_CASES").unwrap_or(CASES),
    };
    for seed in seeds {
        let history = AssertUnwindSafe(|| run(&mut Random::of(seed)));
        if let Err(failure) = catch_unwind(history) {
            eprintln!("LOOKUP_SEED={seed} fails again");
            resume_unwind(failure);
        }
    }
}

/// Kinds of keys.
trait Key: std::hash::Hash + Ord + Clone + std::fmt::Debug + Sync {
    fn of(number: u32) -> Self;
}

impl Key for u32 {
    fn of(number: u32) -> Self {
        number
    }
}

impl Key for u64 {
    fn of(number: u32) -> Self {
        u64::from(number) << 20
    }
}

impl Key for [u8; 12] {
    fn of(number: u32) -> Self {
        let mut text = *b"key:....0000";
        text[4..8].copy_from_slice(&number.to_be_bytes());
        text
    }
}

impl Key for String {
    fn of(number: u32) -> Self {
        format!("{number:x}").repeat(1 + number as usize % 3)
    }
}

/// How many keys there are in a history: few come again and again, many make a table large.
fn domain(random: &mut Random) -> u32 {
    [5, 60, 700, 9000][random.below(4) as usize]
}

/// Keys for a batch of any size, most of them below `domain`.
fn batch<K: Key>(random: &mut Random, domain: u32) -> Vec<K> {
    let most = [1, 9, 130, 1500][random.below(4) as usize];
    (0..random.below(most + 1)).map(|_| K::of(random.below(domain + domain / 4 + 1))).collect()
}

fn technique(random: &mut Random) -> Option<Technique> {
    let width = random.below(300) as u16;
    match random.below(5) {
        0 => None,
        1 => Some(Technique::InTurn),
        2 => Some(Technique::Distance(width)),
        3 => Some(Technique::Lanes(width)),
        _ => Some(Technique::Rounds(width)),
    }
}

/// Results of a batch, and its tests of membership, whatever its results held before.
fn compare_lookups<'a>(
    expected: &[Option<&'a u64>],
    technique: Technique,
    random: &mut Random,
    get_many: impl FnOnce(&mut [Option<&'a u64>]),
    contains_many: impl FnOnce(&mut [bool]),
) {
    let mut found = vec![Some(&7); expected.len()];
    get_many(&mut found);
    assert_eq!(found, expected, "{technique:?}");
    let mut contained = vec![random.below(2) == 0; expected.len()];
    contains_many(&mut contained);
    assert!(contained.into_iter().eq(expected.iter().map(Option::is_some)));
}
