//! The specification of a join: inputs, keys, type, options.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use workahead_machine::pages::Supply;
use workahead_walks::bucket::Load;

use crate::join_type::{OutputRules, SideOutput};
use crate::keys::{EncodingKind, KeyEncoding, Reader};
use crate::output_columns::{ColumnSource, OutputColumns, with_numbers};
use crate::table_layout::table_load;
use crate::{Caches, Filter, JoinError, JoinType, LayoutChoice, MemoryPool, Side, TableLayout};
use crate::{SpillDirectory, StopCheck};

/// The specification of a join, created by [`HashJoin`](crate::HashJoin) and read by all of its
/// parts.
#[derive(Debug, Clone)]
pub struct JoinSpec {
    pub(crate) left: SchemaRef,
    pub(crate) right: SchemaRef,
    pub(crate) on: Vec<(usize, usize)>,
    pub(crate) keys: [Reader; 2],
    pub(crate) join_type: JoinType,
    pub(crate) null_aware: bool,
    pub(crate) filter: Option<Filter>,
    pub(crate) suffix: String,
    pub(crate) projection: Option<Vec<usize>>,
    pub(crate) output_columns: OutputColumns,
    pub(crate) build_side: Side,
    pub(crate) table_layout: TableLayout,
    pub(crate) caches: Caches,
    /// Most rows of an output batch: as requested, or by the caches and columns.
    pub(crate) batch_rows: usize,
    pub(crate) requested_batch_rows: Option<usize>,
    pub(crate) pages: Supply,
    pub(crate) memory: Arc<dyn MemoryPool>,
    pub(crate) spill: Option<Arc<SpillDirectory>>,
    /// Whether the probe side's order is kept where rows are spilled.
    pub(crate) keeps_order: bool,
    pub(crate) stop: StopCheck,
    pub(crate) probers: usize,
    /// All bits, except in tests of hash collisions.
    pub(crate) hash_mask: u64,
}

impl JoinSpec {
    pub(crate) fn output_rules(&self) -> OutputRules {
        self.join_type.output_rules(self.build_side)
    }

    /// Whether nothing but the presence of a key in the build side counts.
    pub(crate) fn asks_existence_only(&self) -> bool {
        let rules = self.output_rules();
        !rules.matches && rules.build == SideOutput::Never && self.filter.is_none()
    }

    /// Sources of the columns of matches. A build key is taken from the probe side if both have one
    /// type and every output probe row has a match: there it is read in order, in the build side at
    /// random.
    pub(crate) fn match_sources(&self) -> Vec<ColumnSource> {
        let (side, output_rules) = (self.build_side, self.output_rules());
        let matched = output_rules.matches && output_rules.probe == SideOutput::Never;
        let own = |source: &ColumnSource| match *source {
            ColumnSource::Column(of, column) if of == side && matched => self.probe_key(column),
            _ => None,
        };
        self.output_columns.sources.iter().map(|source| own(source).unwrap_or(*source)).collect()
    }

    /// The probe key that always equals a build column, if both have one type.
    fn probe_key(&self, column: usize) -> Option<ColumnSource> {
        let (build, probe) = (self.build_side, self.build_side.other());
        let of = |on: &(usize, usize), side| if side == Side::Left { on.0 } else { on.1 };
        let on = self.on.iter().find(|on| of(on, build) == column)?;
        let key = of(on, probe);
        let [build, own] = [(build, column), (probe, key)]
            .map(|(side, column)| self.schema_of(side).field(column).data_type());
        (build == own && !own.is_nested() && !matches!(own, DataType::Dictionary(..)))
            .then_some(ColumnSource::Column(probe, key))
    }

