//! Results as runs would leave them, made without running: a cell's throughput is a formula, its
//! wobble a hash.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod collected;
pub(crate) mod instrumented;
pub(crate) mod published;
pub(crate) mod served;
pub(crate) mod siblings;

use std::collections::BTreeMap;

use serde_json::json;
use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, Need, Sample};
use workahead_study::observation::{Observation, Outcome};
use workahead_study::record::{Host, Record};
use workahead_study::results::Results;
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

/// Four operators at three sizes, seven techniques: a page of panels.
pub(crate) const QUICK: &str = include_str!("quick.toml");
/// One operator, one size, the paper's three techniques and more: one wide chart.
pub(crate) const HASH_JOIN: &str = include_str!("hash_join.toml");
/// The size of the work-ahead set against its variants: curves.
pub(crate) const SIZES: &str = include_str!("sizes.toml");

/// A finished run of a study. `reach` gives the throughput of a cell in Mtuples/s.
pub(crate) fn results(id: &str, text: &str, reach: &dyn Fn(&Cell) -> f64) -> Results {
    let spec = Spec::parse(id, text).unwrap();
    let run_plan = RunPlan::new(&spec);
    let record = record(&spec, &run_plan);
    let visits = (0..run_plan.blocks).flat_map(|block| {
        let run_plan = &run_plan;
        (0..run_plan.repetitions).flat_map(move |repetition| run_plan.visits(block, repetition))
    });
    let seen = |(at, visit): (usize, workahead_study::run_plan::Visit)| {
        let cell = &run_plan.cells[visit.cell];
        Observation {
            study: id.to_owned(),
            run_plan_fingerprint: record.run_plan_fingerprint.clone(),
            cell: visit.cell,
            settings: cell.settings.clone(),
            repetition: visit.repetition,
            slot: visit.slot,
            unix_ms: record.started_unix_ms + 400 * at as u64,
            outcome: Outcome::Sample(sample(cell, visit.repetition, reach(cell))),
        }
    };
    let observations = visits.enumerate().map(seen).collect();
    Results { record, spec, run_plan, observations }
}

fn record(spec: &Spec, run_plan: &RunPlan) -> Record {
    Record {
        study: spec.id.clone(),
        run_plan_fingerprint: "9d41c07be2a35f18".to_owned(),
        scale: None,
        repetitions: None,
        seed: spec.seed,
        engine: spec.engine.clone(),
        engine_version: "0.1.0 (avx2)".to_owned(),
        command_version: "0.1.0".to_owned(),
        started_unix_ms: 1_770_818_580_000,
        host: host(),
        limits: Some(json!({
            "latency": { "l1_ns": 1.4, "l2_ns": 4.1, "memory_ns": 104.0 },
            "random_lines_per_s": { "one_thread": 95.2e6, "two_threads": 181.0e6 },
            "l2_bytes": 524_288, "useful_cache_bytes": 17_301_504,
            "pause_ns": 12.1,
        })),
        models: run_plan.models(&[]).unwrap(),
        needs: vec![Need { memory_bytes: 900 << 20, ..Need::default() }; run_plan.cells.len()],
        text: spec.text.clone(),
    }
}

fn host() -> Host {
    Host {
        name: "AMD EPYC 7713, 2 CPUs".to_owned(),
        fingerprint: "6f1d2c3b4a596877".to_owned(),
        tier: "C".to_owned(),
        tier_reason: "the virtual machine is given no event source: run on real hardware"
            .to_owned(),
        siblings: false,
        counters: false,
        cores: 2,
        description: json!({
            "processor": "AMD EPYC 7713 64-Core Processor",
            "architecture": "x86_64",
            "kernel": "6.1.0-18-cloud-amd64",
            "virtualisation": { "kind": "virtual", "hypervisor": "KVM" },
            "cpus": { "present": [0, 1], "online": [0, 1], "allowed": [0, 1], "quota": null },
            "smt": "none",
            "packages": [{ "id": 0, "cpus": [0, 1] }],
            "nodes": [{ "id": 0, "cpus": [0, 1], "memory_bytes": 25_769_803_776_u64 }],
            "cores": [
                { "cpus": [0], "kind": "uniform", "package": 0, "node": 0 },
                { "cpus": [1], "kind": "uniform", "package": 0, "node": 0 },
            ],
            "caches": [
                cache(1, "data", 32 << 10, &[0]), cache(1, "data", 32 << 10, &[1]),
                cache(2, "unified", 512 << 10, &[0]), cache(2, "unified", 512 << 10, &[1]),
                cache(3, "unified", 32 << 20, &[0, 1]),
            ],
            "memory": {
                "total_bytes": 25_769_803_776_u64, "available_bytes": 20_000_000_000_u64,
                "cgroup_limit_bytes": null, "allowed_bytes": 20_000_000_000_u64,
            },
            "huge_pages": {
                "transparent": "madvise", "defragmentation": "madvise",
                "transparent_bytes": 2_097_152, "reserved": [],
            },
            "tlb": { "source": "cpuid", "levels": [
                { "level": 1, "page_bytes": 4096, "entries": 64 },
                { "level": 2, "page_bytes": 4096, "entries": 2048 },
            ] },
            "counters": {
                "state": "hidden-by-virtual-machine", "sources": [], "paranoid": 2, "tier": "C",
                "reason": "no event source",
            },
        }),
    }
}

