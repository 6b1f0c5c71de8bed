//! A small machine for all tests, and rejected presets.

use super::*;

/// Four CPUs with 512 bytes of L1D, 256 of L1I and 2 KiB of L2 each; lines of 64 bytes; no overlap.
pub(crate) fn small() -> Preset {
    let mut preset: Preset = toml::from_str(include_str!("../../tests/machine.toml")).unwrap();
    "small".clone_into(&mut preset.name);
    (preset.cores, preset.threads) = (4, 1);
    (preset.core.width, preset.core.window, preset.core.stores) = (1, 0, 0);
    let [l1, l1i, l2] = &mut preset.cache[..] else { panic!("three caches") };
    (l1.bytes, l1.ways, l1i.bytes) = (512, 2, 256);
    (l2.bytes, l2.ways, l2.line) = (2048, 4, 64);
    preset.tlb.data.entries = 64;
    preset.memory.outstanding = 0;
    (preset.tlb.instructions, preset.branches, preset.prefetcher) = (None, None, None);
    preset
}

fn refused(edit: impl FnOnce(&mut Preset)) -> String {
    let mut preset = small();
    edit(&mut preset);
    match crate::core::Processor::new(&preset) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Gives a machine an L1D of one set, whose lines a tree replaces.
fn without_sets(preset: &mut Preset, lines: u64) {
    let level = &mut preset.cache[0];
    (level.bytes, level.ways, level.replacement) = (64 * lines, 0, Replacement::TreePlru);
}

#[test]
fn impossible_machines_are_refused_in_one_line() {
    let cases = [
        (refused(|_| {}), "nothing"),
        (
            refused(|preset| preset.cache[0].bytes = 1000),
            "small: L1D: 1000 bytes in sets of 2 lines of 64 bytes leave a part of a set",
        ),
        (
            refused(|preset| preset.cache[0].line = 48),
            "small: L1D: a line of 48 bytes: it takes a power of two from 4 to 4096",
        ),
        (
            refused(|preset| preset.cache[2].bytes = 1 << 40),
            "small: L2: a cache of 1099511627776 bytes: it takes one line to 4 GiB",
        ),
        (refused(|preset| without_sets(preset, 64)), "nothing"),
        (
            refused(|preset| without_sets(preset, 65)),
            "small: L1D: tree-plru of 65 ways: it takes up to 64; set its ways, or its \
             replacement to lru",
        ),
        (refused(|preset| preset.threads = 9), "small: threads is 9: it takes 1 to 8"),
        (refused(|preset| preset.core.width = 0), "small: core.width is 0: it takes 1 to 6"),
        (
            refused(|preset| preset.tlb.data.entries = 1 << 25),
            "small: tlb.data.entries is 33554432: it takes 1 to 65536",
        ),
        (
            refused(|preset| preset.memory.latency = f64::NAN),
            "small: memory.latency is NaN: it takes 1 to 100000",
        ),
        (
            refused(|preset| preset.cache[2].latency = 1.0),
            "small: the latency of L2 is 1: it takes no less than the cache before it",
        ),
        (
            refused(|preset| preset.cache.clear()),
            "small: the number of caches between a CPU and memory is 0: it takes 1 to 3",
        ),
        (
            refused(|preset| preset.cache.truncate(1)),
            "small: the number of caches that hold instructions is 0: it takes 1 to 3",
        ),
        (
            refused(|preset| preset.cache = vec![preset.cache[2].clone(); 7]),
            "small: the number of caches is 7: it takes up to 6",
        ),
    ];
    for (said, expected) in cases {
        assert_eq!(said, expected);
    }
}

/// Each figure that it is of has a copy.
#[test]
fn a_long_origin_is_refused_in_one_line() {
    let said = |bytes| {
        let mut preset = small();
        preset.origin.insert("core".to_owned(), "x".repeat(bytes));
        preset.check_origins().err().map(|error| error.to_string()).unwrap_or_default()
    };
    let expected = "small: the number of bytes of an origin is 4097: it takes up to 4096";
    assert_eq!(said(4097), expected);
    assert!(!said(4096).contains("bytes"));
}

#[test]
fn what_a_model_keeps_grows_with_its_caches_and_its_tlbs() {
    let base = small().state_bytes();
    let with = |edit: fn(&mut Preset)| {
        let mut preset = small();
        edit(&mut preset);
        preset.state_bytes() - base
    };
    // 1,024 lines of 16 bytes, and entries of 32, of four CPUs.
    assert_eq!(with(|preset| preset.cache[0].bytes += 64 << 10), 4 * (1 << 10) * 16);
    assert_eq!(with(|preset| preset.tlb.data.entries += 1000), 4 * 1000 * 32);
}
