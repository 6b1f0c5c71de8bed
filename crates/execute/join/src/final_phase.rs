//! The final phase of a join, after the last prober's output: the scan of unmatched build rows,
//! then the spilled partitions, pair by pair.
//!
//! ```text
//! 3 threads, each a third of the memory ──a pair does not fit──► pair requeued, 2 threads …
//!                                                  … ──► 1 thread with all memory: now it must fit
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use crate::context::Context;
use crate::join_type::SideOutput;
use crate::spill::{PartitionJoin, PartitionPair, Runs};
use crate::unmatched_build_scan::UnmatchedBuildScan;
use crate::{JoinError, JoinSpec, JoinTable, ProbeMetrics};

/// Result of a bounded step of work.
#[derive(Debug)]
pub enum Progress {
    /// Rows of the output.
    Output(RecordBatch),
    /// No rows yet: call again.
    Working,
    /// The end.
    Done,
}

/// The final phase of a join, or one thread's share of it.
pub struct FinalPhase {
    spec: Arc<JoinSpec>,
    context: Context,
    /// The unmatched build scan of the in-memory table, which is freed with it.
    unmatched_scan: Option<UnmatchedBuildScan>,
    queue: Arc<Mutex<PartitionQueue>>,
    /// Whether this share still counts as working.
    active: bool,
    current: Option<CurrentPair>,
    /// Puts the output back into the order of the probe side.
    runs: Option<Box<Runs>>,
    metrics: ProbeMetrics,
}

/// Partition pairs to join, and the memory for them, shared by all threads of the phase.
struct PartitionQueue {
    /// Pairs not yet started.
    pairs: VecDeque<PartitionPair>,
    /// Shares that have not ended.
    working: usize,
    /// Free memory for all of them.
    free: usize,
}

/// The partition pair being joined.
struct CurrentPair {
    join: Box<PartitionJoin>,
    /// For a restart with more memory, unless something has been output.
    restart: Option<PartitionPair>,
    /// Whether there may be more memory: it has a share of it.
    shares: bool,
}

impl FinalPhase {
    /// Once every prober has ended.
    pub(crate) fn new(table: &JoinTable) -> Result<Self, JoinError> {
        let spilled = table.spilled.as_ref();
        let in_memory = if spilled.is_some() { table.take_in_memory() } else { table.in_memory() };
        let has_output = |build| !matches!(build, SideOutput::Never | SideOutput::Tracked);
        let in_memory = in_memory.filter(|in_memory| has_output(in_memory.output_rules.build));
        let pairs = spilled.map_or(Vec::new(), |spilled| spilled.pairs());
        let mut phase = Self::of_pairs(table.spec.clone(), table.context.clone(), pairs);
        phase.unmatched_scan = in_memory.map(UnmatchedBuildScan::new).transpose()?;
        Ok(phase)
    }

    /// Of one prober's rows, whose order is kept.
    pub(crate) fn in_order(table: &JoinTable, pairs: Vec<PartitionPair>, runs: Runs) -> Self {
        let mut phase = Self::of_pairs(table.spec.clone(), runs.context().clone(), pairs);
        phase.runs = Some(Box::new(runs));
        phase
    }

    fn of_pairs(spec: Arc<JoinSpec>, context: Context, pairs: Vec<PartitionPair>) -> Self {
        let queue = PartitionQueue { pairs: pairs.into(), working: 1, free: usize::MAX };
        Self {
            spec,
            context,
            unmatched_scan: None,
            queue: Arc::new(Mutex::new(queue)),
            active: true,
            current: None,
            runs: None,
            metrics: ProbeMetrics::default(),
        }
    }

