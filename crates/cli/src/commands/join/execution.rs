//! Execution of the join: reading, build, probe and output, with their times.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use workahead_join::{HashJoin, JoinError, JoinTable, JoinType, TableLayout, limited_batch_rows};

use super::format::Format;
use super::input::{BatchSize, Input};
use super::output::{Output, RowGroupMetadata};
use super::probe_worker::ProbeWorker;
use super::random_line_limit::MachineLimits;
use super::report::{Phases, Report};
use super::sides::Sides;
use super::units::{Units, Watch};
use crate::memory::Budget;
use crate::progress;

/// Rows of a batch of the build side: few batches to concatenate later.
const BUILD_BATCH_ROWS: usize = 1 << 16;

/// Bytes of a batch that is read: at most, as nothing is gained by more, and at least.
const READ_BYTES_MAX: usize = 64 << 20;
const READ_BYTES_MIN: usize = 64 << 10;
/// The batches of all threads are this fraction (1/32) of the memory limit.
const READ_SHARE: usize = 32;

/// A thread's row group of the output is this fraction of the memory limit (1/24), at least 64 KiB.
const GROUP_SHARE: usize = 24;
const GROUP_BYTES_MIN: usize = 64 << 10;
/// And at most this without a limit: half a million rows of a megabyte fit no memory.
const GROUP_BYTES_MAX: usize = 1 << 30;
/// This fraction (1/5) is left to the allocator's overhead: the process is to stay within 1.5 times
/// the limit.
const HEAP_SHARE: usize = 5;
/// Overhead and reading together take at most this fraction (1/4), or a small limit would leave
/// nothing for the join.
const OVERHEAD_SHARE: usize = 4;

/// A column of either file or of the output, in all batches and readers; as many as most tables
/// have are not worth counting.
const COLUMN_BYTES: usize = 4 << 10;
const COLUMNS_USUAL: usize = 1_000;
/// A column while a thread encodes it as Parquet, and in the metadata of each row group that is
/// written, which stays until the end.
const ENCODER_BYTES: usize = 40 << 10;
const CHUNK_BYTES: usize = 1_536;
/// That metadata is at most this fraction (1/8) of the memory limit.
const METADATA_SHARE: usize = 8;

/// Messages of Arrow together take at most this fraction (1/16) of the memory limit, or are one.
const MESSAGES_SHARE: usize = 16;

/// Messages of Arrow that are read.
struct Messages {
    bytes: usize,
    /// How many may be in memory.
    at_once: usize,
}

impl Messages {
    /// One for each thread if there is room for all of these.
    fn of(inputs: [&Input; 2], threads: usize, limit: Option<usize>) -> Self {
        let Some(limit) = limit else { return Self { bytes: 0, at_once: usize::MAX } };
        let largest = inputs[0].message_bytes().max(inputs[1].message_bytes()).max(1);
        let at_once = (limit / MESSAGES_SHARE / largest).clamp(1, threads);
        Self { bytes: at_once * largest, at_once }
    }
}

/// The parameters of a join.
pub(crate) struct Execution<'a> {
    pub(crate) threads: NonZero<usize>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) out_format: Option<Format>,
    pub(crate) join_type: JoinType,
    pub(crate) filter: Option<String>,
    pub(crate) layout: TableLayout,
    pub(crate) sides: Sides,
    pub(crate) start: Instant,
    pub(crate) limits: &'a MachineLimits,
    pub(crate) budget: Budget,
}

