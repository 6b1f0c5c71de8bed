//! Describes a join step by step, and starts it.

use std::ops::Deref;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use workahead_machine::pages::{Pages, Pool as PagePool};

use crate::keys;
use crate::output_columns::OutputColumns;
use crate::spec::JoinSpec;
use crate::{Caches, Filter, JoinError, JoinType, MemoryPool, NullEquality, Pool, TableLayout};
use crate::{Side, SpillDirectory, StopCheck};

/// A hash join of two inputs where their keys are equal.
///
/// The output has the columns of the left input, then of the right; of only one side for semi and
/// anti joins; of one side and a Boolean `mark` for mark joins. A prober's output keeps the order
/// of the probe side, and unmatched build rows come last, unless the join
/// [spills](Self::with_spill): see [`Prober::spills`](crate::Prober::spills).
#[derive(Debug, Clone)]
pub struct HashJoin {
    pub(crate) spec: JoinSpec,
}

impl Deref for HashJoin {
    type Target = JoinSpec;
    fn deref(&self) -> &JoinSpec {
        &self.spec
    }
}

impl HashJoin {
    /// Joins inputs with these schemas on equality of the columns at the positions `on`. It builds
    /// on the left side, and conflicting names of the right side get the suffix `_right`.
    ///
    /// # Errors
    /// If there is no key, a key column doesn't exist, or two keys can't be compared.
    pub fn new(
        left: SchemaRef,
        right: SchemaRef,
        on: &[(usize, usize)],
        join_type: JoinType,
    ) -> Result<Self, JoinError> {
        let keys = keys::readers(&left, &right, on, false)?;
        let suffix = "_right".to_owned();
        let output_columns = OutputColumns::new(&left, &right, join_type, &suffix);
        let batch_rows = Caches::ASSUMED.batch_rows(&output_columns.schema);
        let spec = JoinSpec {
            left,
            right,
            on: on.to_vec(),
            keys,
            join_type,
            null_aware: false,
            filter: None,
            suffix,
            projection: None,
            output_columns,
            build_side: Side::Left,
            table_layout: TableLayout::Auto,
            caches: Caches::ASSUMED,
            batch_rows,
            requested_batch_rows: None,
            pages: Pages::Huge.into(),
            memory: Pool::unlimited(),
            spill: None,
            keeps_order: false,
            stop: StopCheck::default(),
            probers: 1,
            hash_mask: u64::MAX,
        };
        Ok(Self { spec })
    }

    /// The same with key columns by name.
    ///
    /// # Errors
    /// As [`HashJoin::new`].
    pub fn by_names(
        left: SchemaRef,
        right: SchemaRef,
        on: &[(&str, &str)],
        join_type: JoinType,
    ) -> Result<Self, JoinError> {
        let on = on.iter().map(|(a, b)| Ok((column(&left, a)?, column(&right, b)?)));
        let on = on.collect::<Result<Vec<_>, JoinError>>()?;
        Self::new(left, right, &on, join_type)
    }

    /// Sets the build side: usually the one with fewer rows.
    #[must_use]
    pub fn with_build_side(mut self, build_side: Side) -> Self {
        self.spec.build_side = build_side;
        self
    }

    /// Sets whether null keys are equal. No effect on a null-aware join.
    ///
    /// # Panics
    /// Never: the keys were compared when the join was created.
    #[must_use]
    pub fn with_null_equality(mut self, null_equality: NullEquality) -> Self {
        let equal = null_equality == NullEquality::NullEqualsNull && !self.null_aware;
        let keys = keys::readers(&self.left, &self.right, &self.on, equal);
        self.spec.keys = keys.expect("the keys were compared before");
        self
    }

    /// Makes an anti join that of `NOT IN`: with a null key on the other side, no row is output; a
    /// row with a null key is output only if the other side has no row at all.
    ///
    /// # Errors
    /// If this is not an anti join, has several keys, or a filter.
    pub fn with_null_aware(self) -> Result<Self, JoinError> {
        if !matches!(self.join_type, JoinType::LeftAnti | JoinType::RightAnti) {
            return Err(JoinError::NullAware { why: "only an anti join can be null-aware" });
        }
        if self.on.len() != 1 {
            return Err(JoinError::NullAware { why: "a null-aware join has exactly one key" });
        }
        if self.filter.is_some() {
            return Err(JoinError::NullAware { why: "a null-aware join takes no filter" });
        }
        let mut aware = self.with_null_equality(NullEquality::NullEqualsNothing);
        aware.spec.null_aware = true;
        Ok(aware)
    }

