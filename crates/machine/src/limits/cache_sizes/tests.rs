//! Cache sizes of invented curves of known caches, with noise; and of recorded curves of a busy
//! machine.

use super::*;
use crate::pages::Pages;

/// How a cache treats a cyclic walk that is larger than itself.
#[derive(Clone, Copy)]
enum Replacement {
    /// Nothing of it is found again.
    Oldest,
    /// A line is found with the probability that it was not replaced.
    Random,
}

/// `(bytes, ns)` of each cache, then memory's ns and its rise per octave.
fn curve(caches: &[(usize, f64)], memory: (f64, f64), how: Replacement) -> Vec<LatencyPoint> {
    let last = caches.last().unwrap().0 as f64;
    let latency = |bytes: f64| {
        let rise = 1.0 + memory.1 * (bytes / last / 2.0).log2().max(0.0);
        let mut ns = memory.0 * rise;
        for &(size, cache_ns) in caches.iter().rev() {
            let fits = size as f64 / bytes;
            let found = match how {
                // A quarter of an octave from all to nothing: sets fill unevenly.
                Replacement::Oldest => ((fits.log2() + 0.25) * 4.0).clamp(0.0, 1.0),
                Replacement::Random => fits.min(1.0),
            };
            ns = ns * (1.0 - found) + cache_ns * found;
        }
        ns
    };
    (0..17 * 4)
        .map(|quarter| {
            let bytes = (16384.0 * 2f64.powf(f64::from(quarter) / 4.0)) as usize;
            let ns = latency(bytes as f64);
            LatencyPoint { bytes, pages: Pages::Huge, ns, median_ns: ns }
        })
        .collect()
}

/// Every point up to so much slower, every seventh three times as slow.
fn disturbed(mut curve: Vec<LatencyPoint>, most: f64, seed: u64) -> Vec<LatencyPoint> {
    let mut state = seed * 2 + 1;
    for (i, point) in curve.iter_mut().enumerate() {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let share = (state >> 33) as f64 / (1u64 << 31) as f64;
        point.ns *= 1.0 + share * most;
        if i % 7 == seed as usize % 7 {
            point.ns *= 3.0;
        }
        point.median_ns = point.ns;
    }
    curve
}

fn at(point: &LatencyPoint, ns: f64) -> LatencyPoint {
    LatencyPoint { ns, median_ns: ns, ..*point }
}