impl Execution<'_> {
    /// Runs the join and reports on it.
    pub(crate) fn run(
        self,
        join: &HashJoin,
        build: &Input,
        probe: &Input,
        interrupted: &'static AtomicBool,
    ) -> anyhow::Result<Report> {
        // First, so that a file that can't be written is an error before any work is done.
        let out = self.out.as_deref();
        let schema = join.schema();
        let format = out.map(|path| Format::of(path, self.out_format));
        let leaves =
            if format == Some(Format::Parquet) { schema.flattened_fields().len() } else { 0 };
        let metadata = RowGroupMetadata {
            bytes: 0,
            bytes_max: self.budget.limit().map_or(usize::MAX, |limit| limit / METADATA_SHARE),
            group_bytes: leaves.saturating_sub(COLUMNS_USUAL) * CHUNK_BYTES,
        };
        let create = |(path, format)| Output::create(path, format, schema.clone(), metadata);
        let output = out.zip(format).map(create).transpose()?;
        let rows = build.rows().zip(probe.rows()).map(|(build, probe)| build + probe);
        let bar = rows.map_or_else(|| progress::count("rows"), |rows| progress::bar(rows, "rows"));
        let watch = Watch { bar: &bar, interrupted };
        let messages = Messages::of([build, probe], self.threads.get(), self.budget.limit());
        let buffers = match self.budget.limit() {
            Some(limit) => {
                let buffers = if out.is_some() { 2 * self.group_bytes() } else { 0 };
                let buffers = buffers.max(leaves * ENCODER_BYTES);
                let columns = [build.schema(), probe.schema(), schema.clone()];
                let columns = columns.iter().map(|schema| schema.flattened_fields().len());
                let columns = columns.sum::<usize>().saturating_sub(COLUMNS_USUAL) * COLUMN_BYTES;
                let reading = build.reading_bytes().max(probe.reading_bytes());
                let overhead = self.threads.get() * reading + limit / HEAP_SHARE;
                self.threads.get() * buffers
                    + overhead.min(limit / OVERHEAD_SHARE)
                    + columns
                    + messages.bytes
            }
            None => 0,
        };
        let _buffers = self.budget.set_aside(buffers)?;
        let mut phases = Phases::default();

        bar.set_message("build");
        let building = Instant::now();
        let table = Arc::new(self.build(join, build, messages.at_once, watch)?);
        phases.build = table.build_time();
        phases.read = building.elapsed().saturating_sub(phases.build);

        bar.set_message("probe");
        let size = self.batch_size(join.probe_batch_rows());
        let units = Units::new(probe, self.threads.get(), size, messages.at_once, watch)?;
        let workers = units.threads();
        let group_bytes = self.group_bytes();
        let worker = |_| ProbeWorker::new(units.cursor(), output.as_ref(), group_bytes, watch);
        let group = (0..workers).map(worker);
        let (group, metrics) = workahead_join::run(&table, group.collect())?;
        let shared = |time: Duration| time / workers as u32;
        for worker in group {
            phases.read += shared(worker.read_time);
            phases.write += shared(worker.write_time);
        }
        phases.probe = shared(metrics.lookup_time);
        phases.gather = shared(metrics.gather_time);
        phases.build += shared(metrics.build_time);
        phases.spill = shared(metrics.spill_time);
        watch.check()?;
        let publishing = Instant::now();
        let out_bytes = output.map(Output::publish).transpose()?;
        phases.write += publishing.elapsed();
        bar.finish_and_clear();
        let limits = self.limits;
        let report = Report::new(self, build, (&table, metrics), phases, out_bytes);
        // Frees memory for the sample of the limit.
        drop(table);
        Ok(report.with_probe(probe, workers, limits))
    }

    /// Size of the batches that are read.
    fn batch_size(&self, rows: usize) -> BatchSize {
        let share = |limit: usize| limit / READ_SHARE / self.threads;
        let bytes = self.budget.limit().map_or(READ_BYTES_MAX, share);
        BatchSize { rows, bytes: bytes.clamp(READ_BYTES_MIN, READ_BYTES_MAX) }
    }

    /// Bytes at which a row group of the output is complete.
    fn group_bytes(&self) -> usize {
        let share = |limit: usize| (limit / GROUP_SHARE / self.threads).max(GROUP_BYTES_MIN);
        self.budget.limit().map_or(GROUP_BYTES_MAX, share)
    }

    /// Reads a file by all threads into the build side.
    fn build(
        &self,
        join: &HashJoin,
        input: &Input,
        messages: usize,
        watch: Watch<'_>,
    ) -> anyhow::Result<JoinTable> {
        // The memory estimate assumes batches of this length.
        let batch_rows = self.budget.limit().map_or(BUILD_BATCH_ROWS, limited_batch_rows);
        let size = self.batch_size(batch_rows);
        let units = Units::new(input, self.threads.get(), size, messages, watch)?;
        let side = Mutex::new(join.build());
        let read = || {
            let mut cursor = units.cursor();
            let push = |batch| side.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
            let result = (|| {
                while let Some(batch) = cursor.next_batch()? {
                    push(batch)?;
                }
                anyhow::Ok(())
            })();
            // Another thread may wait for what this one has.
            drop(cursor);
            result.inspect_err(|_| units.stop())
        };
        let threads = units.threads();
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|_| thread::Builder::new().spawn_scoped(scope, read))
                .collect::<Result<_, _>>()
                .map_err(|source| JoinError::Threads { threads, source })?;
            let mut result = read();
            for other in others {
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(other);
            }
            result
        })?;
        watch.check()?;
        Ok(side.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?)
    }
}
