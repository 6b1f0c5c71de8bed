//! Which side is built, by the sides' own sizes (`SET workahead.build_side = 'measured'`).
//!
//! ```text
//! left   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓ …     whoever is behind is read on
//! right  ▓▓▓▓▓▓▓▓▓▓ end       whoever ends first is the smaller one, and is built
//! ```
//!
//! A planner knows how many rows tables have, and guesses what filters and joins leave of them.
//! Here nothing is guessed: what was read of the side that was not built is what is probed with
//! first, so no more than twice the smaller side is held. The left side has a start, because a
//! probe side that is not started yet is still spared what a dynamic filter finds; and where memory
//! has a limit and a good part of it is taken before a side ends, the planned one is built, which
//! can spill.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::error::Result;
use datafusion_common::utils::memory::RecordBatchMemoryCounter;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use futures::stream::{self, Fuse};
use workahead_join::Side;

/// Rows that the left side may have before the right one is started: their table stays in cache
/// whichever side it is of.
const START_ROWS: usize = 16 << 10;

/// The part of the memory's limit that may be held before a side has ended.
const LIMIT_SHARE: usize = 16;

/// Both sides, being read.
pub(crate) struct Race {
    left: Runner,
    right: Runner,
    most_bytes: usize,
}

/// A side, and what was read of it.
struct Runner {
    input: Fuse<SendableRecordBatchStream>,
    schema: SchemaRef,
    batches: VecDeque<(RecordBatch, usize)>,
    rows: usize,
    counter: RecordBatchMemoryCounter,
    memory: MemoryReservation,
}

/// What became of it: each side from its first batch.
pub(crate) struct Raced {
    pub(crate) built: Side,
    pub(crate) build: SendableRecordBatchStream,
    pub(crate) probe: SendableRecordBatchStream,
}

impl Race {
    /// Not started yet.
    pub(crate) fn new(
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Self {
        let most_bytes = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / LIMIT_SHARE,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        let (left, right) = (Runner::new(left, context), Runner::new(right, context));
        Self { left, right, most_bytes }
    }

    /// Reads until one side has ended, or enough is held.
    pub(crate) async fn run(mut self) -> Result<Raced> {
        loop {
            let side = if self.left.rows <= self.right.rows.max(START_ROWS) {
                Side::Left
            } else {
                Side::Right
            };
            let runner = if side == Side::Left { &mut self.left } else { &mut self.right };
            let Some(batch) = runner.input.next().await else { return Ok(self.over(side)) };
            let held = runner.hold(batch?);
            if !held || self.left.memory.size() + self.right.memory.size() > self.most_bytes {
                return Ok(self.over(Side::Left));
            }
        }
    }

    fn over(self, built: Side) -> Raced {
        let (left, right) = (self.left.all(), self.right.all());
        match built {
            Side::Left => Raced { built, build: left, probe: right },
            Side::Right => Raced { built, build: right, probe: left },
        }
    }
}

impl Runner {
    fn new(input: SendableRecordBatchStream, context: &TaskContext) -> Self {
        let memory = MemoryConsumer::new("WorkaheadJoin sides").register(context.memory_pool());
        Self {
            schema: input.schema(),
            input: input.fuse(),
            batches: VecDeque::new(),
            rows: 0,
            counter: RecordBatchMemoryCounter::new(),
            memory,
        }
    }

    /// Keeps a batch. False if there is no memory for another one.
    fn hold(&mut self, batch: RecordBatch) -> bool {
        let bytes = self.counter.count_batch(&batch);
        let charged = self.memory.try_grow(bytes).is_ok();
        self.rows += batch.num_rows();
        self.batches.push_back((batch, if charged { bytes } else { 0 }));
        charged
    }

    /// All its batches: those held, and those to come.
    fn all(self) -> SendableRecordBatchStream {
        let Self { input, schema, batches, memory, .. } = self;
        let held = stream::iter(batches).map(move |(batch, bytes)| {
            // Whoever takes it charges it.
            memory.shrink(bytes);
            Ok(batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, held.chain(input)))
    }
}
