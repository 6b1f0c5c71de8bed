//! Invented limits for tests.

use crate::pages::Pages;

use super::{CacheSizes, LatencyPoint, Limits, LinesPoint, Siblings, VERSION};

/// One and four threads; on huge pages 1000 lines/s at 1 KiB and 100 at 16 KiB; half on 4 KiB.
pub(super) fn limits() -> Limits {
    let mut lines = Vec::new();
    for (threads, pages, factor) in
        [(1, Pages::Huge, 1.0), (4, Pages::Huge, 4.0), (1, Pages::Small, 0.5)]
    {
        for (bytes, per_s) in [(16 << 10, 100.0), (1 << 10, 1000.0)] {
            let mut point = LinesPoint::new(bytes, threads, pages);
            point.prefetch_l2_per_s = per_s * factor;
            point.plain_per_s = per_s * factor * 0.9;
            lines.push(point);
        }
    }
    let latency = [(1 << 10, 1.0), (1 << 20, 100.0)].map(|(bytes, ns)| LatencyPoint {
        bytes,
        pages: Pages::Huge,
        ns,
        median_ns: ns,
    });
    Limits {
        version: VERSION,
        machine: "0".to_owned(),
        processor: None,
        taken_unix_s: 0,
        seconds: 1.0,
        quick: false,
        latency: latency.into(),
        lines,
        bandwidth: Vec::new(),
        instruction_sets: Vec::new(),
        pause_ns: 10.0,
        siblings: Siblings::default(),
        cache_sizes: CacheSizes { l2_bytes: Some(1 << 19), ..CacheSizes::default() },
        huge_share: Some(1.0),
        presence: 1.0,
        limitations: Vec::new(),
    }
}
