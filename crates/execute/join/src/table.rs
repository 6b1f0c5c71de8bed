//! The built side of a join, shared by probers: an in-memory table, and partitions in files if it
//! spilled.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::context::Context;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;
use crate::spill::{
    Level, PartitionPair, Partitioner, ProbeFiles, ProbeSpill, Sizes, SpillFile, SpilledPartition,
};
use crate::{
    HashJoin, JoinError, JoinSpec, LayoutChoice, MemoryPool, Reservation, Side, SpillMetrics,
};

/// The built side of a join, for any number of [`Prober`](crate::Prober)s on any thread.
pub struct JoinTable {
    pub(crate) spec: Arc<JoinSpec>,
    pub(crate) context: Context,
    /// Freed when the last prober has ended and spilled partitions need the memory.
    in_memory: Mutex<Option<Arc<InMemoryBuildSide>>>,
    pub(crate) spilled: Option<SpilledPartitions>,
    /// The output's schema without numbers, if the probe side's order is kept.
    pub(crate) ordered: Option<SchemaRef>,
    /// Bytes for each prober, if they share no memory.
    share: Option<usize>,
    /// Memory reserved for probers.
    room: Mutex<Reservation>,
    /// Probers that have not ended.
    probers: AtomicUsize,
    statistics: TableStatistics,
}

/// Facts that outlive the in-memory table.
#[derive(Debug, Clone)]
struct TableStatistics {
    rows: usize,
    keys: usize,
    input_rows: usize,
    table_bytes: usize,
    payload_bytes: usize,
    layout_choice: LayoutChoice,
    build_time: Duration,
}

/// The partitions in files.
pub(crate) struct SpilledPartitions {
    level: Level,
    probe: ProbeSpill,
    files: Mutex<Vec<PartitionFiles>>,
}

/// The files of a partition.
struct PartitionFiles {
    /// `None` if the partition is in memory.
    build: Option<SpilledPartition>,
    probe: Vec<SpillFile>,
}

impl SpilledPartitions {
    pub(crate) fn new(
        partitions: Vec<Option<SpilledPartition>>,
        sizes: Sizes,
        level: Level,
    ) -> Self {
        let spilled = partitions.iter().map(Option::is_some).collect();
        let probe = ProbeSpill { sizes, spilled, buffers: Arc::default() };
        let files = partitions.into_iter().map(|build| PartitionFiles { build, probe: Vec::new() });
        Self { level, probe, files: Mutex::new(files.collect()) }
    }

    /// Files for a prober's rows of these partitions.
    pub(crate) fn probe_files(&self, table: &JoinTable, context: &Context) -> Option<ProbeFiles> {
        let spec = &table.spec;
        let side = spec.build_side.other();
        let partitioner = Partitioner::new(spec, side, self.level, self.probe.sizes.bits);
        let directory = context.spill.as_ref()?;
        let mut spill = self.probe.clone();
        if table.share.is_some() {
            spill.buffers = Arc::default();
        }
        Some(ProbeFiles::new(spec, context, directory, partitioner, spill))
    }

    /// Adds the files that a prober wrote.
    pub(crate) fn add(&self, files: Vec<Option<SpillFile>>) {
        for (partition, file) in lock(&self.files).iter_mut().zip(files) {
            partition.probe.extend(file);
        }
    }

    /// The partition pairs of one prober's files.
    pub(crate) fn pairs_with(&self, probe: Vec<Option<SpillFile>>) -> Vec<PartitionPair> {
        let level = self.level.below(self.probe.sizes.bits);
        let files = lock(&self.files);
        let pairs = files.iter().zip(probe).filter_map(|(partition, probe)| {
            let SpilledPartition { build, unsplittable } = partition.build.clone()?;
            Some(PartitionPair { build, probe: vec![probe?], level, unsplittable })
        });
        pairs.collect()
    }

    /// The partition pairs, once every prober has ended.
    pub(crate) fn pairs(&self) -> Vec<PartitionPair> {
        let files = std::mem::take(&mut *lock(&self.files));
        let level = self.level.below(self.probe.sizes.bits);
        let pairs = files.into_iter().filter_map(|PartitionFiles { build, probe }| {
            let SpilledPartition { build, unsplittable } = build?;
            Some(PartitionPair { build, probe, level, unsplittable })
        });
        pairs.collect()
    }
}

