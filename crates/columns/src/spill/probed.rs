//! The probe side's rows of spilled partitions, on their way into files: those of one prober.

use std::sync::Arc;

use arrow_array::RecordBatch;
use workahead_operators::walk::Row;

use super::file::SpillFile;
use super::pile::{self, Pile, Place};
use super::router::{Router, piece};
use super::sizes::Sizes;
use crate::context::Context;
use crate::join_type::Alone;
use crate::memory::Held;
use crate::{HashJoin, JoinError, Reservation, SpillDirectory};

/// Rows by partition, in memory until they are worth a write.
pub(crate) struct ProbeFiles {
    place: Place,
    router: Router,
    /// By partition; none of those whose build rows are in memory.
    spilled: Arc<[bool]>,
    piles: Vec<Pile>,
    held: Held,
    /// Whether rows that match nothing come out.
    keeps_keyless: bool,
}

impl ProbeFiles {
    pub(crate) fn new(
        join: &HashJoin,
        context: &Context,
        directory: &Arc<SpillDirectory>,
        (router, spilled): (Router, Arc<[bool]>),
        (sizes, memory): (Sizes, Reservation),
    ) -> Self {
        let probe = join.emits().probe;
        let schema = join.schema_of(join.build_side.other());
        Self {
            place: Place::new(directory, context, schema, sizes),
            router,
            piles: spilled.iter().map(|_| Pile::default()).collect(),
            spilled,
            held: Held::new(memory),
            keeps_keyless: matches!(probe, Alone::Unmatched | Alone::Marked),
        }
    }

    /// Keeps the rows of spilled partitions, and gives the others.
    pub(crate) fn route(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>, JoinError> {
        self.router.route(&batch)?;
        let mut rest = Vec::<Row>::new();
        for (partition, spilled) in self.spilled.iter().enumerate() {
            let (rows, _) = self.router.of(partition);
            if rows.is_empty() {
                continue;
            }
            if !spilled {
                rest.extend_from_slice(rows);
                continue;
            }
            let piece = piece(&batch, rows.to_vec())?;
            pile::add(&mut self.piles, partition, piece, (&self.place, &mut self.held))?;
        }
        if self.keeps_keyless {
            rest.append(&mut self.router.keyless(batch.num_rows()));
        }
        if rest.len() == batch.num_rows() {
            return Ok(Some(batch));
        }
        if rest.is_empty() {
            return Ok(None);
        }
        // In their order: hits of neighbours in the probe side are often neighbours in the table.
        rest.sort_unstable();
        Ok(Some(piece(&batch, rest)?))
    }

    /// Bytes beside those of the rows that are kept.
    pub(crate) fn bytes(&self, batch_rows: usize) -> usize {
        self.router.bytes(batch_rows) + self.place.sizes.writing_bytes()
    }

    /// The files, by partition.
    pub(crate) fn finish(mut self) -> Result<Vec<Option<SpillFile>>, JoinError> {
        let mut files = Vec::new();
        for mut pile in self.piles {
            if pile.bytes() > 0 {
                pile.spill(&self.place, &mut self.held)?;
            }
            files.push(pile.finish(&self.place)?);
        }
        Ok(files)
    }
}