    /// Adds a residual predicate: only candidates that satisfy it are matches.
    ///
    /// # Errors
    /// If the filter's columns don't fit the inputs, or the join is null-aware.
    pub fn with_filter(mut self, filter: Filter) -> Result<Self, JoinError> {
        if self.null_aware {
            return Err(JoinError::NullAware { why: "a null-aware join takes no filter" });
        }
        filter.check(self.schema_of(Side::Left), self.schema_of(Side::Right))?;
        self.spec.filter = Some(filter);
        Ok(self)
    }

    /// Selects the output columns, by their positions in the unprojected output. With none, batches
    /// have only a number of rows.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn with_projection(self, columns: Vec<usize>) -> Result<Self, JoinError> {
        Ok(Self { spec: self.spec.with_projection(columns)? })
    }

    /// Sets the suffix for right-side columns whose names also exist on the left.
    #[must_use]
    pub fn with_suffix(mut self, suffix: &str) -> Self {
        suffix.clone_into(&mut self.spec.suffix);
        let unprojected = self.unprojected();
        let projected = self.projection.as_ref().and_then(|columns| unprojected.projected(columns));
        self.spec.output_columns = projected.unwrap_or(unprojected);
        self
    }

    /// Sets the layout of the hash table.
    #[must_use]
    pub fn with_table_layout(mut self, table_layout: TableLayout) -> Self {
        self.spec.table_layout = table_layout;
        self
    }

    /// Sets the cache sizes that choices depend on.
    #[must_use]
    pub fn with_caches(mut self, caches: Caches) -> Self {
        self.spec.caches = caches;
        self.spec = self.spec.with_default_batch_rows();
        self
    }

    /// Sets the most rows of an output batch; small outputs are coalesced. Default:
    /// [`Caches::batch_rows`].
    ///
    /// # Panics
    /// If `batch_rows` is zero or more than 2³¹.
    #[must_use]
    pub fn with_batch_rows(mut self, batch_rows: usize) -> Self {
        assert!((1..=1 << 31).contains(&batch_rows), "a batch can't have {batch_rows} rows");
        self.spec.requested_batch_rows = Some(batch_rows);
        self.spec = self.spec.with_default_batch_rows();
        self
    }

    /// Sets the page size for the table.
    #[must_use]
    pub fn with_pages(mut self, pages: Pages) -> Self {
        self.spec.pages = self.spec.pages.with_pages(pages);
        self
    }

    /// Takes memory for tables and columns from a pool and returns it there for the next join: the
    /// first touch of fresh memory can cost more than the join. Memory kept by the pool is not
    /// charged to the [memory](Self::with_memory) of any join.
    #[must_use]
    pub fn with_page_pool(mut self, pool: PagePool) -> Self {
        self.spec.pages = self.spec.pages.with_pool(pool);
        self
    }

    /// Sets the number of threads that build large tables, and of probers that memory is reserved
    /// for if it is limited.
    #[must_use]
    pub fn with_probers(mut self, probers: usize) -> Self {
        self.spec.probers = probers.max(1);
        self
    }

    /// Charges all memory to a pool. Without a [spill directory](Self::with_spill), a join that
    /// doesn't fit fails.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<dyn MemoryPool>) -> Self {
        self.spec.memory = memory;
        self
    }

    /// Spills what doesn't fit in memory to files in a directory: partitions of both sides, by a
    /// hash of the key, joined later one by one (hybrid hash join: Shapiro, TODS 1986). The order
    /// of the probe side is lost then, unless it is to be [kept](Self::with_kept_order).
    #[must_use]
    pub fn with_spill(mut self, directory: Arc<SpillDirectory>) -> Self {
        self.spec.spill = Some(directory);
        self
    }

    /// Keeps the order of the probe side where rows are spilled too, in joins whose output rows all
    /// belong to a probe row: each prober's output, which then comes only when its input has ended,
    /// is written to files and merged by the numbers of its probe rows. Each prober has a
    /// [`FinalPhase`](crate::FinalPhase) of its own.
    #[must_use]
    pub fn with_kept_order(mut self) -> Self {
        self.spec.keeps_order = true;
        self
    }

    /// Ends building, probing and spilling with [`JoinError::Stopped`] when the caller wants it.
    #[must_use]
    pub fn with_stop_check(mut self, stop: StopCheck) -> Self {
        self.spec.stop = stop;
        self
    }
}

fn column(schema: &Schema, name: &str) -> Result<usize, JoinError> {
    schema.index_of(name).map_err(|_| {
        let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        JoinError::UnknownColumn { name: name.to_owned(), known: known.join(", ") }
    })
}
