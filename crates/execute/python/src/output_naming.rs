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

/// One output column, by the positions of the join's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    One(usize),
    /// The first where it is not null, else the second.
    Either(usize, usize),
}

/// Which of the join's columns come out, and under which names.
#[derive(Debug, Clone)]
pub(crate) struct OutputNaming {
    schema: SchemaRef,
    picks: Vec<Pick>,
}

impl OutputNaming {
    /// All columns of a join, unchanged.
    pub(crate) fn plain(join: &HashJoin) -> Self {
        let schema = join.schema();
        let picks = (0..schema.fields().len()).map(Pick::One).collect();
        Self { schema, picks }
    }

    /// With one column for each two equal keys, if both sides' columns come out.
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
        let mut naming = Self { schema: all.clone(), picks: Vec::new() };
        let mut fields: Vec<FieldRef> = Vec::new();
        for (column, field) in all.fields().iter().enumerate() {
            if keys.iter().any(|&(_, right)| right == column) {
                continue;
            }
            let (pick, field) = match keys.iter().find(|&&(left, _)| left == column) {
                Some(&(_, right)) => {
                    let left = Key { column, field };
                    let right = Key { column: right, field: &all.fields()[right] };
                    one_key(join_type, &left, &right)?
                }
                None => (Pick::One(column), field.clone()),
            };
            naming.picks.push(pick);
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
        let picks = columns.iter().map(|&column| self.picks[column]).collect();
        Ok(Self { schema: Arc::new(self.schema.project(&columns)?), picks })
    }

    /// The join with only the columns that are needed, and the naming of its output.
    pub(crate) fn of(self, join: HashJoin) -> Result<(HashJoin, Self), JoinError> {
        let mut needed = Vec::new();
        let mut place = |column| match needed.iter().position(|&other| other == column) {
            Some(at) => at,
            None => {
                needed.push(column);
                needed.len() - 1
            }
        };
        let picks = self.picks.iter().map(|pick| match *pick {
            Pick::One(column) => Pick::One(place(column)),
            Pick::Either(left, right) => Pick::Either(place(left), place(right)),
        });
        let picks = picks.collect();
        Ok((join.with_projection(needed)?, Self { picks, ..self }))
    }

    /// Of every batch of the output.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The output's batch for one of the join: columns are shared, only a full join's keys are
    /// computed.
    pub(crate) fn batch(&self, joined: &RecordBatch) -> Result<RecordBatch, Error> {
        let columns = self.picks.iter().map(|pick| match *pick {
            Pick::One(column) => Ok(joined.column(column).clone()),
            Pick::Either(left, right) => either(joined.column(left), joined.column(right)),
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

/// The column for two equal keys, with the left one's name.
fn one_key(
    join_type: JoinType,
    left: &Key<'_>,
    right: &Key<'_>,
) -> Result<(Pick, FieldRef), Error> {
    let name = left.field.name();
    match join_type {
        JoinType::Right => {
            let field = right.field.as_ref().clone().with_name(name);
            Ok((Pick::One(right.column), Arc::new(field)))
        }
        JoinType::Full if left.field.data_type() == right.field.data_type() => {
            Ok((Pick::Either(left.column, right.column), left.field.clone()))
        }
        JoinType::Full => Err(Error::WrongUse(format!(
            "the keys {name:?} ({}) and {:?} ({}) can't be one column: cast one of them, or give \
             coalesce=False for both",
            left.field.data_type(),
            right.field.name(),
            right.field.data_type(),
        ))),
        _ => Ok((Pick::One(left.column), left.field.clone())),
    }
}

fn either(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, Error> {
    let Some(nulls) = left.logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(left.clone());
    };
    let there = BooleanArray::new(nulls.into_inner(), None);
    Ok(zip(&there, left, right)?)
}
