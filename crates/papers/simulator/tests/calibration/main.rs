//! A43: calibration measures the figures of the presets.

mod calibrate;
mod chase;

use calibrate::{Calibration, calibrate, enough_for};
use workahead_simulator::catalogue;
use workahead_simulator::preset::{Contents, Preset};

fn read(reference: &str) -> (Preset, Calibration) {
    let preset = Preset::named(reference).unwrap();
    let read = calibrate(&preset, enough_for(&preset)).unwrap();
    (preset, read)
}

#[track_caller]
fn near(read: f64, expected: f64) {
    assert!((read / expected - 1.0).abs() <= 0.02, "{read}, not {expected}");
}

/// Table 1 of Zhou et al. 2005: L1 miss 18, L2 miss 276, TLB miss 53 cycles, 8 and 512 KB, lines of
/// 64 and 128 bytes, 64 translations.
#[test]
fn zhous_machine_is_read_back() {
    let (_, read) = read("p4-ht-512k");
    near(read.miss(0).unwrap(), 18.0);
    near(read.miss(1).unwrap(), 276.0);
    let translations = read.translations.unwrap();
    near(translations.cost, 53.0);
    assert_eq!(translations.pages, 64);
    let shape = |at: usize| (read.levels[at].bytes, read.levels[at].line);
    assert_eq!(shape(0), (Some(8 << 10), Some(64)));
    assert_eq!(shape(1), (Some(512 << 10), Some(128)));
    assert_eq!((shape(2), read.miss(2)), ((None, None), None));
}

/// Section 3.1 of Hassanein et al. 2008: 1.18, 8.26 and 137.9 ns.
#[test]
fn hassaneins_machine_is_read_back() {
    let (preset, read) = read("p4-ht-2m");
    for (level, ns) in read.levels.iter().zip([1.18, 8.26, 137.9]) {
        near(level.latency / preset.ghz, ns);
    }
    assert_eq!(read.levels.len(), 3);
}

/// Tables 1 and 3 of Keeton et al. 1998: 3 cycles, 4 more, 190 ns.
#[test]
fn keetons_machine_is_read_back() {
    for kilobytes in ["256k", "512k", "1m"] {
        let (preset, read) = read(&format!("ppro-quad/4p-{kilobytes}"));
        near(read.levels[0].latency, 3.0);
        near(read.miss(0).unwrap(), 4.0);
        near(read.levels[2].latency / preset.ghz, 190.0);
        assert_eq!(read.levels[1].bytes, Some(preset.cache[2].bytes));
    }
}

/// Every machine's own figures: latencies, sizes, lines, translations.
#[test]
fn every_machine_is_read_back() {
    for name in catalogue::names() {
        let (preset, read) = read(name);
        let caches: Vec<_> =
            preset.cache.iter().filter(|level| level.holds != Contents::Instructions).collect();
        assert_eq!(read.levels.len(), caches.len() + 1, "{name}: {read:?}");
        for (level, cache) in read.levels.iter().zip(&caches) {
            near(level.latency, cache.latency);
            near(level.bytes.unwrap() as f64, cache.bytes as f64);
            assert_eq!(level.line, Some(cache.line), "{name}, {}", cache.name);
        }
        near(read.levels[caches.len()].latency, preset.memory.latency);
        let translations = read.translations.unwrap();
        near(translations.cost, preset.tlb.data.cost);
        assert_eq!(translations.pages, u64::from(preset.tlb.data.entries), "{name}");
    }
}

/// It measures cycles, not the preset: a changed machine is measured as changed.
#[test]
fn a_changed_machine_is_measured_as_changed() {
    let preset = Preset::named("p4-ht-512k").unwrap();
    let slower = preset.with_override("memory.latency=400").unwrap();
    let slower = slower.with_override("tlb.data.entries=32").unwrap();
    let slower = slower.with_override("cache.L2.threads=split").unwrap();
    let read = calibrate(&slower, enough_for(&slower)).unwrap();
    near(read.levels[2].latency, 400.0);
    assert_eq!(read.translations.unwrap().pages, 32);
    // One of two threads has half of each split structure.
    assert_eq!(read.levels[1].bytes, Some(256 << 10));
}

/// A chase through too little memory reports only the caches that it reached.
#[test]
fn unreached_caches_are_not_reported() {
    let preset = Preset::named("p4-ht-512k").unwrap();
    let read = calibrate(&preset, 128 << 10).unwrap();
    assert_eq!((read.levels.len(), read.translations), (2, None));
    assert_eq!(read.levels[1].bytes, None);
}
