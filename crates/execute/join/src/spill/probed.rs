//! The probe side's rows of spilled partitions, on their way into files.
//!
//! Each prober keeps those of its own batches, under a lock that only memory's lack contends for:
//! who is short after all of its own is written has the others' written too. A prober that comes
//! late finds all memory taken by those before it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use super::file::SpillFile;
use super::pile::{self, Pile, Place};
use super::router::{Router, piece};
use super::sizes::Sizes;
use crate::context::Context;
use crate::join_type::Alone;
use crate::memory::Held;
use crate::{JoinError, JoinSpec, SpillDirectory};

/// Rows by partition, in memory until they are worth a write: those of one prober.
pub(crate) struct ProbeFiles {
    router: Router,
    /// By partition; none of those whose build rows are in memory.
    spilled: Arc<[bool]>,
    kept: Arc<Mutex<Kept>>,
    all: Arc<AllKept>,
    context: Context,
    /// Beside the rows that are kept.
    writing_bytes: usize,
    /// Whether rows that match nothing come out.
    keeps_keyless: bool,
}

/// What a prober keeps in memory, and where it goes.
struct Kept {
    place: Place,
    piles: Vec<Pile>,
    held: Held,
}

impl Kept {
    fn add(&mut self, partition: usize, piece: RecordBatch) -> Result<(), JoinError> {
        pile::add(&mut self.piles, partition, piece, (&self.place, &mut self.held))
    }

    fn bytes(&self) -> usize {
        self.piles.iter().map(Pile::bytes).sum()
    }
}

/// What all probers of a table keep in memory.
#[derive(Default)]
pub(crate) struct AllKept(Mutex<Vec<Weak<Mutex<Kept>>>>);

impl AllKept {
    fn register(&self, kept: &Arc<Mutex<Kept>>) {
        lock(&self.0).push(Arc::downgrade(kept));
    }

    /// Writes piles, the largest first, until so much memory is free that `wanted` bytes were had
    /// for a moment.
    ///
    /// # Errors
    /// When there is less even though nobody keeps anything.
    ///
    /// Whoever asks holds none of the locks. All are taken, in one order, so that "nobody keeps
    /// anything" is true of one moment: looked at one by one, a prober that writes its own piles
    /// meanwhile made this seem to be so with memory free.
    pub(crate) fn make_room(&self, wanted: usize, context: &Context) -> Result<(), JoinError> {
        let all: Vec<Arc<Mutex<Kept>>> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let mut all: Vec<MutexGuard<'_, Kept>> = all.iter().map(|kept| lock(kept)).collect();
        while let Err(short) = context.reservation().grow(wanted) {
            let most = all.iter_mut().max_by_key(|kept| kept.bytes());
            let made = match most {
                Some(most) => {
                    let Kept { place, piles, held } = &mut **most;
                    pile::make_room(piles, (place, held))?
                }
                None => false,
            };
            if !made {
                return Err(context.short(short));
            }
        }
        Ok(())
    }
}

/// What a thread that panicked left behind goes with the join.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProbeFiles {
    pub(crate) fn new(
        spec: &JoinSpec,
        context: &Context,
        directory: &Arc<SpillDirectory>,
        (router, spilled): (Router, Arc<[bool]>),
        (sizes, all): (Sizes, Arc<AllKept>),
    ) -> Self {
        let probe = spec.emits().probe;
        let schema = spec.schema_of(spec.build_side.other());
        let kept = Arc::new(Mutex::new(Kept {
            place: Place::new(directory, context, schema, sizes),
            piles: spilled.iter().map(|_| Pile::default()).collect(),
            held: Held::new(context.reservation()),
        }));
        all.register(&kept);
        Self {
            router,
            spilled,
            kept,
            all,
            context: context.clone(),
            writing_bytes: sizes.writing_bytes(),
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
            self.keep(partition, &piece(&batch, rows.to_vec())?)?;
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

    /// Adds a piece to a pile, while memory is short in turn with room made anywhere.
    fn keep(&self, partition: usize, piece: &RecordBatch) -> Result<(), JoinError> {
        loop {
            let added = lock(&self.kept).add(partition, piece.clone());
            match added {
                // Another may take what is free now: it comes a piece further, and this one again.
                Err(JoinError::LimitTooSmall { wanted, .. }) => {
                    self.all.make_room(wanted, &self.context)?;
                }
                other => return other,
            }
        }
    }

    /// Bytes beside those of the rows that are kept.
    pub(crate) fn bytes(&self, batch_rows: usize) -> usize {
        self.router.bytes(batch_rows) + self.writing_bytes
    }

    /// The files, by partition.
    pub(crate) fn finish(self) -> Result<Vec<Option<SpillFile>>, JoinError> {
        let mut kept = lock(&self.kept);
        let Kept { place, piles, held } = &mut *kept;
        let mut files = Vec::new();
        for mut pile in std::mem::take(piles) {
            if pile.bytes() > 0 {
                pile.spill(place, held)?;
            }
            files.push(pile.finish(place)?);
        }
        Ok(files)
    }
}