fn assert_within(found: Option<usize>, expected: usize, factor: f64, reported: &str) {
    let ratio = found.unwrap_or(0) as f64 / expected as f64;
    assert!(
        ratio <= factor && ratio >= 1.0 / factor,
        "{reported}: {found:?} instead of {expected}, ×{ratio:.2}"
    );
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Three caches, then memory.
type Processor = ([(usize, f64); 3], (f64, f64));

/// Desktop, server, laptop, ARM server, a small slice of a shared last level.
const PROCESSORS: [Processor; 6] = [
    ([(32 * KIB, 1.2), (512 * KIB, 3.6), (32 * MIB, 14.0)], (110.0, 0.05)),
    ([(48 * KIB, 1.5), (2 * MIB, 4.8), (60 * MIB, 28.0)], (140.0, 0.04)),
    ([(48 * KIB, 1.3), (1280 * KIB, 4.0), (12 * MIB, 16.0)], (95.0, 0.1)),
    ([(64 * KIB, 1.3), (1024 * KIB, 4.3), (32 * MIB, 32.0)], (110.0, 0.08)),
    ([(32 * KIB, 2.6), (512 * KIB, 4.8), (8 * MIB, 20.0)], (150.0, 0.15)),
    ([(32 * KIB, 1.1), (256 * KIB, 3.0), (384 * MIB, 24.0)], (120.0, 0.05)),
];

#[test]
fn caches_of_known_sizes_are_found() {
    for (caches, memory) in PROCESSORS {
        for how in [Replacement::Oldest, Replacement::Random] {
            let sizes = CacheSizes::of(&curve(&caches, memory, how));
            assert_within(sizes.l2_bytes, caches[1].0, 1.5, "L2");
            assert_within(sizes.useful_llc_bytes, caches[2].0, 1.5, "LLC");
        }
    }
}

#[test]
fn disturbances_move_them_little() {
    // The last one's memory is hardly seen before the curve ends.
    for (caches, memory) in PROCESSORS.into_iter().take(5) {
        // Random replacement makes a step so soft that noise can hide its foot.
        for (how, most) in [(Replacement::Oldest, 0.15), (Replacement::Random, 0.05)] {
            for seed in 0..2 {
                let sizes = CacheSizes::of(&disturbed(curve(&caches, memory, how), most, seed));
                assert_within(sizes.l2_bytes, caches[1].0, 1.5, "L2");
                assert_within(sizes.useful_llc_bytes, caches[2].0, 1.5, "LLC");
            }
        }
    }
}

#[test]
fn without_a_third_level_the_second_is_the_last() {
    let two = [(64 * KIB, 1.4), (1024 * KIB, 5.0)];
    for how in [Replacement::Oldest, Replacement::Random] {
        let sizes = CacheSizes::of(&curve(&two, (120.0, 0.02), how));
        assert_within(sizes.l2_bytes, 1024 * KIB, 1.5, "L2");
        assert_eq!(sizes.useful_llc_bytes, sizes.l2_bytes);
    }
}

#[test]
fn too_little_of_a_curve_shows_nothing() {
    let whole = curve(&PROCESSORS[0].0, PROCESSORS[0].1, Replacement::Oldest);
    assert_eq!(CacheSizes::of(&[]), CacheSizes::default());
    assert_eq!(CacheSizes::of(&whole[..8]), CacheSizes::default());
    let broken: Vec<_> = whole.iter().map(|point| at(point, f64::NAN)).collect();
    assert_eq!(CacheSizes::of(&broken), CacheSizes::default());
    let flat: Vec<_> = whole.iter().map(|point| at(point, 3.0)).collect();
    assert_eq!(CacheSizes::of(&flat), CacheSizes::default());
    // Up to 4 MiB: the second level can be seen, the third can't.
    let short = CacheSizes::of(&whole[..33]);
    assert_within(short.l2_bytes, 512 * KIB, 1.5, "L2");
    assert_eq!(short.useful_llc_bytes, None);
}

#[test]
fn the_order_of_points_does_not_matter() {
    let mut points = curve(&PROCESSORS[1].0, PROCESSORS[1].1, Replacement::Random);
    let sizes = CacheSizes::of(&points);
    points.reverse();
    assert_eq!(CacheSizes::of(&points), sizes);
}

/// Five recordings in a row: a virtual machine with 512 KiB of L2 to a core, which others kept busy
/// (13 threads wanted its two CPUs), and a last level of 32 MiB shared with other machines.
const RECORDED: [&str; 5] = [
    include_str!("../../../fixtures/latency/shared-server-1.txt"),
    include_str!("../../../fixtures/latency/shared-server-2.txt"),
    include_str!("../../../fixtures/latency/shared-server-3.txt"),
    include_str!("../../../fixtures/latency/shared-server-4.txt"),
    include_str!("../../../fixtures/latency/shared-server-5.txt"),
];

fn recorded(text: &str) -> Vec<LatencyPoint> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let point = |line: &str| {
        let figures: Vec<f64> = line.split(' ').map(|figure| figure.parse().unwrap()).collect();
        let [bytes, ns, median_ns] = figures[..] else { panic!("{line}") };
        LatencyPoint { bytes: bytes as usize, pages: Pages::Huge, ns, median_ns }
    };
    lines.map(point).collect()
}

#[test]
fn a_busy_machine_is_measured_alike_five_times() {
    let sizes = RECORDED.map(|text| CacheSizes::of(&recorded(text)));
    for one in sizes {
        assert_within(one.l2_bytes, 512 * KIB, 1.2, "L2");
        for other in sizes {
            let llc = other.useful_llc_bytes.unwrap();
            assert_within(one.useful_llc_bytes, llc, 1.5, "useful LLC");
        }
    }
}

#[test]
fn the_last_level_is_what_is_usually_left_of_it() {
    // Best passes find all of it; the median ones a quarter, as strangers fill the rest.
    let (processor, memory) = PROCESSORS[0];
    let mut shared = processor;
    shared[2].0 /= 4;
    let best = curve(&processor, memory, Replacement::Oldest);
    let usual = curve(&shared, memory, Replacement::Oldest);
    let points: Vec<LatencyPoint> = best
        .iter()
        .zip(&usual)
        .map(|(best, usual)| LatencyPoint { median_ns: usual.ns.max(best.ns), ..*best })
        .collect();
    let sizes = CacheSizes::of(&points);
    assert_within(sizes.l2_bytes, 512 * KIB, 1.5, "L2");
    assert_within(sizes.useful_llc_bytes, 8 * MIB, 1.5, "useful LLC");
}
