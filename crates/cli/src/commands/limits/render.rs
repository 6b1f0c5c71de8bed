//! The limits as text.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::HumanDuration;
use workahead_machine::Machine;
use workahead_machine::limits::siblings::{Behaviour, Pair};
use workahead_machine::limits::{Limits, Origin};
use workahead_machine::pages::Pages;

use super::KnownLimits;
use crate::commands::machine::size;

/// All paragraphs.
pub(super) fn text(known: &KnownLimits, machine: &Machine) -> String {
    let limits = &known.limits;
    let parts = [
        heading(known),
        caches(limits, machine),
        by_size(limits),
        bandwidth(limits),
        small(limits),
        limitations(limits),
        storage(known),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

fn heading(known: &KnownLimits) -> String {
    let limits = &known.limits;
    let processor = limits.processor.as_deref().unwrap_or("unknown processor");
    let taken = UNIX_EPOCH + Duration::from_secs(limits.taken_unix_s);
    let when = match (&known.origin, SystemTime::now().duration_since(taken)) {
        (Some(Origin::Saved(_)), Ok(age)) => format!("{} ago", HumanDuration(age)),
        _ => "now".to_owned(),
    };
    let quick = if limits.quick { ", a rough estimate" } else { "" };
    format!("{processor}, measured {when} in {:.0} s{quick}", limits.seconds)
}

fn caches(limits: &Limits, machine: &Machine) -> String {
    let or_unknown = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), size);
    let line = |label: &str, found: Option<usize>, reported: Option<u64>| {
        let found = or_unknown(found.map(|bytes| bytes as u64));
        format!("  {label:<12}{found:>9}   reported by the system: {}", or_unknown(reported))
    };
    let last = machine.caches.iter().filter(|cache| cache.holds_data()).map(|cache| cache.level);
    let llc = last.max().and_then(|level| machine.cache_bytes(level));
    [
        "Caches, by the latency of loads".to_owned(),
        line("L2", limits.l2_bytes(), machine.cache_bytes(2)),
        line("useful LLC", limits.useful_llc_bytes(), llc),
    ]
    .join("\n")
}

/// Latency, and the best of the three methods of random lines, by footprint.
fn by_size(limits: &Limits) -> String {
    let counts: BTreeSet<usize> = limits.lines.iter().map(|point| point.threads).collect();
    // Wide machines have more counts than a line has room for.
    let counts: Vec<usize> = match counts.len() {
        0..=3 => counts.into_iter().collect(),
        _ => counts.first().into_iter().chain(counts.last()).copied().collect(),
    };
    let pages: Vec<Pages> = [Pages::Huge, Pages::Small]
        .into_iter()
        .filter(|&pages| limits.lines.iter().any(|point| point.pages == pages))
        .collect();
    let mut head = (format!("{:>9}", ""), format!("{:>9}", "footprint"));
    for &on in &pages {
        let words = if on == Pages::Huge { "huge pages" } else { "4 KiB pages" };
        let width = 10 + 12 * counts.len();
        head.0.push_str(&format!("   {words:-^width$}", width = width - 1));
        head.1.push_str(&format!("{:>12}", "latency"));
        for &threads in &counts {
            head.1.push_str(&format!("{:>12}", count(threads)));
        }
    }
    let mut lines =
        vec!["Latency, and million independent random lines a second".to_owned(), head.0, head.1];
    let sizes: BTreeSet<usize> = limits.lines.iter().map(|point| point.bytes).collect();
    for bytes in sizes {
        let mut line = format!("{:>9}", size(bytes as u64));
        for &on in &pages {
            let latency = |at: usize| {
                let mut points = limits.latency.iter();
                points.find(|point| point.pages == on && point.bytes == at).map(|point| point.ns)
            };
            let rate = |threads: usize| {
                let mut points = limits.lines.iter();
                let found = points.find(|point| {
                    (point.pages, point.threads, point.bytes) == (on, threads, bytes)
                });
                found.map(|point| format!("{:.0}", point.best_per_s() / 1e6)).unwrap_or_default()
            };
            let ns = latency(bytes).map(|ns| format!("{ns:.1} ns")).unwrap_or_default();
            line.push_str(&format!("{ns:>12}"));
            counts.iter().for_each(|&threads| line.push_str(&format!("{:>12}", rate(threads))));
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

fn bandwidth(limits: &Limits) -> String {
    let gigabytes = |per_s: f64| format!("{:>8.1}", per_s / 1e9);
    let mut lines = vec![format!(
        "Sequential GB/s        read   store   past the caches ({})",
        limits.instruction_sets.join(", ")
    )];
    for point in &limits.bandwidth {
        let past = point.non_temporal_store_bytes_per_s.map_or("       –".to_owned(), gigabytes);
        lines.push(format!(
            "  {:<16} {}{}  {past}",
            count(point.threads),
            gigabytes(point.read_bytes_per_s),
            gigabytes(point.store_bytes_per_s),
        ));
    }
    lines.join("\n")
}

fn small(limits: &Limits) -> String {
    let mut lines = vec![format!("Pause       {:.1} ns", limits.pause_ns())];
    let pairs = &limits.siblings.pairs;
    // On a large machine only the unexpected pairs.
    let shown = |pair: &&Pair| pairs.len() <= 3 || pair.behaviour() != Behaviour::TwoCores;
    for (i, pair) in pairs.iter().filter(shown).enumerate() {
        let label = if i == 0 { "Siblings" } else { "" };
        lines.push(format!("{label:<12}{}", pair_text(pair)));
    }
    if pairs.len() > 3 {
        let label = if lines.len() == 1 { "Siblings" } else { "" };
        lines.push(format!(
            "{label:<12}{} pairs of CPUs probed; all others are two cores",
            pairs.len()
        ));
    }
    lines.join("\n")
}

/// `CPUs 0 and 1 are two cores: together 99 % of their separate speed; the system agrees`.
fn pair_text(pair: &Pair) -> String {
    let (one, other) = pair.cpus;
    let behaviour = match pair.behaviour() {
        Behaviour::OneCore => "share a core",
        Behaviour::TwoCores => "are two cores",
        Behaviour::Unclear => "may or may not share a core",
    };
    let ratio = pair.throughput_ratio.map_or("too busy to measure".to_owned(), |ratio| {
        format!("together {:.0} % of their separate speed", ratio * 100.0)
    });
    let system = match pair.reported {
        _ if pair.is_disagreement() => "; the system disagrees",
        Some(_) if pair.behaviour() != Behaviour::Unclear => "; the system agrees",
        Some(true) => "; the system reports that they do",
        Some(false) => "; the system reports that they don't",
        None => "; the system reports nothing",
    };
    format!("CPUs {one} and {other} {behaviour}: {ratio}{system}")
}

fn limitations(limits: &Limits) -> String {
    let lines = limits.limitations.iter().map(|words| format!("\n  {words}"));
    match limits.limitations.is_empty() {
        true => String::new(),
        false => format!("Limitations{}", lines.collect::<String>()),
    }
}

fn storage(known: &KnownLimits) -> String {
    match &known.origin {
        Some(Origin::Saved(path)) => {
            format!("kept in {}; --fresh measures again", path.display())
        }
        Some(Origin::Measured(path)) => format!("kept in {}", path.display()),
        Some(Origin::NotKept(error)) => format!("not kept: {error}"),
        None => "not kept: leave out --quick for an exact result that is kept".to_owned(),
    }
}

fn count(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}
