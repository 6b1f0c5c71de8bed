//! The build side chosen at run time, by the sides' own sizes (`SET workahead.build_side =
//! 'runtime'`).
//!
//! ```text
//! left   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓ …     the side with fewer rows so far is read next
//! right  ▓▓▓▓▓▓▓▓▓▓ end       the side that ends first is the smaller one, and is built
//! ```
//!
//! A planner knows how many rows tables have, and estimates what filters and joins leave of them.
//! Here nothing is estimated: the batches read of the other side are probed first, so no more than
//! twice the smaller side is held. The left side is read ahead, because a dynamic filter can still
//! save work in a probe side that has not started. If [a part](LIMIT_SHARE) of the memory limit is
//! used before a side ends, the planned side is built, which can spill.

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

/// Rows that the left side may have before the right one is started: a table of either side stays
/// in cache then.
const START_ROWS: usize = 16 << 10;

/// This fraction of the memory limit (a sixteenth) may be held before a side has ended.
const LIMIT_SHARE: usize = 16;

/// Both sides, being read until the smaller one is known.
pub(crate) struct RuntimeBuildSide {
    left: BufferedInput,
    right: BufferedInput,
    held_bytes_max: usize,
}

/// A side, and the batches read of it.
struct BufferedInput {
    input: Fuse<SendableRecordBatchStream>,
    schema: SchemaRef,
    batches: VecDeque<BufferedBatch>,
    rows: usize,
    counter: RecordBatchMemoryCounter,
    memory: MemoryReservation,
}

/// A batch, and the memory that is charged for it.
struct BufferedBatch {
    batch: RecordBatch,
    charged_bytes: usize,
}

/// The chosen sides, each from its first batch.
pub(crate) struct ChosenSides {
    pub(crate) build_side: Side,
    pub(crate) build: SendableRecordBatchStream,
    pub(crate) probe: SendableRecordBatchStream,
}

impl RuntimeBuildSide {
    /// Reads nothing yet.
    pub(crate) fn new(
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Self {
        let held_bytes_max = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / LIMIT_SHARE,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        let (left, right) = (BufferedInput::new(left, context), BufferedInput::new(right, context));
        Self { left, right, held_bytes_max }
    }

    /// Reads until one side has ended, or enough is held.
    pub(crate) async fn choose(mut self) -> Result<ChosenSides> {
        loop {
            let side = if self.left.rows <= self.right.rows.max(START_ROWS) {
                Side::Left
            } else {
                Side::Right
            };
            let input = if side == Side::Left { &mut self.left } else { &mut self.right };
            let Some(batch) = input.input.next().await else { return Ok(self.built_from(side)) };
            let held = input.hold(batch?);
            if !held || self.left.memory.size() + self.right.memory.size() > self.held_bytes_max {
                return Ok(self.built_from(Side::Left));
            }
        }
    }

    fn built_from(self, build_side: Side) -> ChosenSides {
        let (left, right) = (self.left.all(), self.right.all());
        let (build, probe) = match build_side {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        ChosenSides { build_side, build, probe }
    }
}

impl BufferedInput {
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

    /// Keeps a batch. Returns false if there is no memory for another one.
    fn hold(&mut self, batch: RecordBatch) -> bool {
        let bytes = self.counter.count_batch(&batch);
        let charged = self.memory.try_grow(bytes).is_ok();
        self.rows += batch.num_rows();
        let charged_bytes = if charged { bytes } else { 0 };
        self.batches.push_back(BufferedBatch { batch, charged_bytes });
        charged
    }

    /// All its batches: those held, then the rest of the input.
    fn all(self) -> SendableRecordBatchStream {
        let Self { input, schema, batches, memory, .. } = self;
        let held = stream::iter(batches).map(move |held| {
            // The build or the probe that takes it charges it.
            memory.shrink(held.charged_bytes);
            Ok(held.batch)
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, held.chain(input)))
    }
}
