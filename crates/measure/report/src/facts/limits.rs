//! The machine's measured limits in a few lines: the ends of each curve and the sizes between.

use workahead_machine::limits::{BandwidthPoint, Limits, LinesPoint};
use workahead_machine::pages::Pages;

use super::Fact;
use crate::{date, number, words};

/// Footprints at which the latency is shown, where they were measured: one for each level of
/// memory that machines usually have.
const LISTED_BYTES: [usize; 3] = [16 << 10, 256 << 10, 8 << 20];

pub(super) fn facts(limits: &Limits) -> Vec<Fact> {
    let size = |bytes: Option<usize>| match bytes {
        Some(bytes) => number::bytes(bytes as u64),
        None => "not seen in the latency curve".to_owned(),
    };
    let mut facts = vec![
        Fact::new("second-level cache", size(limits.l2_bytes())),
        Fact::new("useful last-level cache", size(limits.useful_llc_bytes())),
    ];
    for pages in [Pages::Huge, Pages::Small] {
        let on = words_of(pages);
        let mut push = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| Fact::new(&format!("{name}, {on}"), value)));
        };
        push("load that waits for the last", latency(limits, pages));
        push("random cache lines", lines(limits, pages));
    }
    facts.extend(bandwidth(limits).map(|text| Fact::new("sequential, per second", text)));
    facts.push(Fact::new("pause instruction", format!("{} ns", number::plain(limits.pause_ns))));
    let taken = date::utc(limits.taken_unix_s.saturating_mul(1000));
    facts.push(Fact::new("taken", format!("{taken}, in {}", number::seconds(limits.seconds))));
    if !limits.limitations.is_empty() {
        facts.push(Fact::new("not shown", limits.limitations.join("; ")));
    }
    facts
}

fn words_of(pages: Pages) -> &'static str {
    match pages {
        Pages::Huge => "huge pages",
        Pages::Small => "4 KiB pages",
    }
}

/// `1.4 ns in 16 KiB · 104 ns in 4 GiB`.
fn latency(limits: &Limits, pages: Pages) -> Option<String> {
    let points = || limits.latency.iter().filter(|point| point.pages == pages);
    let largest = points().map(|point| point.bytes).max()?;
    let is_listed = |bytes| bytes == largest || LISTED_BYTES.contains(&bytes);
    let text = points().filter(|point| is_listed(point.bytes)).map(|point| {
        format!("{} ns in {}", number::plain(point.ns), number::bytes(point.bytes as u64))
    });
    Some(text.collect::<Vec<_>>().join(" · "))
}

/// `54.1 million/s by 1 thread · 103 million/s by 2 threads, in 4 GiB`.
fn lines(limits: &Limits, pages: Pages) -> Option<String> {
    let points = || limits.lines.iter().filter(|point| point.pages == pages);
    let largest = points().map(|point| point.bytes).max()?;
    let text = |point: &LinesPoint| {
        let rate = number::plain(point.best_per_s() / 1e6);
        format!("{rate} million/s by {}", words::counted(point.threads, "thread"))
    };
    let text = points().filter(|point| point.bytes == largest).map(text);
    let text = text.collect::<Vec<_>>().join(" · ");
    Some(format!("{text}, in {}", number::bytes(largest as u64)))
}

fn bandwidth(limits: &Limits) -> Option<String> {
    let largest = limits.bandwidth.iter().map(|point| point.bytes).max()?;
    let rate = |bytes_per_s: f64| format!("{} GB", number::plain(bytes_per_s / 1e9));
    let text = |point: &BandwidthPoint| {
        let mut text = format!(
            "read {}, store {}",
            rate(point.read_bytes_per_s),
            rate(point.store_bytes_per_s)
        );
        if let Some(past) = point.non_temporal_store_bytes_per_s {
            text.push_str(&format!(", store past the caches {}", rate(past)));
        }
        format!("{text} by {}", words::counted(point.threads, "thread"))
    };
    let text = limits.bandwidth.iter().filter(|point| point.bytes == largest).map(text);
    Some(text.collect::<Vec<_>>().join(" · "))
}
