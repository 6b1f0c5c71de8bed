//! A result out of the constructed recordings: the whole of one where siblings are on, its first
//! logical CPUs where they are out.

use serde_json::json;
use workahead_counters::stream::{OnCpu, Slot, Stream};
use workahead_study::collection::Collection;
use workahead_study::observation::Outcome;
use workahead_study::results::Results;

use super::results;

/// With a top-down of each sibling, and with none.
const ZEN: &str = include_str!("../../../counters/recordings/amd-zen4.jsonl");
const SKYLAKE: &str = include_str!("../../../counters/recordings/intel-skylake-sp.jsonl");

const STUDY: &str = r#"
title = "What each sibling waits for"
question = "Which stalls do siblings share?"
engine = "postgres"
workload = { workload = "dbmbench", rows = 100_000 }
[[cases]]
name = "siblings out"
smt = "off-hotplug"
[[cases]]
name = "siblings on"
smt = "on"
[method]
repetitions = 1
warmup = 0
baseline = { case = "siblings out" }
tuples = "queries"
counters = ["all"]
"#;

/// A recording of processors that nobody has, with siblings out and on. H1 misses more.
pub(crate) fn siblings() -> Results {
    with_limits(of(ZEN, &[0, 2]))
}

/// Slots are counted for the core only, and the misses of one level not at all.
pub(crate) fn without_slots() -> Results {
    with_limits(of(SKYLAKE, &[0, 1]))
}

/// No pause takes so long: another program wrote it.
pub(crate) fn with_wrong_limits() -> Results {
    let mut results = siblings();
    let mut limits = limits();
    limits["pause_ns"] = json!(1e300);
    results.record.limits = Some(limits);
    results
}

/// Nobody measured what a miss costs.
pub(crate) fn without_limits() -> Results {
    of(ZEN, &[0, 2])
}

fn with_limits(mut results: Results) -> Results {
    results.record.limits = Some(limits());
    results.record.host.tier = "A".to_owned();
    results.record.host.counters = true;
    results.record.host.siblings = true;
    results
}

/// `firsts` are the first logical CPUs of each core.
fn of(recording: &str, firsts: &[u32]) -> Results {
    let whole = Stream::read(&mut recording.as_bytes()).unwrap();
    let mut results = results("demo/siblings", STUDY, &|_| 1.0);
    let cells = results.run_plan.cells.clone();
    for seen in &mut results.observations {
        let stream = match cells[seen.cell].case() {
            "siblings out" => whole.on(firsts),
            _ => more_misses(&whole, firsts),
        };
        if let Outcome::Sample(sample) = &mut seen.outcome {
            sample.measures.clear();
            let collection = Collection { counts: Some(stream), ..Collection::default() };
            sample.collection = Some(Box::new(collection));
        }
    }
    results.record.limits = None;
    results
}

/// The second logical CPU of each core waits and misses half as much again.
fn more_misses(whole: &Stream, firsts: &[u32]) -> Stream {
    let groups = &whole.header.groups;
    let slot = |slot: &Slot| {
        let names = groups[slot.group].events.iter().map(|event| event.name.as_str());
        let is_more: Vec<bool> =
            names.map(|name| name.contains("_MISS") || name.contains("_miss")).collect();
        let on = |on: &OnCpu| {
            let mut on = on.clone();
            let values = on.reading.values.iter_mut().zip(&is_more);
            let second = on.cpu.is_some_and(|cpu| !firsts.contains(&cpu));
            values.filter(|(_, more)| second && **more).for_each(|(value, _)| *value += *value / 2);
            on
        };
        Slot { cpus: slot.cpus.iter().map(on).collect(), ..slot.clone() }
    };
    Stream { header: whole.header.clone(), slots: whole.slots.iter().map(slot).collect() }
}

/// Latencies like a Skylake's; small pages add 30 ns far beyond the caches.
fn limits() -> serde_json::Value {
    let point = |bytes: usize, pages: &str, ns: f64| {
        json!({
            "bytes": bytes, "pages": pages, "ns": ns, "median_ns": ns,
        })
    };
    json!({
        "version": workahead_machine::limits::VERSION, "machine": "a machine of this test",
        "processor": null, "taken_unix_s": 1_770_818_580, "seconds": 29.0, "quick": false,
        "latency": [
            point(16 << 10, "huge", 1.3), point(512 << 10, "huge", 4.5),
            point(16 << 20, "huge", 21.0), point(256 << 20, "huge", 92.0),
            point(256 << 20, "small", 122.0),
        ],
        "lines": [{
            "bytes": 16_384, "threads": 1, "pages": "huge", "plain_per_s": 1e9,
            "prefetch_l1_per_s": 1e9, "prefetch_l2_per_s": 1e9,
        }],
        "bandwidth": [], "instruction_sets": [], "pause_ns": 44.0,
        "siblings": { "pairs": [
            { "cpus": [0, 32], "reported": true, "throughput_ratio": 0.5 },
        ] },
        "cache_sizes": { "l2_bytes": 1 << 20, "useful_llc_bytes": 32 << 20 },
        "huge_share": 1.0, "presence": 1.0, "limitations": [],
    })
}
