//! The build side in partitions, of which as many stay in memory as fit.

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use super::file::SpillFile;
use super::pile::{self, Pile, Place};
use super::router::{Router, piece};
use super::sizes::Sizes;
use crate::build::ROWS_MAX;
use crate::context::Context;
use crate::distinct::Distinct;
use crate::join_type::Alone;
use crate::memory::Held;
use crate::needs::{Needs, sliced_bytes, widest};
use crate::{JoinError, JoinSpec, Reservation, SpillDirectory};

/// A partition with more of the rows than this, in percent, is not worth being partitioned again:
/// most of its rows have one key.
const STUCK_PERCENT: usize = 90;

/// Rows by partition.
pub(crate) struct Partitions {
    context: Context,
    place: Place,
    router: Router,
    depth: u32,
    piles: Vec<Pile>,
    /// Different keys, and what keys take, of each partition.
    distinct: Vec<Distinct>,
    key_bytes: Vec<usize>,
    held: Held,
    /// Whether rows that match nothing are kept, and flags for all.
    keeps_keyless: bool,
    flags: bool,
    /// Where the next row without a key goes: they are dealt out evenly.
    next_keyless: usize,
    batch_rows: usize,
    /// Bytes of all rows.
    bytes: usize,
}

/// What became of them.
pub(crate) struct Parted {
    /// What stays in memory, charged with what a table of it takes.
    pub(crate) resident: Vec<RecordBatch>,
    pub(crate) memory: Reservation,
    /// Set aside for probers.
    pub(crate) room: Reservation,
    /// By partition; none of those in memory.
    pub(crate) files: Vec<Option<SpilledPartition>>,
}

/// A partition in a file.
pub(crate) struct SpilledPartition {
    pub(crate) build: SpillFile,
    /// Whether it is not worth being partitioned again.
    pub(crate) stuck: bool,
}

impl Partitions {
    pub(crate) fn new(
        spec: &JoinSpec,
        context: &Context,
        directory: &std::sync::Arc<SpillDirectory>,
        (router, depth): (Router, u32),
        sizes: Sizes,
    ) -> Self {
        let build = spec.emits().build;
        let partitions = sizes.partitions();
        Self {
            place: Place::new(directory, context, spec.schema_of(spec.build_side), sizes),
            router,
            depth,
            piles: (0..partitions).map(|_| Pile::default()).collect(),
            distinct: vec![Distinct::new(); partitions],
            key_bytes: vec![0; partitions],
            held: Held::new(context.reservation()),
            keeps_keyless: matches!(build, Alone::Unmatched | Alone::Marked),
            flags: build != Alone::Never,
            next_keyless: 0,
            batch_rows: 0,
            bytes: 0,
            context: context.clone(),
        }
    }

    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<(), JoinError> {
        self.batch_rows = self.batch_rows.max(batch.num_rows());
        self.bytes += sliced_bytes(batch);
        self.router.route(batch)?;
        let mut keyless = vec![Vec::new(); self.piles.len()];
        if self.keeps_keyless {
            for row in self.router.keyless(batch.num_rows()) {
                keyless[self.next_keyless].push(row);
                self.next_keyless = (self.next_keyless + 1) % keyless.len();
            }
        }
        for (partition, keyless) in keyless.into_iter().enumerate() {
            let (rows, words) = self.router.of(partition);
            let all: Vec<Row> = rows.iter().copied().chain(keyless).collect();
            if all.is_empty() {
                continue;
            }
            self.distinct[partition].add(words);
            let keyed = self.router.keyed().max(1);
            self.key_bytes[partition] += (self.router.key_bytes() * rows.len()).div_ceil(keyed);
            let piece = piece(batch, all)?;
            pile::add(&mut self.piles, partition, piece, (&self.place, &mut self.held))?;
        }
        Ok(())
    }

    /// What a table of the partitions in memory takes beside them.
    fn needs(&self) -> Needs {
        let mut needs =
            Needs { batch_rows: self.batch_rows, flags: self.flags, ..Needs::default() };
        let resident = || self.piles.iter().filter(|pile| !pile.is_spilled());
        for (at, pile) in self.piles.iter().enumerate().filter(|(_, pile)| !pile.is_spilled()) {
            needs.rows += pile.rows();
            needs.distinct += self.distinct[at].estimate();
            needs.key_bytes += self.key_bytes[at];
        }
        needs.keyed = needs.rows;
        needs.widest_bytes = widest(resident().flat_map(Pile::batches));
        needs
    }

    /// Spills the largest partition. False when none has anything in memory.
    pub(crate) fn make_room(&mut self) -> Result<bool, JoinError> {
        pile::make_room(&mut self.piles, (&self.place, &mut self.held))
    }

    /// Bytes of a row, about.
    pub(crate) fn row_bytes(&self) -> usize {
        let rows: usize = self.piles.iter().map(Pile::rows).sum();
        self.bytes.div_ceil(rows.max(1))
    }

    /// Spills until a table of the rest fits, with so much room beside it, and completes the files.
    /// What was set aside for that becomes a part of the room.
    pub(crate) fn finish(
        mut self,
        room: usize,
        mut reserve: Reservation,
    ) -> Result<Parted, JoinError> {
        let room = room.saturating_sub(reserve.bytes());
        for pile in self.piles.iter_mut().filter(|pile| pile.is_spilled()) {
            pile.spill(&self.place, &mut self.held)?;
        }
        loop {
            let needs = self.needs();
            let short = match self.held.memory.grow(needs.bytes() + room) {
                Ok(()) if needs.rows <= ROWS_MAX => break,
                Ok(()) => {
                    self.held.memory.shrink(needs.bytes() + room);
                    None
                }
                Err(short) => Some(short),
            };
            let resident = self.piles.iter_mut().filter(|pile| !pile.is_spilled());
            match resident.max_by_key(|pile| pile.bytes()).filter(|pile| pile.rows() > 0) {
                Some(pile) => pile.spill(&self.place, &mut self.held)?,
                None => return Err(self.context.short(short.expect("no rows are not too many"))),
            }
        }
        let all: usize = self.piles.iter().map(Pile::rows).sum();
        reserve.absorb(self.held.memory.split(room));
        let (resident, files) = (Vec::new(), Vec::new());
        let mut parted = Parted { resident, memory: self.held.memory, room: reserve, files };
        for mut pile in self.piles {
            let rows = pile.rows();
            if pile.is_spilled() {
                self.context.counts.partition(self.depth);
            } else {
                parted.resident.append(&mut pile.take_batches());
                parted.files.push(None);
                continue;
            }
            let stuck = rows * 100 > all * STUCK_PERCENT;
            let file = pile.finish(&self.place)?;
            parted.files.push(file.map(|build| SpilledPartition { build, stuck }));
        }
        Ok(parted)
    }
}
