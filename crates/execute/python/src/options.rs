//! The options of a call of `join`, checked and turned into a plan.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use arrow_schema::{Schema, SchemaRef};
use pyo3::prelude::*;
use workahead_join::{
    Caches, HashJoin, JoinTable, JoinType, NullEquality, PagePool, Pool, Side, SpillDirectory,
    limited_batch_rows,
};
use workahead_machine::limits::Store;
use workahead_machine::{Machine, allocator};

use crate::errors::Error;
use crate::input;
use crate::output_naming::OutputNaming;
use crate::plan::{Batches, Plan, TableSource};
use crate::resources;

/// Row numbers of a batch have 32 bits, one of which is a mark.
const BATCH_ROWS_MAX: usize = 1 << 31;

/// Pages that are kept from one join to the next if memory has no limit: the first touch of fresh
/// pages can cost as much as a join.
const KEPT_BYTES: usize = 256 << 20;
static KEPT_PAGES: LazyLock<PagePool> = LazyLock::new(|| PagePool::keeping(KEPT_BYTES));

/// The arguments as `_join.py` passes them on: names and numbers, not yet checked.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    on: Vec<(String, String)>,
    how: String,
    suffix: String,
    coalesce: bool,
    select: Option<Vec<String>>,
    nulls_equal: bool,
    null_aware: bool,
    build_side: String,
    maintain_order: Option<String>,
    layout: String,
    threads: Option<usize>,
    batch_rows: Option<usize>,
    memory_limit: Option<usize>,
    spill_dir: Option<PathBuf>,
}

impl Options {
    /// A plan for two inputs: their schemas are known, no batch has been read.
    pub(crate) fn plan(&self, left: Batches, right: Batches) -> Result<Plan, Error> {
        let join_type: JoinType = self.how.parse().map_err(wrong)?;
        let ordered = self.maintain_order.as_deref().map(side).transpose()?;
        let build_side = match ordered {
            Some(kept) => kept.other(),
            None => side(&self.build_side)?,
        };
        let (schemas, pool) = ([left.schema(), right.schema()], self.pool());
        let (join, naming) = self.join(schemas, join_type, build_side, pool.clone())?;
        let (build, probe) = match build_side {
            Side::Left => (left, right),
            Side::Right => (right, left),
        };
        let (threads, ordered) = (self.threads()?, ordered.is_some());
        let table = TableSource::Build(Box::new(join), build);
        Ok(Plan { table, build_side, naming, probe, pool, threads, ordered })
    }

    /// A plan for an input and the table of an index.
    pub(crate) fn plan_with_index(&self, probe: Batches, index: &JoinTable) -> Result<Plan, Error> {
        let join_type: JoinType = self.how.parse().map_err(wrong)?;
        let schemas = [probe.schema(), index.spec().schema_of(Side::Right).clone()];
        let (join, naming) = self.join(schemas, join_type, Side::Right, Pool::unlimited())?;
        let table = TableSource::Index(Arc::new(index.for_join(&join)?));
        let (pool, threads) = (Pool::unlimited(), self.threads()?);
        let build_side = Side::Right;
        Ok(Plan { table, build_side, naming, probe, pool, threads, ordered: threads == 1 })
    }

    fn pool(&self) -> Arc<Pool> {
        self.memory_limit.map_or_else(Pool::unlimited, Pool::of)
    }

    /// The join of two inputs, and the names of its columns.
    fn join(
        &self,
        [left, right]: [SchemaRef; 2],
        join_type: JoinType,
        build_side: Side,
        pool: Arc<Pool>,
    ) -> Result<(HashJoin, OutputNaming), Error> {
        let on: Vec<_> = self.on.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        for (left_key, right_key) in &on {
            require_column(left_key, &left, "left input")?;
            require_column(right_key, &right, "right input")?;
        }
        let mut join = HashJoin::by_names(left, right, &on, join_type)?
            .with_build_side(build_side)
            .with_null_equality(self.null_equality())
            .with_suffix(&self.suffix)
            .with_table_layout(self.layout.parse().map_err(wrong)?)
            .with_caches(caches())
            .with_memory(pool)
            .with_probers(self.threads()?);
        if self.null_aware {
            join = join.with_null_aware()?;
        }
        let join = match self.memory_limit {
            None => join.with_page_pool(KEPT_PAGES.clone()),
            Some(_) => self.with_spill(join)?,
        };
        let naming = match self.coalesce {
            true => OutputNaming::coalesced(&join, &self.on)?,
            false => OutputNaming::plain(&join),
        };
        let naming = match &self.select {
            Some(names) => naming.selected(names)?,
            None => naming,
        };
        let (join, naming) = naming.of(join)?;
        Ok((self.with_batch_rows(join)?, naming))
    }

    /// The join with spilling.
    fn with_spill(&self, join: HashJoin) -> Result<HashJoin, Error> {
        allocator::give_back_what_is_freed();
        let directory = resources::spill_directory(self.spill_dir.clone())?;
        let directory = SpillDirectory::new(directory, None);
        Ok(join.with_spill(directory.map_err(|error| Error::Join(error.into()))?))
    }

    /// With the requested batch length; by default that of the caches, or less with a memory limit.
    fn with_batch_rows(&self, join: HashJoin) -> Result<HashJoin, Error> {
        match (self.batch_rows, self.memory_limit) {
            (Some(rows @ 1..=BATCH_ROWS_MAX), _) => Ok(join.with_batch_rows(rows)),
            (Some(rows), _) => Err(Error::WrongUse(format!(
                "a batch can't have {rows} rows: give a number from 1 to 2^31"
            ))),
            (None, Some(limit)) => {
                let rows = limited_batch_rows(limit).min(join.batch_rows());
                Ok(join.with_batch_rows(rows))
            }
            (None, None) => Ok(join),
        }
    }

    /// One if the order is kept.
    fn threads(&self) -> Result<usize, Error> {
        if self.maintain_order.is_some() {
            return Ok(1);
        }
        resources::threads(self.threads).map(NonZero::get)
    }

    fn null_equality(&self) -> NullEquality {
        match self.nulls_equal {
            true => NullEquality::NullEqualsNull,
            false => NullEquality::NullEqualsNothing,
        }
    }
}

fn wrong(error: impl std::error::Error) -> Error {
    Error::WrongUse(error.to_string())
}

fn side(name: &str) -> Result<Side, Error> {
    match name {
        "left" => Ok(Side::Left),
        "right" => Ok(Side::Right),
        _ => Err(Error::WrongUse(format!("unknown side {name:?}: choose from left, right"))),
    }
}

/// Refuses a key that an input does not have, naming the input.
pub(crate) fn require_column(name: &str, schema: &Schema, input: &str) -> Result<(), Error> {
    if schema.index_of(name).is_ok() {
        return Ok(());
    }
    let known: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    Err(Error::WrongUse(format!(
        "the {input} has no column {name:?}: choose from {}",
        known.join(", ")
    )))
}

/// The caches of this machine, read once.
pub(crate) fn caches() -> Caches {
    static CACHES: LazyLock<Caches> = LazyLock::new(|| {
        let machine = Machine::here();
        Caches::of(&machine, Store::of_user().load(&machine).as_ref())
    });
    *CACHES
}

/// Batches of a side.
pub(crate) fn reader(input: &Bound<'_, PyAny>, side: Side) -> PyResult<Batches> {
    input::reader(input, &format!("{} input", side.name()))
}

/// Parses a size, as for [`Options::memory_limit`].
pub(crate) fn bytes(text: &str) -> Result<usize, Error> {
    workahead_join::memory_bytes(text).map_err(wrong)
}