impl JoinTable {
    /// With memory reserved for probers, of a number of input rows.
    pub(crate) fn new(
        in_memory: InMemoryBuildSide,
        context: Context,
        room: Reservation,
        input_rows: usize,
    ) -> Self {
        let statistics = TableStatistics {
            rows: in_memory.rows.keyed,
            keys: in_memory.data.hash_table.len(),
            input_rows,
            table_bytes: in_memory.table_bytes(),
            payload_bytes: in_memory.data.chunks.bytes(),
            layout_choice: in_memory.layout_choice.clone(),
            build_time: Duration::ZERO,
        };
        Self {
            spec: in_memory.spec.clone(),
            context,
            in_memory: Mutex::new(Some(Arc::new(in_memory))),
            spilled: None,
            ordered: None,
            share: None,
            room: Mutex::new(room),
            probers: AtomicUsize::new(1),
            statistics,
        }
    }

    pub(crate) fn with_spilled(
        self,
        spilled: SpilledPartitions,
        ordered: Option<SchemaRef>,
    ) -> Self {
        Self { spilled: Some(spilled), ordered, ..self }
    }

    /// Divides the free memory among the probers.
    pub(crate) fn with_shares(self) -> Self {
        Self { share: Some(self.context.free() / self.spec.probers), ..self }
    }

    /// The memory of a prober.
    pub(crate) fn prober_context(&self) -> Context {
        self.share.map_or_else(|| self.context.clone(), |share| self.context.with_share(share))
    }

    pub(crate) fn with_build_time(self, build_time: Duration) -> Self {
        Self { statistics: TableStatistics { build_time, ..self.statistics.clone() }, ..self }
    }

    /// The in-memory build side.
    pub(crate) fn in_memory(&self) -> Option<Arc<InMemoryBuildSide>> {
        lock(&self.in_memory).clone()
    }

    /// Takes the in-memory build side out of the table.
    pub(crate) fn take_in_memory(&self) -> Option<Arc<InMemoryBuildSide>> {
        lock(&self.room).free();
        lock(&self.in_memory).take()
    }

    /// Rows of a probe batch joined at a time, by the memory limit.
    pub(crate) fn piece_rows(&self, batch: &RecordBatch) -> usize {
        self.context.piece_rows(batch, self.spec.probers)
    }

    /// Charges a prober's memory, from the reserve first; `files` make room if they have any.
    pub(crate) fn charge(
        &self,
        to: &mut Reservation,
        bytes: usize,
        files: Option<&ProbeFiles>,
    ) -> Result<(), JoinError> {
        let Some(mut more) = bytes.checked_sub(to.bytes()).filter(|more| *more > 0) else {
            return Ok(());
        };
        if self.share.is_none() {
            let mut room = lock(&self.room);
            let aside = more.min(room.bytes());
            to.absorb(room.split(aside));
            more -= aside;
        }
        match (files, &self.spilled) {
            (Some(files), _) => files.grow(to, more),
            (None, Some(spilled)) => spilled.probe.buffers.grow(to, more, &self.context),
            (None, None) => to.grow(more).map_err(|short| self.context.short(short)),
        }
    }

