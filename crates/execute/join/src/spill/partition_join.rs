//! Joins a spilled partition of both sides: as a join of its own, one level deeper, or by block
//! nested loops.
//!
//! ```text
//! Building ──► Probing ──► Flushing ──► FinalPhase ──► Done
//! BlockNestedLoop ───────────────────────────────────► Done      many rows of one key
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::block_nested_loop::BlockNestedLoopJoin;
use super::file::{SpillFile, SpillReader};
use super::level::Level;
use crate::build_side::BuildSide;
use crate::context::Context;
use crate::join_type::SideOutput;
use crate::{FinalPhase, JoinError, JoinSpec, ProbeMetrics, Prober, Progress, Reservation};

/// Most levels of partitioning: a million partitions even with the fewest for each level, and no
/// more bits than a hash has.
const DEPTH_MAX: u32 = 10;

/// A partition's files of both sides.
#[derive(Clone)]
pub(crate) struct PartitionPair {
    pub(crate) build: SpillFile,
    /// One for each prober that had rows for the partition.
    pub(crate) probe: Vec<SpillFile>,
    /// The level of recursive partitioning at which it is joined.
    pub(crate) level: Level,
    /// Whether partitioning it again would not make it smaller.
    pub(crate) unsplittable: bool,
}

/// A partition pair being joined.
pub(crate) struct PartitionJoin {
    state: State,
    /// Memory for reading the files.
    reading: Reservation,
    metrics: ProbeMetrics,
}

enum State {
    Building {
        side: Box<BuildSide>,
        build: SpillReader,
        probe: Vec<SpillFile>,
    },
    Probing {
        prober: Box<Prober>,
        batches: Batches,
        has_output: bool,
    },
    /// Outputs held back.
    Flushing {
        prober: Box<Prober>,
        final_phase: Option<FinalPhase>,
    },
    FinalPhase(FinalPhase),
    BlockNestedLoop(Box<BlockNestedLoopJoin>),
    Done,
}

impl PartitionJoin {
    pub(crate) fn new(
        spec: &Arc<JoinSpec>,
        context: &Context,
        pair: PartitionPair,
    ) -> Result<Self, JoinError> {
        let output_rules = spec.output_rules();
        let mut reading = context.reservation();
        let probe_bytes = pair.probe.iter().map(SpillFile::reading_bytes).max().unwrap_or(0);
        let bytes = pair.build.reading_bytes() + probe_bytes;
        reading.grow(bytes).map_err(|short| context.short(short))?;
        // Without probe rows, only joins that output unmatched build rows have output.
        let no_output = pair.probe.is_empty()
            && matches!(output_rules.build, SideOutput::Never | SideOutput::Matched);
        let state = if no_output {
            State::Done
        } else if pair.unsplittable || pair.level.depth >= DEPTH_MAX {
            State::BlockNestedLoop(Box::new(BlockNestedLoopJoin::new(
                spec, context, pair.build, pair.probe,
            )?))
        } else {
            let side = BuildSide::at(pair.level, spec, context.clone());
            let side = side.with_probe_batch_size(SpillFile::batch_size(&pair.probe));
            let build = pair.build.read()?;
            State::Building { side: Box::new(side), build, probe: pair.probe }
        };
        Ok(Self { state, reading, metrics: ProbeMetrics::default() })
    }

    /// Does a bounded step of the work.
    pub(crate) fn advance(&mut self) -> Result<Progress, JoinError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Building { mut side, mut build, probe } => {
                let start = Instant::now();
                let batch = build.next_batch()?;
                self.metrics.spill_time += start.elapsed();
                if let Some(batch) = batch {
                    side.push(batch)?;
                    self.state = State::Building { side, build, probe };
                    return Ok(Progress::Working);
                }
                drop(build);
                let table = side.finish()?;
                self.metrics.build_time += table.build_time();
                let prober = Box::new(Prober::new(Arc::new(table)));
                let batches = Batches::new(probe);
                self.state = State::Probing { prober, batches, has_output: false };
                Ok(Progress::Working)
            }
            State::Probing { mut prober, mut batches, has_output } => {
                if has_output {
                    let (progress, has_output) = match prober.advance()? {
                        Progress::Done => (Progress::Working, false),
                        progress => (progress, true),
                    };
                    self.state = State::Probing { prober, batches, has_output };
                    return Ok(progress);
                }
                if let Some(batch) = batches.next(&mut self.metrics.spill_time)? {
                    prober.probe(batch)?;
                    self.state = State::Probing { prober, batches, has_output: true };
                    return Ok(Progress::Working);
                }
                let final_phase = prober.end()?;
                self.state = State::Flushing { prober, final_phase };
                Ok(Progress::Working)
            }
            State::Flushing { mut prober, final_phase } => {
                if let Some(output) = prober.next_output()? {
                    self.state = State::Flushing { prober, final_phase };
                    return Ok(Progress::Output(output));
                }
                self.metrics = self.metrics.plus(prober.metrics());
                // Both files are read: partitions of them need the memory.
                self.reading.free();
                self.state = final_phase.map_or(State::Done, State::FinalPhase);
                Ok(Progress::Working)
            }
            State::FinalPhase(mut final_phase) => {
                let progress = final_phase.advance();
                if let Ok(Progress::Done) = progress {
                    self.metrics = self.metrics.plus(final_phase.metrics());
                } else {
                    // After an error too: the pairs that are left can be given up.
                    self.state = State::FinalPhase(final_phase);
                }
                progress
            }
            State::BlockNestedLoop(mut nested_loop) => {
                let progress = nested_loop.advance()?;
                if let Progress::Done = progress {
                    self.metrics = self.metrics.plus(nested_loop.metrics());
                } else {
                    self.state = State::BlockNestedLoop(nested_loop);
                }
                Ok(progress)
            }
            State::Done => {
                self.reading.free();
                Ok(Progress::Done)
            }
        }
    }

    /// The pairs of the levels below that are left, if there is nothing else to do.
    pub(crate) fn give_up(&mut self) -> Option<Vec<PartitionPair>> {
        let State::FinalPhase(final_phase) = &mut self.state else { return None };
        let pairs = final_phase.give_up()?;
        self.metrics = self.metrics.plus(final_phase.metrics());
        Some(pairs)
    }

    /// Metrics, without rows: those are counted where they enter and leave the join.
    pub(crate) fn metrics(&self) -> ProbeMetrics {
        ProbeMetrics { probe_rows: 0, output_rows: 0, ..self.metrics }
    }
}

/// Reads the batches of several files.
pub(super) struct Batches {
    files: VecDeque<SpillFile>,
    reader: Option<SpillReader>,
}

impl Batches {
    pub(super) fn new(files: Vec<SpillFile>) -> Self {
        Self { files: files.into(), reader: None }
    }

    /// The next batch; adds the elapsed time.
    pub(super) fn next(
        &mut self,
        time: &mut Duration,
    ) -> Result<Option<arrow_array::RecordBatch>, JoinError> {
        let start = Instant::now();
        let batch = loop {
            if let Some(reader) = &mut self.reader
                && let Some(batch) = reader.next_batch()?
            {
                break Some(batch);
            }
            self.reader = None;
            match self.files.pop_front() {
                // The reader keeps the file alive.
                Some(file) => self.reader = Some(file.read()?),
                None => break None,
            }
        };
        *time += start.elapsed();
        Ok(batch)
    }
}