    /// The next output batch.
    ///
    /// # Errors
    /// If an output array can't be made, a filter fails, or a spilled partition can't be read back,
    /// written or joined within the memory limit.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        loop {
            match self.advance()? {
                Progress::Output(output) => return Ok(Some(output)),
                Progress::Working => {}
                Progress::Done => return Ok(None),
            }
        }
    }

    /// Does a bounded step: reads one batch, builds one table or returns one output.
    ///
    /// # Errors
    /// As [`next_output`](Self::next_output).
    pub fn advance(&mut self) -> Result<Progress, JoinError> {
        self.context.stop.check()?;
        let Some(mut runs) = self.runs.take() else { return self.advance_unordered() };
        let progress = if runs.are_many() {
            runs.compact().map(|()| Progress::Working)
        } else if !self.active {
            runs.advance()
        } else {
            self.advance_unordered().and_then(|progress| {
                if let Progress::Output(output) = progress {
                    runs.add(&output)?;
                }
                Ok(Progress::Working)
            })
        };
        self.runs = Some(runs);
        progress
    }

    fn advance_unordered(&mut self) -> Result<Progress, JoinError> {
        if let Some(output) = self.next_unmatched()? {
            return Ok(Progress::Output(output));
        }
        let Some(current) = &mut self.current else { return self.start_next() };
        let progress = match current.join.advance() {
            Err(error @ JoinError::LimitTooSmall { .. }) if current.shares => {
                let pairs = self.give_up().ok_or(error)?;
                self.requeue(pairs);
                return Ok(Progress::Working);
            }
            progress => progress?,
        };
        match &progress {
            Progress::Output(output) => {
                current.restart = None;
                self.metrics.output_rows += output.num_rows() as u64;
            }
            Progress::Working => {}
            Progress::Done => {
                self.metrics = self.metrics.plus(current.join.metrics());
                self.current = None;
                return Ok(Progress::Working);
            }
        }
        Ok(progress)
    }

    /// Starts the next pair, if there is one.
    fn start_next(&mut self) -> Result<Progress, JoinError> {
        if !self.active {
            return Ok(Progress::Done);
        }
        let mut queue = lock(&self.queue);
        let Some(pair) = queue.pairs.pop_front() else {
            queue.working -= 1;
            self.active = false;
            return Ok(Progress::Done);
        };
        let more = queue.working > 1;
        let share = if more { queue.free / queue.working } else { usize::MAX };
        drop(queue);
        let context = self.context.with_share(share);
        let restart = Some(pair.clone());
        match PartitionJoin::new(&self.spec, &context, pair) {
            Ok(join) => {
                let join = Box::new(join);
                self.current = Some(CurrentPair { join, restart, shares: more });
            }
            Err(JoinError::LimitTooSmall { .. }) if more => self.requeue(restart),
            Err(error @ JoinError::LimitTooSmall { .. }) => {
                // A phase of a larger share may give it up.
                lock(&self.queue).pairs.extend(restart);
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        Ok(Progress::Working)
    }

    /// The pairs that are left after an error for lack of memory, those of the levels below instead
    /// of the current one if it has output. `None` if output would be repeated.
    pub(crate) fn give_up(&mut self) -> Option<Vec<PartitionPair>> {
        let mut pairs = Vec::new();
        if let Some(mut current) = self.current.take() {
            pairs = match current.restart.take() {
                Some(pair) => vec![pair],
                None => current.join.give_up()?,
            };
            self.metrics = self.metrics.plus(current.join.metrics());
        }
        if !self.shares() {
            pairs.extend(lock(&self.queue).pairs.drain(..));
        }
        Some(pairs)
    }

    /// Whether other threads work on the same queue.
    fn shares(&self) -> bool {
        Arc::strong_count(&self.queue) > 1
    }

    /// Requeues pairs that didn't fit in a share of the memory, and leaves the share to the other
    /// threads; the last thread retries.
    fn requeue(&mut self, pairs: impl IntoIterator<Item = PartitionPair>) {
        // Its memory must be free before other threads see the pair.
        self.current = None;
        let mut queue = lock(&self.queue);
        queue.pairs.extend(pairs);
        if queue.working > 1 {
            queue.working -= 1;
            self.active = false;
        }
    }

    /// The next unmatched build rows of the in-memory table, which is freed after the last ones.
    pub(crate) fn next_unmatched(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let Some(unmatched_scan) = &mut self.unmatched_scan else { return Ok(None) };
        let output = unmatched_scan.next_output()?;
        match &output {
            Some(output) => self.metrics.output_rows += output.num_rows() as u64,
            None => self.unmatched_scan = None,
        }
        Ok(output)
    }

    /// Counts the rows left without making them.
    ///
    /// # Errors
    /// As [`next_output`](Self::next_output).
    pub fn count(mut self) -> Result<u64, JoinError> {
        let before = self.metrics.output_rows;
        self.count_only()?;
        while self.next_output()?.is_some() {}
        Ok(self.metrics.output_rows - before)
    }

    /// Outputs rows without columns from here on, which cost next to nothing; the unmatched build
    /// scan is only added to the metrics.
    pub(crate) fn count_only(&mut self) -> Result<(), JoinError> {
        if let Some(unmatched_scan) = self.unmatched_scan.take() {
            self.metrics.output_rows += unmatched_scan.count()?;
        }
        // Those in runs are counted already.
        self.runs = None;
        self.spec = Arc::new(self.spec.with_projection(Vec::new())?);
        Ok(())
    }

    /// Splits the spilled partitions among threads, each with a share of the free memory. A share
    /// that turns out too small for a partition, before any of its rows is output, leaves the
    /// partition and its memory to the others. The unmatched build scan is part of the first share.
    /// A phase that keeps an order is one share.
    ///
    /// All shares must be run to their ends: the last to end does what others left.
    ///
    /// # Panics
    /// If `threads` is zero, or the first partition was already started.
    #[must_use]
    pub fn split(self, threads: usize) -> Vec<Self> {
        assert!(threads > 0, "the final phase needs a thread");
        assert!(self.active && self.current.is_none(), "a started phase can't be split");
        if self.runs.is_some() {
            return vec![self];
        }
        let mut queue = lock(&self.queue);
        (queue.working, queue.free) = (threads, self.context.free());
        drop(queue);
        let new_share = |_| Self {
            spec: self.spec.clone(),
            context: self.context.clone(),
            unmatched_scan: None,
            queue: self.queue.clone(),
            active: true,
            current: None,
            runs: None,
            metrics: ProbeMetrics::default(),
        };
        let mut shares: Vec<_> = (1..threads).map(new_share).collect();
        shares.insert(0, self);
        shares
    }

    /// Metrics so far: output rows, and the costs of spilled partitions.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.metrics
    }
}

impl Drop for FinalPhase {
    fn drop(&mut self) {
        // A dropped share must not keep the others from using all of the memory.
        if self.active {
            self.current = None;
            lock(&self.queue).working -= 1;
        }
    }
}

/// The lock is only held to move things.
fn lock(queue: &Mutex<PartitionQueue>) -> MutexGuard<'_, PartitionQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for FinalPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FinalPhase").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}