    /// The same table for another join with the same build side and keys: of another type, with
    /// probe rows of another schema. Nothing is built or copied, and each has probers of its own.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use arrow_array::{Int32Array, Int64Array, RecordBatch};
    /// # use workahead_join::{HashJoin, JoinType, Prober, Side};
    /// let shops = RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(vec![1, 2])) as _),
    ///     ("city", Arc::new(Int64Array::from(vec![10, 20])) as _),
    /// ])?;
    /// let join = |probe, key, how| {
    ///     let join = HashJoin::by_names(probe, shops.schema(), &[(key, "id")], how)?;
    ///     Ok::<_, workahead_join::JoinError>(join.with_build_side(Side::Right))
    /// };
    /// let mut build = join(shops.schema(), "id", JoinType::Left)?.build();
    /// build.push(shops.clone())?;
    /// let table = build.finish()?;
    /// let sales = Arc::new(Int32Array::from(vec![2, 3]));
    /// let sales = RecordBatch::try_from_iter([("shop", sales as _)])?;
    /// for (how, rows) in [(JoinType::Left, 2), (JoinType::Inner, 1), (JoinType::LeftAnti, 1)] {
    ///     let same = table.for_join(&join(sales.schema(), "shop", how)?)?;
    ///     let mut prober = Prober::new(Arc::new(same));
    ///     prober.probe(sales.clone())?;
    ///     assert!(prober.next_output()?.is_none() && prober.end()?.is_none());
    ///     assert_eq!(prober.next_output()?.unwrap().num_rows(), rows);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the table was built for other keys or types, without all of its rows and columns (build
    /// it for a left or a right join that outputs unmatched probe rows), or spills; or if the join
    /// outputs build rows without a match.
    pub fn for_join(&self, join: &HashJoin) -> Result<JoinTable, JoinError> {
        let (own, spec) = (&self.spec, &join.spec);
        let side = own.build_side;
        let refused = |why| Err(JoinError::OtherTable { why });
        let Some(in_memory) = self.in_memory().filter(|_| !self.spills()) else {
            return refused("a table in files is for one join only: raise the memory limit");
        };
        if spec.build_side != side || spec.schema_of(side) != own.schema_of(side) {
            return refused("the table has other columns: build one of this side");
        }
        if !spec.keys(side).reads_as(own.keys(side)) {
            return refused("the table has keys of other types: cast this side's to the table's");
        }
        if own.output_rules().probe != SideOutput::Unmatched || own.null_aware {
            return refused("the table lacks rows or columns: build it for a left or right join");
        }
        if spec.output_rules().build != SideOutput::Never || spec.null_aware {
            return refused("this join outputs or counts rows of the table: build one for it");
        }
        let mut context = self.context.clone();
        context.stop = spec.stop.clone();
        let room = context.reservation();
        let same = in_memory.for_join(Arc::new(spec.clone()));
        Ok(Self {
            spec: same.spec.clone(),
            context,
            in_memory: Mutex::new(Some(Arc::new(same))),
            spilled: None,
            ordered: None,
            share: self.share,
            room: Mutex::new(room),
            probers: AtomicUsize::new(1),
            statistics: self.statistics.clone(),
        })
    }

    /// Sets the number of probers that will [`end`](crate::Prober::end); the last one returns the
    /// final phase. The default is one. To be called before any ends.
    ///
    /// # Panics
    /// If `probers` is zero.
    pub fn expect_probers(&self, probers: usize) {
        assert!(probers > 0, "a table is probed by at least one prober");
        self.probers.store(probers, Ordering::Release);
    }

    /// Whether the prober that ends now is the last.
    pub(crate) fn end_prober(&self) -> bool {
        // Makes matches recorded by other probers visible to the last.
        let before = self.probers.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "more probers end than expected: call expect_probers before");
        before == 1
    }

    /// The join's specification.
    #[must_use]
    pub fn spec(&self) -> &JoinSpec {
        &self.spec
    }

    /// The build side.
    #[must_use]
    pub fn build_side(&self) -> Side {
        self.spec.build_side
    }

    /// Build rows in the table: those whose key can match, without spilled ones.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.statistics.rows
    }

    /// Build rows read.
    #[must_use]
    pub fn input_rows(&self) -> usize {
        self.statistics.input_rows
    }

    /// Distinct keys in the table.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.statistics.keys
    }

    /// Bytes that probes touch: hash table, duplicate lists, and keys that are compared.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.statistics.table_bytes
    }

    /// Bytes of the build side's columns.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.statistics.payload_bytes
    }

    /// The layout of the hash table, and the reason for it.
    #[must_use]
    pub fn layout_choice(&self) -> &LayoutChoice {
        &self.statistics.layout_choice
    }

    /// Time spent in [`BuildSide::push`](crate::BuildSide::push) and
    /// [`BuildSide::finish`](crate::BuildSide::finish).
    #[must_use]
    pub fn build_time(&self) -> Duration {
        self.statistics.build_time
    }

    /// Whether some of the build side is in files: then the order of the probe side is lost (unless
    /// it is [kept](crate::HashJoin::with_kept_order)), and the last prober's
    /// [`FinalPhase`](crate::FinalPhase) has the rest of the join.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.spilled.is_some()
    }

    /// Figures of spilling so far, by all parts of the join.
    #[must_use]
    pub fn spill_metrics(&self) -> SpillMetrics {
        self.context.counts.metrics()
    }

    /// Peak of the join's memory.
    #[must_use]
    pub fn peak_memory_bytes(&self) -> usize {
        self.context.pool.peak_bytes()
    }

    /// The join's memory now.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.context.pool.used()
    }
}

/// Locks stay usable after a panic: they are only held to move things.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for JoinTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinTable")
            .field("rows", &self.rows())
            .field("keys", &self.keys())
            .field("table_bytes", &self.table_bytes())
            .field("choice", &self.layout_choice())
            .field("spills", &self.spills())
            .finish_non_exhaustive()
    }
}
