//! A join, described: inputs, keys, type, options.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use workahead_machine::pages::{Pages, Pool as PagePool, Supply};

use crate::SpillDirectory;
use crate::build_side::BuildSide;
use crate::join_type::{Alone, Emits};
use crate::keys::{self, Mapping, MappingKind, Reader};
use crate::layout::{Layout, Source};
use crate::{Caches, Design, Filter, JoinError, JoinType, MemoryPool, NullEquality, Pool};

/// A side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Its columns come first.
    Left,
    /// Its columns come after.
    Right,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// `left` or `right`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

/// A hash join of two inputs where their keys are equal.
///
/// The output has the columns of the left input, then of the right; of only one side for semi and
/// anti joins; of one side and a Boolean `mark` for mark joins. The rows of a prober come in the
/// order of the probe side, and build rows without a match last, unless the join
/// [spills](Self::with_spill): [`Prober::spills`](crate::Prober::spills).
#[derive(Debug, Clone)]
pub struct HashJoin {
    left: SchemaRef,
    right: SchemaRef,
    on: Vec<(usize, usize)>,
    keys: [Reader; 2],
    pub(crate) join_type: JoinType,
    pub(crate) null_aware: bool,
    pub(crate) filter: Option<Filter>,
    suffix: String,
    projection: Option<Vec<usize>>,
    pub(crate) layout: Layout,
    pub(crate) build_side: Side,
    pub(crate) design: Design,
    pub(crate) caches: Caches,
    /// Of an output batch: as asked for, or by the caches and the columns.
    pub(crate) batch_rows: usize,
    asked_batch_rows: Option<usize>,
    pub(crate) pages: Supply,
    pub(crate) memory: Arc<dyn MemoryPool>,
    pub(crate) spill: Option<Arc<SpillDirectory>>,
    pub(crate) probers: usize,
    /// All bits, but in tests.
    pub(crate) hash_mask: u64,
}

impl HashJoin {
    /// A join of inputs with these schemas where the columns at the positions `on` are equal,
    /// built on the left, clashing names of the right suffixed with `_right`.
    ///
    /// # Errors
    /// When there is no key, one is not a column, or two can't be compared.
    pub fn new(
        left: SchemaRef,
        right: SchemaRef,
        on: &[(usize, usize)],
        join_type: JoinType,
    ) -> Result<Self, JoinError> {
        let keys = keys::readers(&left, &right, on, false)?;
        let suffix = "_right".to_owned();
        let layout = Layout::new(&left, &right, join_type, &suffix);
        let batch_rows = Caches::ASSUMED.batch_rows(&layout.schema);
        Ok(Self {
            left,
            right,
            on: on.to_vec(),
            keys,
            join_type,
            null_aware: false,
            filter: None,
            suffix,
            projection: None,
            layout,
            build_side: Side::Left,
            design: Design::Auto,
            caches: Caches::ASSUMED,
            batch_rows,
            asked_batch_rows: None,
            pages: Pages::Huge.into(),
            memory: Pool::unlimited(),
            spill: None,
            probers: 1,
            hash_mask: u64::MAX,
        })
    }

    /// The same with keys by their names.
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

    /// Builds on a side: the one with fewer rows, as a rule.
    #[must_use]
    pub fn with_build_side(self, build_side: Side) -> Self {
        Self { build_side, ..self }
    }

    /// Says whether null keys are equal. A null-aware join decides about nulls itself.
    ///
    /// # Panics
    /// Never: the keys were compared when the join was made.
    #[must_use]
    pub fn with_null_equality(self, null_equality: NullEquality) -> Self {
        let equal = null_equality == NullEquality::NullEqualsNull && !self.null_aware;
        let keys = keys::readers(&self.left, &self.right, &self.on, equal);
        Self { keys: keys.expect("the keys were compared before"), ..self }
    }

