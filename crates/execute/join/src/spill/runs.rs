//! The output of a join that spills, put back into the order of its probe side.
//!
//! ```text
//! probe rows, numbered ─► in-memory partitions ─┐
//!                      └► pair by pair ─────────┴─► runs, in each of which numbers rise ─► merged
//! ```
//!
//! Each part of the join gives the rows of its probe input in their order, so a run ends where a
//! number is smaller than the one before.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::SchemaRef;

use super::file::{SpillFile, SpillWriter};
use super::merge::{Merge, fan_in, numbers};
use super::sizes::Sizes;
use crate::batch::pieces_within;
use crate::context::Context;
use crate::memory_estimate::OutputSize;
use crate::output_columns::with_numbers;
use crate::{JoinError, JoinSpec, MemoryPool, Progress, SpillDirectory};

/// Runs of one generation from which they are merged while the join goes on: each is an open file.
const RUNS_MAX: usize = 64;
/// The same where there is hardly any memory for it, and how many runs that means.
const RUNS_FAR_MAX: usize = 512;
const FAN_IN_FEW: usize = 16;

/// Numbered output rows in files.
pub(crate) struct Runs {
    directory: Arc<SpillDirectory>,
    context: Context,
    sizes: Sizes,
    /// The output's schema, without numbers.
    schema: SchemaRef,
    output: OutputSize,
    /// The number of the next probe row.
    next: u64,
    open: Option<(SpillWriter, u64)>,
    /// Finished runs, each with the number of times that its rows were merged.
    runs: Vec<(SpillFile, u32)>,
    /// A merge of runs into one, or into the output.
    merge: Option<(Merge, MergeTarget)>,
}

enum MergeTarget {
    Run(Box<SpillWriter>, u32),
    Output,
}

impl Runs {
    /// The output of `numbered` without the numbers is `schema`.
    pub(crate) fn new(context: Context, numbered: &JoinSpec, schema: SchemaRef) -> Option<Self> {
        Some(Self {
            directory: context.spill.clone()?,
            sizes: Sizes::of(context.pool.limit(), 1),
            schema,
            output: context.output_size(numbered),
            context,
            next: 0,
            open: None,
            runs: Vec::new(),
            merge: None,
        })
    }

    /// The memory of the prober and its final phase.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Memory for writing a run.
    pub(crate) fn writing_bytes(sizes: Sizes) -> usize {
        // One may be merged while another one is written.
        2 * sizes.block_bytes + 3 * sizes.batch_bytes
    }