    /// Schema of the output.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.output_columns.schema.clone()
    }

    /// Schema of an input.
    #[must_use]
    pub fn schema_of(&self, side: Side) -> &SchemaRef {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// The join type.
    #[must_use]
    pub fn join_type(&self) -> JoinType {
        self.join_type
    }

    pub(crate) fn keys(&self, side: Side) -> &Reader {
        &self.keys[usize::from(side == Side::Right)]
    }

    pub(crate) fn encoding(&self, kind: EncodingKind) -> KeyEncoding {
        KeyEncoding { hash_mask: self.hash_mask, ..KeyEncoding::new(kind) }
    }

    /// Rejects a batch with other columns than those of a side.
    pub(crate) fn check(&self, side: Side, batch: &Schema) -> Result<(), JoinError> {
        let declared = self.schema_of(side).fields();
        let same = batch.fields().len() == declared.len()
            && batch
                .fields()
                .iter()
                .zip(declared)
                .all(|(found, declared)| found.data_type() == declared.data_type());
        if same {
            return Ok(());
        }
        let described = |schema: &Schema| {
            let fields = schema.fields().iter();
            let fields = fields.map(|field| format!("{} {}", field.name(), field.data_type()));
            fields.collect::<Vec<_>>().join(", ")
        };
        let expected = described(self.schema_of(side));
        Err(JoinError::Schema { found: described(batch), expected })
    }

    /// The columns without a projection.
    pub(crate) fn unprojected(&self) -> OutputColumns {
        OutputColumns::new(&self.left, &self.right, self.join_type, &self.suffix)
    }

    /// The cache sizes that choices depend on.
    #[must_use]
    pub fn caches(&self) -> Caches {
        self.caches
    }

    /// Most rows of an output batch.
    #[must_use]
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// The preferred length of probe batches. [`run`](crate::run) cuts longer ones.
    #[must_use]
    pub fn probe_batch_rows(&self) -> usize {
        self.caches.batch_rows(self.schema_of(self.build_side.other()))
    }

    /// Selects the output columns, by their positions in the unprojected output.
    pub(crate) fn with_projection(&self, columns: Vec<usize>) -> Result<Self, JoinError> {
        let unprojected = self.unprojected();
        let Some(layout) = unprojected.projected(&columns) else {
            let columns = format!("{columns:?}");
            return Err(JoinError::Projection { columns, most: unprojected.sources.len() });
        };
        Ok(Self { projection: Some(columns), output_columns: layout, ..self.clone() }
            .with_default_batch_rows())
    }

    /// The same for probe rows with a number at their end, and in the output too.
    pub(crate) fn numbered(&self) -> Self {
        let probe = self.build_side.other();
        let source = ColumnSource::Column(probe, self.schema_of(probe).fields().len());
        let schema = with_numbers(&self.output_columns.schema);
        let sources = self.output_columns.sources.iter().copied().chain([source]).collect();
        let mut numbered =
            Self { output_columns: OutputColumns { schema, sources }, ..self.clone() };
        let side = match probe {
            Side::Left => &mut numbered.left,
            Side::Right => &mut numbered.right,
        };
        *side = with_numbers(side);
        numbered
    }

    /// Whether all output rows belong to a probe row, whose place they keep although rows are
    /// spilled.
    pub(crate) fn is_ordered(&self) -> bool {
        self.keeps_order && self.output_rules().build == SideOutput::Never
    }

    /// Sets the length of output batches by the caches and columns, unless one was requested.
    pub(crate) fn with_default_batch_rows(self) -> Self {
        let by_caches = || self.caches.batch_rows(&self.output_columns.schema);
        Self { batch_rows: self.requested_batch_rows.unwrap_or_else(by_caches), ..self }
    }

    /// The table layout for a number of distinct keys, and their range unless they are hashed.
    pub(crate) fn choose_table_layout(&self, entries: usize, span: Option<u64>) -> LayoutChoice {
        let (limited, existence_only) = (self.memory.limit().is_some(), self.asks_existence_only());
        self.table_layout.choose(entries, span, limited, existence_only)
    }

    /// How full the table may get.
    pub(crate) fn load(&self) -> Load {
        table_load(self.memory.limit().is_some())
    }
}