    /// Makes an anti join that of `NOT IN`: one null key on the other side, and no row comes out; a
    /// row with a null key comes out only if the other side has no row at all.
    ///
    /// # Errors
    /// When this is not an anti join, has several keys, or a filter.
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
        let plain = self.with_null_equality(NullEquality::NullEqualsNothing);
        Ok(Self { null_aware: true, ..plain })
    }

    /// Takes only pairs that a filter wants.
    ///
    /// # Errors
    /// When the filter's columns are not those of the inputs, or the join is null-aware.
    pub fn with_filter(self, filter: Filter) -> Result<Self, JoinError> {
        if self.null_aware {
            return Err(JoinError::NullAware { why: "a null-aware join takes no filter" });
        }
        filter.check(&self)?;
        Ok(Self { filter: Some(filter), ..self })
    }

    /// Puts out only some columns, by their positions in the unprojected output; none at all for
    /// batches that only have a number of rows.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn with_projection(self, columns: Vec<usize>) -> Result<Self, JoinError> {
        let unprojected = self.unprojected();
        let Some(layout) = unprojected.projected(&columns) else {
            let columns = format!("{columns:?}");
            return Err(JoinError::Projection { columns, most: unprojected.sources.len() });
        };
        Ok(Self { projection: Some(columns), layout, ..self }.sized())
    }

    /// Gives clashing names of the right side another suffix.
    #[must_use]
    pub fn with_suffix(mut self, suffix: &str) -> Self {
        suffix.clone_into(&mut self.suffix);
        let unprojected = self.unprojected();
        let projected = self.projection.as_ref().and_then(|kept| unprojected.projected(kept));
        Self { layout: projected.unwrap_or(unprojected), ..self }
    }

    /// Keeps keys in a table of a design.
    #[must_use]
    pub fn with_design(self, design: Design) -> Self {
        Self { design, ..self }
    }

    /// Chooses by these caches.
    #[must_use]
    pub fn with_caches(self, caches: Caches) -> Self {
        Self { caches, ..self }.sized()
    }

    /// The caches by which it chooses.
    #[must_use]
    pub fn caches(&self) -> Caches {
        self.caches
    }

    /// Makes output batches of at most so many rows, and puts together those with much fewer. Else
    /// they are as long as [`Caches::batch_rows`] says.
    ///
    /// # Panics
    /// If `batch_rows` is zero or more than 2³¹.
    #[must_use]
    pub fn with_batch_rows(self, batch_rows: usize) -> Self {
        assert!((1..=1 << 31).contains(&batch_rows), "a batch can't have {batch_rows} rows");
        Self { asked_batch_rows: Some(batch_rows), ..self }.sized()
    }

    fn sized(self) -> Self {
        let by_caches = || self.caches.batch_rows(&self.layout.schema);
        Self { batch_rows: self.asked_batch_rows.unwrap_or_else(by_caches), ..self }
    }

    /// Most rows of an output batch.
    #[must_use]
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// Rows that batches of the probe side are best of. [`run`](crate::run) cuts longer ones.
    #[must_use]
    pub fn probe_batch_rows(&self) -> usize {
        self.caches.batch_rows(self.schema_of(self.build_side.other()))
    }

    /// Puts the table on pages of a kind.
    #[must_use]
    pub fn with_pages(self, pages: Pages) -> Self {
        Self { pages: self.pages.with_pages(pages), ..self }
    }

    /// Takes tables and columns from a pool, and gives them back to it for the next join: the first
    /// touch of fresh memory can cost more than the join. What the pool keeps is its own: it is not
    /// charged to the [memory](Self::with_memory) of any join.
    #[must_use]
    pub fn with_page_pool(self, pool: PagePool) -> Self {
        Self { pages: self.pages.with_pool(pool), ..self }
    }

    /// Builds large tables with so many threads, and leaves room for as many probers where memory
    /// is limited.
    #[must_use]
    pub fn with_probers(self, probers: usize) -> Self {
        Self { probers: probers.max(1), ..self }
    }

    /// Charges everything to a pool. Without a [spill directory](Self::with_spill), a join that
    /// does not fit is an error.
    #[must_use]
    pub fn with_memory(self, memory: Arc<dyn MemoryPool>) -> Self {
        Self { memory, ..self }
    }

    /// Takes what does not fit into memory to files in a directory: partitions of both sides, by a
    /// hash of the key, each joined later on its own (hybrid hash join: Shapiro, TODS 1986). The
    /// order of the probe side is not kept then.
    #[must_use]
    pub fn with_spill(self, directory: Arc<SpillDirectory>) -> Self {
        Self { spill: Some(directory), ..self }
    }

    pub(crate) fn emits(&self) -> Emits {
        self.join_type.emits(self.build_side)
    }

    /// Where the columns of pairs come from. A key of the build side is the probe's own where both
    /// are of one type and every probe row that comes out has a match: it lies there in order,
    /// while the build side's is read at random.
    pub(crate) fn pair_sources(&self) -> Vec<Source> {
        let (side, emits) = (self.build_side, self.emits());
        let matched = emits.pairs && emits.probe == Alone::Never;
        let own = |source: &Source| match *source {
            Source::Column(of, column) if of == side && matched => self.probe_key(column),
            _ => None,
        };
        self.layout.sources.iter().map(|source| own(source).unwrap_or(*source)).collect()
    }

    /// The probe side's key that a build column always equals, if they look the same too.
    fn probe_key(&self, column: usize) -> Option<Source> {
        let (build, probe) = (self.build_side, self.build_side.other());
        let of = |on: &(usize, usize), side| if side == Side::Left { on.0 } else { on.1 };
        let on = self.on.iter().find(|on| of(on, build) == column)?;
        let key = of(on, probe);
        let [build, own] = [(build, column), (probe, key)]
            .map(|(side, column)| self.schema_of(side).field(column).data_type());
        (build == own && !own.is_nested() && !matches!(own, DataType::Dictionary(..)))
            .then_some(Source::Column(probe, key))
    }

    /// What comes out.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.layout.schema.clone()
    }

    /// What goes in on a side.
    #[must_use]
    pub fn schema_of(&self, side: Side) -> &SchemaRef {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// Which rows come out.
    #[must_use]
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }

    /// Starts the build side.
    #[must_use]
    pub fn build(&self) -> BuildSide {
        BuildSide::new(self)
    }

    pub(crate) fn keys(&self, side: Side) -> &Reader {
        &self.keys[usize::from(side == Side::Right)]
    }

    pub(crate) fn mapping(&self, kind: MappingKind) -> Mapping {
        Mapping { hash_mask: self.hash_mask, ..Mapping::new(kind) }
    }

    fn unprojected(&self) -> Layout {
        Layout::new(&self.left, &self.right, self.join_type, &self.suffix)
    }

    /// Refuses a batch of other columns than those of a side.
    pub(crate) fn check(&self, side: Side, batch: &Schema) -> Result<(), JoinError> {
        let announced = self.schema_of(side).fields();
        let same = batch.fields().len() == announced.len()
            && batch
                .fields()
                .iter()
                .zip(announced)
                .all(|(found, announced)| found.data_type() == announced.data_type());
        if same {
            return Ok(());
        }
        let shown = |schema: &Schema| {
            let fields = schema.fields().iter();
            let fields = fields.map(|field| format!("{} {}", field.name(), field.data_type()));
            fields.collect::<Vec<_>>().join(", ")
        };
        let expected = shown(self.schema_of(side));
        Err(JoinError::Schema { found: shown(batch), expected })
    }
}

fn column(schema: &Schema, name: &str) -> Result<usize, JoinError> {
    schema.index_of(name).map_err(|_| {
        let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        JoinError::UnknownColumn { name: name.to_owned(), known: known.join(", ") }
    })
}
