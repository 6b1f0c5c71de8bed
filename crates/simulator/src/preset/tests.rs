//! A small machine for all tests, and what no machine may be.

use super::*;

/// Four CPUs with 512 bytes of L1D, 256 of L1I and 2 KiB of L2 each; lines of 64 bytes; no overlap.
pub(crate) fn small() -> Preset {
    let text = r#"
        name = "small"
        title = "four small CPUs"
        ghz = 1.0
        cores = 4
        threads = 1
        page = 4096
        core = { width = 1, window = 0, stores = 0, outstanding = 4, uops-per-instruction = 1.0 }
        cache = [
            { name = "L1D", holds = "data", bytes = 512, ways = 2, line = 64, latency = 2 },
            { name = "L1I", holds = "instructions", bytes = 256, ways = 2, line = 64, latency = 2 },
            { name = "L2", holds = "both", bytes = 2048, ways = 4, line = 64, latency = 10 },
        ]
        tlb = { data = { entries = 64, ways = 0, cost = 20 } }
        clears = { cost = 200, window = 100 }
        origin = { all = "made up" }
        [memory]
        latency = 100
        transfer = 8
        message = 2
        dirty-latency = 150
    "#;
    toml::from_str(text).unwrap()
}

fn refused(edit: impl FnOnce(&mut Preset)) -> String {
    let mut preset = small();
    edit(&mut preset);
    match crate::core::Processor::new(&preset) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
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
        (refused(|preset| preset.threads = 9), "small: threads is 9: it takes 1 to 8"),
        (refused(|preset| preset.core.width = 0), "small: core.width is 0: it takes 1 to 6"),
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
    ];
    for (said, expected) in cases {
        assert_eq!(said, expected);
    }
}
