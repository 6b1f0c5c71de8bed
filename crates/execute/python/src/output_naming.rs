//! Columns of the output and their names, by the conventions of data frame libraries: a key with
//! the same name on both sides is one column.
//!
//! ```text
//! the join's columns    left…, right…   both keys, equal names with a suffix
//! the output's key      inner, left     the left key
//!                       right           the right key, in the position of the left one
//!                       full            the left key, or the right one where that is null
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use arrow_select::zip::zip;
use workahead_join::{HashJoin, JoinError, JoinType, Side};

use crate::errors::Error;

/// The source of an output column: columns of the join, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnSource {
    One(usize),
    /// The first where it is not null, else the second.
    Either(usize, usize),
}

/// The output columns and their names.
#[derive(Debug, Clone)]
pub(crate) struct OutputNaming {
    schema: SchemaRef,
    sources: Vec<ColumnSource>,
}

impl OutputNaming {
    /// All columns of a join, unchanged.
    pub(crate) fn plain(join: &HashJoin) -> Self {
        let schema = join.schema();
        let sources = (0..schema.fields().len()).map(ColumnSource::One).collect();
        Self { schema, sources }
    }

    /// With one column for each pair of keys, if the output has the columns of both sides.
    pub(crate) fn coalesced(join: &HashJoin, on: &[(String, String)]) -> Result<Self, Error> {
        let join_type = join.join_type();
        if !(join_type.outputs(Side::Left) && join_type.outputs(Side::Right)) {
            return Ok(Self::plain(join));
        }
        let (left, right) = (join.schema_of(Side::Left), join.schema_of(Side::Right));
        let first = left.fields().len();
        let mut keys = Vec::with_capacity(on.len());
        for (left_key, right_key) in on {
            let [left_key, right_key] =
                [(left, left_key), (right, right_key)].map(|(schema, name)| schema.index_of(name));
            keys.push((left_key?, first + right_key?));
        }
        let all = join.schema();
        let mut naming = Self { schema: all.clone(), sources: Vec::new() };
        let mut fields: Vec<FieldRef> = Vec::new();
        for (column, field) in all.fields().iter().enumerate() {
            if keys.iter().any(|&(_, right)| right == column) {
                continue;
            }
            let (source, field) = match keys.iter().find(|&&(left, _)| left == column) {
                Some(&(_, right)) => {
                    let left = Key { column, field };
                    let right = Key { column: right, field: &all.fields()[right] };
                    one_key(join_type, &left, &right)?
                }
                None => (ColumnSource::One(column), field.clone()),
            };
            naming.sources.push(source);
            fields.push(field);
        }
        let schema = Schema::new_with_metadata(fields, all.metadata().clone());
        Ok(Self { schema: Arc::new(schema), ..naming })
    }

    /// Only some of the columns, in that order.
    pub(crate) fn selected(&self, names: &[String]) -> Result<Self, Error> {
        let position = |name: &String| {
            self.schema.index_of(name).map_err(|_| {
                let known = self.schema.fields().iter().map(|field| field.name().as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                Error::WrongUse(format!("the result has no column {name:?}: choose from {known}"))
            })
        };
        let columns = names.iter().map(position).collect::<Result<Vec<_>, _>>()?;
        let sources = columns.iter().map(|&column| self.sources[column]).collect();
        Ok(Self { schema: Arc::new(self.schema.project(&columns)?), sources })
    }

    /// The join with only the columns that are needed, and the naming of its output.
    pub(crate) fn of(self, join: HashJoin) -> Result<(HashJoin, Self), JoinError> {
        let mut needed = Vec::new();
        let mut position = |column| match needed.iter().position(|&other| other == column) {
            Some(at) => at,
            None => {
                needed.push(column);
                needed.len() - 1
            }
        };
        let sources = self.sources.iter().map(|source| match *source {
            ColumnSource::One(column) => ColumnSource::One(position(column)),
            ColumnSource::Either(left, right) => {
                ColumnSource::Either(position(left), position(right))
            }
        });
        let sources = sources.collect();
        Ok((join.with_projection(needed)?, Self { sources, ..self }))
    }

    /// The schema of the output.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The output batch for a batch of the join. Columns are shared; only a full join's keys are
    /// computed.
    pub(crate) fn batch(&self, joined: &RecordBatch) -> Result<RecordBatch, Error> {
        let columns = self.sources.iter().map(|source| match *source {
            ColumnSource::One(column) => Ok(joined.column(column).clone()),
            ColumnSource::Either(left, right) => either(joined.column(left), joined.column(right)),
        });
        let columns = columns.collect::<Result<Vec<_>, Error>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(joined.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// A key column of the join.
struct Key<'a> {
    column: usize,
    field: &'a FieldRef,
}

/// The column for a pair of keys, with the left one's name.
fn one_key(
    join_type: JoinType,
    left: &Key<'_>,
    right: &Key<'_>,
) -> Result<(ColumnSource, FieldRef), Error> {
    let name = left.field.name();
    match join_type {
        JoinType::Right => {
            let field = right.field.as_ref().clone().with_name(name);
            Ok((ColumnSource::One(right.column), Arc::new(field)))
        }
        JoinType::Full if left.field.data_type() == right.field.data_type() => {
            Ok((ColumnSource::Either(left.column, right.column), left.field.clone()))
        }
        JoinType::Full => Err(Error::WrongUse(format!(
            "the keys {name:?} ({}) and {:?} ({}) can't be one column: cast one of them, or give \
             coalesce=False for both",
            left.field.data_type(),
            right.field.name(),
            right.field.data_type(),
        ))),
        _ => Ok((ColumnSource::One(left.column), left.field.clone())),
    }
}

fn either(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, Error> {
    let Some(nulls) = left.logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(left.clone());
    };
    let valid = BooleanArray::new(nulls.into_inner(), None);
    Ok(zip(&valid, left, right)?)
}
