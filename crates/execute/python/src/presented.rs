//! The columns that come out, as Python's users know them: a key that both sides call the same is
//! one column.
//!
//! ```text
//! the join's:    left…, right…            both keys, clashing names with a suffix
//! presented:     inner, left   the left key       right   the right key, in the left one's place
//!                full          whichever is there
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use arrow_select::zip::zip;
use workahead_join::{HashJoin, JoinError, JoinType, Side};

use crate::errors::Error;

/// One column: where it is among the join's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    One(usize),
    /// The first where it is not null, else the second.
    Either(usize, usize),
}

/// A form for the join's batches.
#[derive(Debug, Clone)]
pub(crate) struct Presented {
    schema: SchemaRef,
    picks: Vec<Pick>,
}

impl Presented {
    /// All columns of a join as they are.
    pub(crate) fn plain(join: &HashJoin) -> Self {
        let schema = join.schema();
        let picks = (0..schema.fields().len()).map(Pick::One).collect();
        Self { schema, picks }
    }

    /// With one column for each pair of keys, if the join shows both sides.
    pub(crate) fn coalesced(join: &HashJoin, on: &[(String, String)]) -> Result<Self, Error> {
        let join_type = join.join_type();
        if !(join_type.shows(Side::Left) && join_type.shows(Side::Right)) {
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
        let mut presented = Self { schema: all.clone(), picks: Vec::new() };
        let mut fields: Vec<FieldRef> = Vec::new();
        for (column, field) in all.fields().iter().enumerate() {
            if keys.iter().any(|&(_, right)| right == column) {
                continue;
            }
            let (pick, field) = match keys.iter().find(|&&(left, _)| left == column) {
                Some(&(_, right)) => {
                    one_key(join_type, (column, field), (right, all.field(right)))?
                }
                None => (Pick::One(column), field.clone()),
            };
            presented.picks.push(pick);
            fields.push(field);
        }
        let schema = Schema::new_with_metadata(fields, all.metadata().clone());
        Ok(Self { schema: Arc::new(schema), ..presented })
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

    /// The join with only the columns that are needed, and the form for its batches.
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

    /// What comes out.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A batch of the join in this form: columns are shared, only a full join's keys are made.
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

/// The column for a pair of keys, called as the left one.
fn one_key(
    join_type: JoinType,
    (left, left_field): (usize, &FieldRef),
    (right, right_field): (usize, &arrow_schema::Field),
) -> Result<(Pick, FieldRef), Error> {
    let name = left_field.name();
    match join_type {
        JoinType::Right => {
            let field = right_field.clone().with_name(name);
            Ok((Pick::One(right), Arc::new(field)))
        }
        JoinType::Full if left_field.data_type() == right_field.data_type() => {
            Ok((Pick::Either(left, right), left_field.clone()))
        }
        JoinType::Full => Err(Error::WrongUse(format!(
            "the keys {name:?} ({}) and {:?} ({}) can't be one column: cast one of them, or give \
             coalesce=False for both",
            left_field.data_type(),
            right_field.name(),
            right_field.data_type(),
        ))),
        _ => Ok((Pick::One(left), left_field.clone())),
    }
}

fn either(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef, Error> {
    let Some(nulls) = left.logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(left.clone());
    };
    let there = BooleanArray::new(nulls.into_inner(), None);
    Ok(zip(&there, left, right)?)
}
