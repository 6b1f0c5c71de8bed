//! What a join is worth knowing of, for people and for programs.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use workahead_join::{JoinTable, ProbeMetrics, TouchedLines};

use super::input::Input;
use super::limit::{Bounds, Limit, NOT_MEASURED, Source};
use super::outcome::Outcome;
use crate::output;

/// Where the time went.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Phases {
    pub(crate) read: Duration,
    pub(crate) build: Duration,
    pub(crate) probe: Duration,
    pub(crate) gather: Duration,
    pub(crate) write: Duration,
    pub(crate) spill: Duration,
}

/// The least share of lookups that touch lines at random for the random-line limit to be theirs.
const RANDOM_LEAST: f64 = 0.5;

/// The facts of a join.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(rename = "type")]
    join_type: &'static str,
    rows: u64,
    seconds: f64,
    read_seconds: f64,
    build_seconds: f64,
    probe_seconds: f64,
    gather_seconds: f64,
    write_seconds: f64,
    spill_seconds: f64,
    threads: usize,
    design: &'static str,
    design_why: String,
    sifted_rows: u64,
    build_side: &'static str,
    build_side_why: String,
    build_file: PathBuf,
    build_rows: u64,
    build_keys: usize,
    table_bytes: usize,
    table_cache: String,
    payload_bytes: usize,
    probe_file: PathBuf,
    probe_rows: u64,
    matched_rows: u64,
    lookups_per_second: f64,
    limit: Option<Limit>,
    /// Where lookups do not touch lines at random: the table's bytes that they touched.
    table_bytes_per_second: Option<f64>,
    #[serde(skip)]
    lines: TouchedLines,
    memory_limit_bytes: Option<usize>,
    peak_memory_bytes: usize,
    spilled_bytes: u64,
    spilled_files: u64,
    spilled_partitions: u64,
    spill_levels: u64,
    spill_chunks: u64,
    out: Option<PathBuf>,
    out_bytes: Option<u64>,
}

impl Facts {
    pub(crate) fn new(
        outcome: Outcome<'_>,
        build: &Input,
        (table, metrics): (&JoinTable, ProbeMetrics),
        phases: Phases,
        out_bytes: Option<u64>,
    ) -> Self {
        let choice = table.layout_choice().clone();
        let spilled = table.spill_metrics();
        Self {
            join_type: outcome.join_type.name(),
            rows: metrics.output_rows,
            seconds: outcome.start.elapsed().as_secs_f64(),
            read_seconds: phases.read.as_secs_f64(),
            build_seconds: phases.build.as_secs_f64(),
            probe_seconds: phases.probe.as_secs_f64(),
            gather_seconds: phases.gather.as_secs_f64(),
            write_seconds: phases.write.as_secs_f64(),
            spill_seconds: phases.spill.as_secs_f64(),
            threads: outcome.threads.get(),
            design: choice.layout.name(),
            design_why: choice.why,
            sifted_rows: metrics.bloom_tested_rows,
            build_side: outcome.sides.build.name(),
            build_side_why: outcome.sides.why,
            build_file: build.path().to_owned(),
            build_rows: table.input_rows() as u64,
            build_keys: table.keys(),
            table_bytes: table.table_bytes(),
            table_cache: table.spec().caches().describe_fit(table.table_bytes()),
            payload_bytes: table.payload_bytes(),
            probe_file: PathBuf::new(),
            probe_rows: metrics.probe_rows,
            matched_rows: metrics.matched_rows,
            lookups_per_second: 0.0,
            limit: None,
            table_bytes_per_second: None,
            lines: metrics.lines,
            memory_limit_bytes: outcome.budget.limit(),
            peak_memory_bytes: outcome.budget.pool.peak_bytes(),
            spilled_bytes: spilled.bytes,
            spilled_files: spilled.files,
            spilled_partitions: spilled.partitions,
            spill_levels: spilled.levels,
            spill_chunks: spilled.chunks,
            out: outcome.out,
            out_bytes,
        }
    }

