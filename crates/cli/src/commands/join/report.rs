//! The report of a join, as text and as JSON.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use workahead_join::{JoinTable, ProbeMetrics, TouchedLines};

use super::execution::Execution;
use super::input::Input;
use super::random_line_limit::{Limit, MachineLimits, NOT_MEASURED, Source};
use crate::output;

/// The times of the phases.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Phases {
    pub(crate) read: Duration,
    pub(crate) build: Duration,
    pub(crate) probe: Duration,
    pub(crate) gather: Duration,
    pub(crate) write: Duration,
    pub(crate) spill: Duration,
}

/// The share of lookups at random lines from which they are compared with the random-line limit.
const RANDOM_SHARE_MIN: f64 = 0.5;

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
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
    layout: &'static str,
    layout_why: String,
    bloom_tested_rows: u64,
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
    /// Bytes of the table read per second, for lookups that do not touch lines at random.
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

impl Report {
    pub(crate) fn new(
        execution: Execution<'_>,
        build: &Input,
        (table, metrics): (&JoinTable, ProbeMetrics),
        phases: Phases,
        out_bytes: Option<u64>,
    ) -> Self {
        let choice = table.layout_choice().clone();
        let spilled = table.spill_metrics();
        Self {
            join_type: execution.join_type.name(),
            rows: metrics.output_rows,
            seconds: execution.start.elapsed().as_secs_f64(),
            read_seconds: phases.read.as_secs_f64(),
            build_seconds: phases.build.as_secs_f64(),
            probe_seconds: phases.probe.as_secs_f64(),
            gather_seconds: phases.gather.as_secs_f64(),
            write_seconds: phases.write.as_secs_f64(),
            spill_seconds: phases.spill.as_secs_f64(),
            threads: execution.threads.get(),
            layout: choice.layout.name(),
            layout_why: choice.why,
            bloom_tested_rows: metrics.bloom_tested_rows,
            build_side: execution.sides.build.name(),
            build_side_why: execution.sides.why,
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
            memory_limit_bytes: execution.budget.limit(),
            peak_memory_bytes: execution.budget.pool.peak_bytes(),
            spilled_bytes: spilled.bytes,
            spilled_files: spilled.files,
            spilled_partitions: spilled.partitions,
            spill_levels: spilled.levels,
            spill_chunks: spilled.chunks,
            out: execution.out,
            out_bytes,
        }
    }

    /// With the probe side's file, and the speed of all `workers` threads together.
    pub(crate) fn with_probe(
        mut self,
        probe: &Input,
        workers: usize,
        limits: &MachineLimits,
    ) -> Self {
        self.probe_file = probe.path().to_owned();
        if self.probe_seconds > 0.0 {
            self.lookups_per_second = self.probe_rows as f64 / self.probe_seconds;
            let time = Duration::from_secs_f64(self.probe_seconds);
            let random = self.lines.random_share();
            let reached = (self.lookups_per_second * random, time);
            if random < RANDOM_SHARE_MIN {
                let bytes = self.lines.bytes_per_lookup();
                self.table_bytes_per_second = Some(self.lookups_per_second * bytes);
            } else if self.memory_limit_bytes.is_none() {
                // A sample takes as much memory as the table.
                self.limit = limits.limit(self.table_bytes, workers, reached);
            }
        }
        self
    }
}

/// Prints it.
pub(crate) fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    output::show(json, report, || render(report))
}

fn render(report: &Report) -> String {
    let Report { seconds, threads, layout, layout_why, build_side, build_side_why, .. } = report;
    let rows = HumanCount(report.rows);
    let (keys, build_rows) = (HumanCount(report.build_keys as u64), HumanCount(report.build_rows));
    let table = HumanBytes(report.table_bytes as u64);
    let lookups = report.lookups_per_second / 1e6;
    let limit = match (&report.limit, report.table_bytes_per_second) {
        (_, Some(bytes)) => {
            format!("keys in order: {}/s of the table", HumanBytes(bytes as u64))
        }
        (Some(limit), _) => format!(
            "{:.0} % of the random-line limit{}",
            limit.fraction * 100.0,
            match limit.source {
                Source::Kept => "",
                Source::MeasuredNow =>
                    ", sampled after the join (run workahead limits to measure it well)",
            }
        ),
        (None, None) => format!("random-line limit {NOT_MEASURED}"),
    };
    let mut text = format!(
        "{rows} rows in {seconds:.3} s, {threads} thread{}\n  \
         layout    {layout}: {layout_why}\n  \
         build     {build_side}: {build_side_why}\n  \
         table     {keys} keys of {build_rows} rows, {table}: {}\n  \
         time      {}\n  \
         lookups   {lookups:.1} million per second; {limit}",
        if *threads == 1 { "" } else { "s" },
        report.table_cache,
        times(report),
    );
    if let Some(limit) = report.memory_limit_bytes {
        text += &format!("\n  memory    {}", memory(report, limit));
    }
    if let (Some(out), Some(bytes)) = (&report.out, report.out_bytes) {
        text += &format!("\n  written   {}, {}", out.display(), HumanBytes(bytes));
    }
    text
}

fn memory(report: &Report, limit: usize) -> String {
    let (most, limit) = (HumanBytes(report.peak_memory_bytes as u64), HumanBytes(limit as u64));
    let spilled = match report.spilled_files {
        0 => "nothing spilled".to_owned(),
        files => format!("{} spilled to {files} files", HumanBytes(report.spilled_bytes)),
    };
    format!("{most} of {limit}, {spilled}")
}

fn times(report: &Report) -> String {
    let mut phases = vec![
        ("read", report.read_seconds),
        ("build", report.build_seconds),
        ("probe", report.probe_seconds),
    ];
    if report.out.is_some() {
        phases.extend([("gather", report.gather_seconds), ("write", report.write_seconds)]);
    }
    if report.spilled_files > 0 {
        phases.push(("spill", report.spill_seconds));
    }
    let shown = phases.into_iter().map(|(phase, seconds)| format!("{phase} {seconds:.3} s"));
    shown.collect::<Vec<_>>().join(", ")
}
