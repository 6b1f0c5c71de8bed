//! `workahead-lookup` beside other maps and ordered indexes: one JSON object.
//!
//! ```text
//! workahead-lookup-bench [--huge] [--small] [--only TEXT] [--also TECHNIQUE …]
//! ```
//!
//! Every candidate looks up the same keys and must come to the same sum of values. `--huge` puts
//! our tables on huge pages; the allocator of all others is given the same by its environment
//! (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1`), which `cargo xtask bench lookup` does.

#[cfg(boost)]
mod boost;
mod hash;
mod keys;
mod limit;
mod ordered;
mod timing;

use keys::Text;
use serde_json::{Value, json};
use workahead_lookup::{Pages, Technique};

/// The settings of all measurements.
pub struct Settings {
    pages: Pages,
    /// Keys looked up in a round.
    probes: usize,
    rounds: usize,
    /// Measured beside the one that the index chooses.
    techniques: Vec<Technique>,
}

/// Keys of one call.
const BATCH: usize = 1024;

/// Looks keys up in batches; the sum of the values, each plus one.
fn batches<'i, K>(keys: &[K], mut get_many: impl FnMut(&[K], &mut [Option<&'i u64>])) -> u64 {
    let mut found = [None; BATCH];
    let mut sum = 0;
    for keys in keys.chunks(BATCH) {
        let found = &mut found[..keys.len()];
        get_many(keys, found);
        sum += found.iter().flatten().map(|value| *value + 1).sum::<u64>();
    }
    sum
}

fn technique(text: &str) -> Technique {
    let width = text.get(1..).and_then(|width| width.parse().ok()).unwrap_or(32);
    match text.get(..1) {
        Some("d") => Technique::Distance(width),
        Some("l") => Technique::Lanes(width),
        Some("r") => Technique::Rounds(width),
        _ => Technique::InTurn,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let after = |word: &str| {
        let at = arguments.iter().position(|argument| argument == word)?;
        arguments.get(at + 1).cloned()
    };
    let only = after("--only").unwrap_or_default();
    let settings = Settings {
        pages: if has("--huge") { Pages::Huge } else { Pages::Usual },
        probes: if has("--small") { 1 << 10 } else { 1 << 20 },
        rounds: if has("--small") { 3 } else { 9 },
        techniques: after("--also").iter().flat_map(|all| all.split(',')).map(technique).collect(),
    };
    let small = if has("--small") { 100 } else { 1 };
    let mut groups = Vec::new();
    let wanted = |name: &str| name.contains(only.as_str());
    for count in [10_000, 200_000, 16_000_000].map(|count| count / small) {
        if wanted(&format!("hash u64 {count}")) {
            groups.extend(hash::look_ups::<u64>(count, &settings));
        }
        if wanted(&format!("hash text {count}")) {
            groups.extend(hash::look_ups::<Text>(count, &settings));
        }
    }
    if wanted("inserts") {
        groups.push(hash::inserts(16_000_000 / small, &settings));
    }
    for count in [10_000, 200_000, 10_000_000].map(|count| count / small) {
        if wanted(&format!("ordered u64 {count}")) {
            groups.extend(ordered::look_ups::<u64>(count, &settings));
        }
        if wanted(&format!("ordered text {count}")) {
            groups.extend(ordered::look_ups::<Text>(count, &settings));
        }
    }
    let pages = if has("--huge") { "huge" } else { "usual" };
    let result: Value = json!({ "pages": pages, "rounds": settings.rounds, "groups": groups });
    println!("{result}");
}
