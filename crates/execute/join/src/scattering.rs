//! The probe side by parts of the table: what is looked up together lies together.
//!
//! ```text
//! batches ─► gathered ─► words by part of the table ─► lookups, part by part in L2
//!            (many rows)  │ part 0 │ part 1 │ …         │ hits, in no row's order
//!                                                       ▼
//!                                              columns of both sides, gathered at random
//! ```
//!
//! A radix join ([`workahead_walks::radix`]) moves both sides. Here the build side's partitions
//! are the parts of the one table, which was filled part by part ([`Parts`]); so the probe side can
//! come in pieces, memory is bounded by a piece, and every type of join stays as it is. The price:
//! about as many rows are held as the table has lines, or each line would be fetched for a piece
//! and hardly used; and pairs come out by part, so that no order is kept and the columns of *both*
//! sides are gathered from anywhere. It can win only where next to nothing is put out, and is done
//! only when [asked for](crate::Design::Radix): `operators/benches/radix.rs` has the figures.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use workahead_walks::bucket::{Parts, Table};
use workahead_walks::radix::{Scatter, scattered};
use workahead_walks::walk::Row;

use crate::keys::Keys;
use crate::needs::sliced_bytes;
use crate::{HashJoin, JoinError, ProbeMetrics, Reservation};

/// Most rows that probers hold together.
const ROWS_MAX: usize = 1 << 24;

/// Most bytes that become one batch: offsets of texts have 31 bits.
const BYTES_MAX: usize = 1 << 30;

/// A held batch, and its rows in the one that all of them become.
const HELD_TIMES: usize = 2;

/// How the probe side is sorted.
pub(crate) struct Scattering {
    parts: Parts,
    /// Rows that a prober holds.
    rows: usize,
}

impl Scattering {
    /// By the parts of a table of which half stays in the second-level cache.
    pub(crate) fn of(join: &HashJoin, table: &Table) -> Self {
        let parts = Parts::over(table, join.caches.l2_bytes / 2);
        let rows = table.buckets().len().min(ROWS_MAX).div_ceil(join.probers);
        Self { parts, rows }
    }

    /// In words.
    pub(crate) fn why(&self) -> String {
        let (parts, rows) = (self.parts.count(), self.rows);
        format!("as asked: probe rows are looked up by {parts} parts, up to {rows} together")
    }

    /// Bytes of so many rows' words, beside those of every join.
    pub(crate) fn bytes(rows: usize) -> usize {
        2 * Scatter::<Row>::bytes_for(rows)
    }

    /// Puts words into the order of the parts. Only words that are keys: what hashes are of stays
    /// where it is.
    pub(crate) fn sort(
        &self,
        join: &HashJoin,
        keys: &mut Keys,
        metrics: &mut ProbeMetrics,
    ) -> Result<(), JoinError> {
        if self.parts.count() > 1 {
            let row = |word: usize| keys.row(word as Row);
            let sorted = scattered(self.parts, keys.words(), row, &join.pages)?;
            keys.reorder(sorted.keys(), sorted.values());
            metrics.scattered_rows += sorted.len() as u64;
        }
        Ok(())
    }

    /// Holds batches.
    pub(crate) fn gathered(&self, join: &HashJoin, memory: Reservation) -> Gathered {
        // One batch may have nulls where another's schema says that it has none.
        let fields = join.schema_of(join.build_side.other()).fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (join, batches) = (join.clone(), Vec::new());
        Gathered { join, schema, batches, rows: 0, enough: self.rows, memory }
    }
}

/// Batches of the probe side, held until there are enough rows.
pub(crate) struct Gathered {
    join: HashJoin,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    enough: usize,
    /// For what is held, and for what it became until more comes.
    memory: Reservation,
}

impl Gathered {
    /// Holds one more; all of them as one when there are enough, or no memory for more.
    pub(crate) fn add(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>, JoinError> {
        self.join.check(self.join.build_side.other(), batch.schema_ref())?;
        if self.batches.is_empty() {
            self.memory.free();
        }
        let has_room = self.memory.grow(HELD_TIMES * sliced_bytes(&batch)).is_ok();
        self.rows += batch.num_rows();
        self.batches.push(batch);
        let is_short = self.memory.bytes() < HELD_TIMES * BYTES_MAX;
        if has_room && is_short && self.rows < self.enough { Ok(None) } else { self.rest() }
    }

    /// All that are held, as one.
    pub(crate) fn rest(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        self.rows = 0;
        let batches = std::mem::take(&mut self.batches);
        if batches.is_empty() {
            return Ok(None);
        }
        Ok(Some(concat_batches(&self.schema, &batches)?))
    }
}