fn cache(level: u32, kind: &str, bytes: u64, cpus: &[u32]) -> serde_json::Value {
    json!({
        "level": level, "kind": kind, "bytes": bytes, "line_bytes": 64, "ways": 8, "cpus": cpus,
    })
}

fn sample(cell: &Cell, repetition: u32, mtuples_per_s: f64) -> Sample {
    let tuples = cell.integer("rows").unwrap_or(2_000_000).unsigned_abs();
    let wobble = 1.0 + 0.02 * unit(cell.index as u64 * 97 + u64::from(repetition));
    let wall_s = tuples as f64 / 1e6 / mtuples_per_s * wobble;
    let threads = if cell.get("threads").is_some() { 2.0 } else { 1.0 };
    let ceiling = match cell.text("size") {
        Some("in cache") => 1900.0,
        Some("around the knee") => 160.0,
        _ => 54.0,
    };
    let limit = ceiling * if threads > 1.0 { 1.9 } else { 1.0 };
    let measures = [("limit_mtuples_per_s", limit), ("table_bytes", 134_217_728.0)];
    Sample {
        wall_s,
        cpu_s: Some(wall_s * threads * 0.99),
        tuples,
        answer: Answer { rows: tuples, checksum: 0x5EED ^ (cell.block as u64) << 40 },
        measures: BTreeMap::from(measures.map(|(name, value)| (name.to_owned(), value))),
        ..Sample::default()
    }
}

/// Something between −1 and 1 that differs for every argument (a step of splitmix64).
fn unit(argument: u64) -> f64 {
    let mut mixed = argument.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Throughputs as a two-core machine without SMT gives them.
pub(crate) fn quick() -> Results {
    results("quick", QUICK, &|cell| {
        let sequential = match cell.text("operator").unwrap() {
            "hash_join" => [61.0, 17.0, 6.4],
            "csb_tree" => [22.0, 6.1, 1.3],
            "join_index" => [88.0, 24.0, 9.8],
            _ => [142.0, 44.0, 15.5],
        };
        let size = match cell.text("size").unwrap() {
            "in cache" => 0,
            "around the knee" => 1,
            _ => 2,
        };
        let gain = match cell.case() {
            "sequential" => [1.0, 1.0, 1.0],
            "staged" => [0.82, 1.12, 1.38],
            "group prefetching" => [0.86, 1.55, 2.35],
            "AMAC" => [0.79, 1.48, 2.52],
            "independent parallel" => [1.94, 1.96, 1.9],
            "bi-threaded AMAC" => [1.5, 2.9, 4.71],
            _ => [0.71, 1.0, 1.36],
        };
        sequential[size] * gain[size]
    })
}

pub(crate) fn hash_join() -> Results {
    results("zhou/hash_join", HASH_JOIN, &|cell| match cell.case() {
        "sequential" => 6.4,
        "staged" => 8.8,
        "group prefetching" => 15.1,
        "AMAC" => 16.2,
        "coroutines" => 12.2,
        "independent parallel" => 12.1,
        "bi-threaded" => 12.4,
        "bi-threaded AMAC" => 30.1,
        "mutex-protected" => 1.9,
        _ => 8.6,
    })
}

pub(crate) fn sizes() -> Results {
    results("zhou/set_size", SIZES, &|cell| {
        let entries = cell.integer("set_entries").unwrap() as f64;
        let (height, peak) = match cell.case() {
            "sequential" => return 6.4,
            "backward, spin" => (0.55, 8.0),
            "backward, no spin" => (0.5, 8.4),
            "forward, spin" => (0.2, 7.0),
            _ => (0.23, 7.6),
        };
        let bump = (-((entries.log2() - peak) / 2.3).powi(2)).exp();
        6.4 * (0.88 + height * bump)
    })
}
