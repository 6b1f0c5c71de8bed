//! The values of expressions: Arrow's kernels, on columns and on single values.

use std::sync::Arc;

use arrow_arith::{boolean, numeric};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, RecordBatch};
use arrow_ord::cmp;
use arrow_schema::ArrowError;
use arrow_string::like;

use super::typed_expression::{Node, Operator, TypedExpression, cast_value};

/// A value for each pair, or one for all of them.
pub(super) struct Value {
    array: ArrayRef,
    single: bool,
}

impl Datum for Value {
    fn get(&self) -> (&dyn Array, bool) {
        (&self.array, self.single)
    }
}

impl TypedExpression {
    pub(super) fn value(&self, pairs: &RecordBatch) -> Result<Value, ArrowError> {
        self.node.value(self, &|of| of.value(pairs), &|column| pairs.column(column).clone())
    }
}

impl Node {
    /// The result for empty arrays.
    pub(super) fn on_empty(&self) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Two { operator, of } => {
                let [left, right] =
                    [&of[0], &of[1]].map(|side| Value { array: side.empty(), single: false });
                operator.apply(&left, &right)
            }
            Self::Negative(of) => numeric::neg(&of.empty()),
            Self::Column(_) | Self::Literal(_) | Self::Cast { .. } => {
                unreachable!("their types are known")
            }
            Self::Not(_) | Self::IsNull(_) => unreachable!("they are true or false"),
        }
    }

    fn value(
        &self,
        typed: &TypedExpression,
        value_of: &dyn Fn(&TypedExpression) -> Result<Value, ArrowError>,
        column: &dyn Fn(usize) -> ArrayRef,
    ) -> Result<Value, ArrowError> {
        match self {
            Self::Column(at) => Ok(Value { array: column(*at), single: false }),
            Self::Literal(value) => Ok(Value { array: value.clone(), single: true }),
            Self::Cast { of, fails } => {
                let value = value_of(of)?;
                let array = cast_value(&value.array, &typed.data_type, *fails)?;
                Ok(Value { array, ..value })
            }
            Self::Not(of) => {
                let value = value_of(of)?;
                let array = Arc::new(boolean::not(value.array.as_boolean())?);
                Ok(Value { array, ..value })
            }
            Self::IsNull(of) => {
                let value = value_of(of)?;
                let array = Arc::new(boolean::is_null(&value.array)?);
                Ok(Value { array, ..value })
            }
            Self::Negative(of) => {
                let value = value_of(of)?;
                Ok(Value { array: numeric::neg(&value.array)?, ..value })
            }
            Self::Two { operator, of } => {
                let [left, right] = [value_of(&of[0])?, value_of(&of[1])?];
                let single = left.single && right.single;
                Ok(Value { array: operator.apply(&left, &right)?, single })
            }
        }
    }
}

impl Operator {
    fn apply(self, left: &Value, right: &Value) -> Result<ArrayRef, ArrowError> {
        let truth = |result: Result<BooleanArray, ArrowError>| {
            result.map(|array| Arc::new(array) as ArrayRef)
        };
        let rows = if left.single { right.array.len() } else { left.array.len() };
        let truths = || Ok::<_, ArrowError>((truths(left, rows)?, truths(right, rows)?));
        match self {
            Self::Equal => truth(cmp::eq(left, right)),
            Self::NotEqual => truth(cmp::neq(left, right)),
            Self::Less => truth(cmp::lt(left, right)),
            Self::LessOrEqual => truth(cmp::lt_eq(left, right)),
            Self::Greater => truth(cmp::gt(left, right)),
            Self::GreaterOrEqual => truth(cmp::gt_eq(left, right)),
            Self::Distinct => truth(cmp::distinct(left, right)),
            Self::NotDistinct => truth(cmp::not_distinct(left, right)),
            Self::Plus => numeric::add(left, right),
            Self::Minus => numeric::sub(left, right),
            Self::Times => numeric::mul(left, right),
            Self::Over => numeric::div(left, right),
            Self::Modulo => numeric::rem(left, right),
            Self::Like => truth(like::like(left, right)),
            Self::LikeInAnyCase => truth(like::ilike(left, right)),
            Self::And => {
                let (left, right) = truths()?;
                truth(boolean::and_kleene(&left, &right))
            }
            Self::Or => {
                let (left, right) = truths()?;
                truth(boolean::or_kleene(&left, &right))
            }
        }
    }
}

/// True, false or null for each of `rows` pairs.
pub(super) fn truths(value: &Value, rows: usize) -> Result<BooleanArray, ArrowError> {
    let truths = value.array.as_boolean();
    if !value.single {
        return Ok(truths.clone());
    }
    let one = (!truths.is_null(0)).then(|| truths.value(0));
    Ok(std::iter::repeat_n(one, rows).collect())
}
