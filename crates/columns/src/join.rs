//! A join, described: inputs, keys, options.

use arrow_schema::{Schema, SchemaRef};
use workahead_machine::pages::Pages;

use crate::build::BuildSide;
use crate::keys::KeyReader;
use crate::layout::{self, Source};
use crate::{Caches, JoinError, Strategy};

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

/// Rows of an output batch unless asked otherwise: what DataFusion and DuckDB's exports use.
const BATCH_ROWS: usize = 8192;

/// One input of a join.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) schema: SchemaRef,
    pub(crate) key: usize,
    pub(crate) keys: KeyReader,
}

/// An inner hash join on one integer key. Null keys match nothing.
///
/// The output has all columns of the left input, then all of the right: give it schemas of only
/// the columns that are wanted.
#[derive(Debug, Clone)]
pub struct HashJoin {
    pub(crate) left: Input,
    pub(crate) right: Input,
    pub(crate) schema: SchemaRef,
    pub(crate) sources: Vec<Source>,
    pub(crate) build_side: Side,
    pub(crate) strategy: Strategy,
    pub(crate) caches: Caches,
    pub(crate) batch_rows: usize,
    pub(crate) pages: Pages,
}

impl HashJoin {
    /// An inner join of inputs with these schemas where the keys are equal, built on the left,
    /// clashing names of the right suffixed with `_right`.
    ///
    /// # Errors
    /// When a key is not a column, or not one this join can compare.
    pub fn inner(
        left: SchemaRef,
        right: SchemaRef,
        left_key: &str,
        right_key: &str,
    ) -> Result<Self, JoinError> {
        let (left_column, right_column) = (column(&left, left_key)?, column(&right, right_key)?);
        let [left_keys, right_keys] = KeyReader::pair(
            (left_key, left.field(left_column).data_type()),
            (right_key, right.field(right_column).data_type()),
        )?;
        let (schema, sources) = layout::output(&left, &right, "_right");
        Ok(Self {
            left: Input { schema: left, key: left_column, keys: left_keys },
            right: Input { schema: right, key: right_column, keys: right_keys },
            schema,
            sources,
            build_side: Side::Left,
            strategy: Strategy::Auto,
            caches: Caches::ASSUMED,
            batch_rows: BATCH_ROWS,
            pages: Pages::Huge,
        })
    }

    /// Builds on a side: the one with fewer rows, as a rule.
    #[must_use]
    pub fn with_build_side(self, build_side: Side) -> Self {
        Self { build_side, ..self }
    }

    /// Gives clashing names of the right side another suffix.
    #[must_use]
    pub fn with_suffix(self, suffix: &str) -> Self {
        let (schema, sources) = layout::output(&self.left.schema, &self.right.schema, suffix);
        Self { schema, sources, ..self }
    }

    /// Looks rows up by a strategy.
    #[must_use]
    pub fn with_strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Chooses by these caches.
    #[must_use]
    pub fn with_caches(self, caches: Caches) -> Self {
        Self { caches, ..self }
    }

    /// Makes output batches of at most so many rows, and puts together those with much fewer.
    ///
    /// # Panics
    /// If `batch_rows` is zero or more than 2³¹.
    #[must_use]
    pub fn with_batch_rows(self, batch_rows: usize) -> Self {
        assert!((1..=1 << 31).contains(&batch_rows), "a batch can't have {batch_rows} rows");
        Self { batch_rows, ..self }
    }

    /// Puts the table on pages of a kind.
    #[must_use]
    pub fn with_pages(self, pages: Pages) -> Self {
        Self { pages, ..self }
    }

    /// What comes out.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Starts the build side.
    #[must_use]
    pub fn build(&self) -> BuildSide {
        BuildSide::new(self.clone())
    }

    pub(crate) fn input(&self, side: Side) -> &Input {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }
}

impl Input {
    /// Refuses a batch of other columns.
    pub(crate) fn check(&self, batch: &Schema) -> Result<(), JoinError> {
        let same = batch.fields().len() == self.schema.fields().len()
            && batch
                .fields()
                .iter()
                .zip(self.schema.fields())
                .all(|(found, announced)| found.data_type() == announced.data_type());
        if same {
            return Ok(());
        }
        let shown = |schema: &Schema| {
            let fields = schema.fields().iter();
            let fields = fields.map(|field| format!("{} {}", field.name(), field.data_type()));
            fields.collect::<Vec<_>>().join(", ")
        };
        Err(JoinError::Schema { found: shown(batch), expected: shown(&self.schema) })
    }
}

fn column(schema: &Schema, name: &str) -> Result<usize, JoinError> {
    schema.index_of(name).map_err(|_| {
        let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        JoinError::UnknownColumn { name: name.to_owned(), known: known.join(", ") }
    })
}