    /// With the probe side's file, and the speed that `workers` threads reached together.
    pub(crate) fn probed(mut self, probe: &Input, workers: usize, bounds: &Bounds) -> Self {
        self.probe_file = probe.path().to_owned();
        if self.probe_seconds > 0.0 {
            self.lookups_per_second = self.probe_rows as f64 / self.probe_seconds;
            let time = Duration::from_secs_f64(self.probe_seconds);
            let random = self.lines.random_share();
            let reached = (self.lookups_per_second * random, time);
            if random < RANDOM_LEAST {
                let bytes = self.lines.bytes_per_lookup();
                self.table_bytes_per_second = Some(self.lookups_per_second * bytes);
            } else if self.memory_limit_bytes.is_none() {
                // A sample takes as much memory as the table: there may be none.
                self.limit = bounds.limit(self.table_bytes, workers, reached);
            }
        }
        self
    }
}

/// Prints the facts.
pub(crate) fn print(facts: &Facts, json: bool) -> anyhow::Result<()> {
    if json { output::json(facts) } else { output::text(&told(facts)) }
}

fn told(facts: &Facts) -> String {
    let Facts { seconds, threads, design, design_why, build_side, build_side_why, .. } = facts;
    let rows = HumanCount(facts.rows);
    let (keys, build_rows) = (HumanCount(facts.build_keys as u64), HumanCount(facts.build_rows));
    let table = HumanBytes(facts.table_bytes as u64);
    let lookups = facts.lookups_per_second / 1e6;
    let limit = match (&facts.limit, facts.table_bytes_per_second) {
        (_, Some(bytes)) => {
            format!("keys in order: {}/s of the table", HumanBytes(bytes as u64))
        }
        (Some(limit), _) => format!(
            "{:.0} % of the random-line limit{}",
            limit.fraction * 100.0,
            match limit.source {
                Source::Kept => "",
                Source::MeasuredNow => ", sampled now (run workahead limits to measure it well)",
            }
        ),
        (None, None) => format!("random-line limit {NOT_MEASURED}"),
    };
    let mut text = format!(
        "{rows} rows in {seconds:.3} s, {threads} thread{}\n  \
         design    {design}: {design_why}\n  \
         build     {build_side}: {build_side_why}\n  \
         table     {keys} keys of {build_rows} rows, {table}: {}\n  \
         time      {}\n  \
         lookups   {lookups:.1} million per second; {limit}",
        if *threads == 1 { "" } else { "s" },
        facts.table_cache,
        times(facts),
    );
    if let Some(limit) = facts.memory_limit_bytes {
        text += &format!("\n  memory    {}", memory(facts, limit));
    }
    if let (Some(out), Some(bytes)) = (&facts.out, facts.out_bytes) {
        text += &format!("\n  written   {}, {}", out.display(), HumanBytes(bytes));
    }
    text
}

fn memory(facts: &Facts, limit: usize) -> String {
    let (most, limit) = (HumanBytes(facts.peak_memory_bytes as u64), HumanBytes(limit as u64));
    let spilled = match facts.spilled_files {
        0 => "nothing spilled".to_owned(),
        files => format!("{} spilled to {files} files", HumanBytes(facts.spilled_bytes)),
    };
    format!("{most} of {limit}, {spilled}")
}

fn times(facts: &Facts) -> String {
    let mut phases = vec![
        ("read", facts.read_seconds),
        ("build", facts.build_seconds),
        ("probe", facts.probe_seconds),
    ];
    if facts.out.is_some() {
        phases.extend([("gather", facts.gather_seconds), ("write", facts.write_seconds)]);
    }
    if facts.spilled_files > 0 {
        phases.push(("spill", facts.spill_seconds));
    }
    let shown = phases.into_iter().map(|(phase, seconds)| format!("{phase} {seconds:.3} s"));
    shown.collect::<Vec<_>>().join(", ")
}