    /// Numbers the rows of a probe batch.
    pub(crate) fn number(&mut self, batch: &RecordBatch) -> Result<RecordBatch, JoinError> {
        let end = self.next + batch.num_rows() as u64;
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(self.next..end));
        self.next = end;
        let columns = batch.columns().iter().cloned().chain([numbers]);
        let schema = with_numbers(batch.schema_ref());
        Ok(RecordBatch::try_new(schema, columns.collect())?)
    }

    /// Adds output rows.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<(), JoinError> {
        for piece in pieces_within(batch, usize::MAX, self.sizes.batch_bytes) {
            let numbers = numbers(&piece).values();
            let mut start = 0;
            while start < numbers.len() {
                let falls = numbers[start..].windows(2).position(|pair| pair[1] < pair[0]);
                let end = falls.map_or(numbers.len(), |before| start + before + 1);
                self.write(&piece.slice(start, end - start), numbers[start], numbers[end - 1])?;
                start = end;
            }
        }
        Ok(())
    }

    fn write(&mut self, rows: &RecordBatch, first: u64, last: u64) -> Result<(), JoinError> {
        if self.open.as_ref().is_some_and(|(_, before)| first < *before) {
            self.close()?;
        }
        let (writer, before) = match &mut self.open {
            Some(open) => open,
            None => {
                let writer = self.writer(rows.schema())?;
                self.open.insert((writer, last))
            }
        };
        *before = last;
        Ok(writer.write(rows)?)
    }

    fn writer(&self, schema: SchemaRef) -> Result<SpillWriter, JoinError> {
        Ok(SpillWriter::new(&self.directory, schema, self.sizes.block_bytes)?)
    }

    fn close(&mut self) -> Result<(), JoinError> {
        if let Some((writer, _)) = self.open.take() {
            self.runs.push((writer.finish()?, 0));
        }
        Ok(())
    }

    /// Whether runs should be merged before there are more.
    pub(crate) fn are_many(&self) -> bool {
        if let Some((_, target)) = &self.merge {
            return matches!(target, MergeTarget::Run(..));
        }
        let youngest = self.runs.iter().rev().take_while(|run| run.1 == self.generation());
        let count = youngest.count();
        count >= RUNS_MAX && (count >= RUNS_FAR_MAX || self.fan_in(self.youngest()) >= FAN_IN_FEW)
    }

    fn youngest(&self) -> usize {
        let generation = self.generation();
        self.runs.iter().position(|(_, merged)| *merged == generation).unwrap_or(0)
    }

    /// Number of the runs from `first` on that can be merged at once.
    fn fan_in(&self, first: usize) -> usize {
        fan_in(self.runs[first..].iter().map(|(file, _)| file), self.output, &self.context)
    }

    /// Of the last run.
    fn generation(&self) -> u32 {
        self.runs.last().map_or(0, |(_, merged)| *merged)
    }

    /// Does a bounded step of merging runs that [are many](Self::are_many) into one.
    pub(crate) fn compact(&mut self) -> Result<(), JoinError> {
        if self.merge.is_none() {
            self.start_merge(self.youngest())?;
        }
        self.step().map(drop)
    }

    /// Does a bounded step of giving all rows in order, after the last were added.
    pub(crate) fn advance(&mut self) -> Result<Progress, JoinError> {
        self.close()?;
        if self.merge.is_none() {
            if self.runs.is_empty() {
                return Ok(Progress::Done);
            }
            if self.runs.len() == 1 || self.fan_in(0) >= self.runs.len() {
                let runs = self.runs.drain(..).map(|(file, _)| file).collect();
                self.merge = Some((self.merge_of(runs)?, MergeTarget::Output));
            } else {
                self.start_merge(0)?;
            }
        }
        self.step()
    }

    /// Starts to merge runs from `first` on into one: as many as there is memory for, but two.
    fn start_merge(&mut self, first: usize) -> Result<(), JoinError> {
        let fit = self.fan_in(first).max(2).min(self.runs.len() - first);
        let (files, merged): (Vec<_>, Vec<_>) = self.runs.drain(first..first + fit).unzip();
        let target = Box::new(self.writer(files[0].schema().clone())?);
        let generation = merged.iter().max().map_or(0, |merged| merged + 1);
        self.merge = Some((self.merge_of(files)?, MergeTarget::Run(target, generation)));
        Ok(())
    }

    fn merge_of(&self, files: Vec<SpillFile>) -> Result<Merge, JoinError> {
        files.iter().for_each(|file| self.context.counts.file(file));
        Merge::new(&files, self.output, &self.context)
    }

    fn step(&mut self) -> Result<Progress, JoinError> {
        let Some((merge, target)) = &mut self.merge else { return Ok(Progress::Done) };
        match (merge.next_batch()?, target) {
            (Some(rows), MergeTarget::Run(writer, _)) => {
                for piece in pieces_within(&rows, usize::MAX, self.sizes.batch_bytes) {
                    writer.write(&piece)?;
                }
            }
            (Some(rows), MergeTarget::Output) => {
                return self.without_numbers(&rows).map(Progress::Output);
            }
            (None, _) => {
                if let Some((_, MergeTarget::Run(writer, merged))) = self.merge.take() {
                    // Its rows may have any numbers: where it stands is all the same.
                    self.runs.insert(0, (writer.finish()?, merged));
                    return Ok(Progress::Working);
                }
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::Working)
    }

    fn without_numbers(&self, rows: &RecordBatch) -> Result<RecordBatch, JoinError> {
        let columns = rows.columns()[..rows.num_columns() - 1].to_vec();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
