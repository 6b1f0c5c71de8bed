//! The values of expressions: Arrow's kernels, on columns and on single values.

use std::sync::Arc;

use arrow_arith::{boolean, numeric};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, RecordBatch};
use arrow_ord::cmp;
use arrow_schema::ArrowError;
use arrow_string::like;

use super::typed_expression::{Connective, Node, Operator, TypedExpression, cast_value};

/// A value for each pair, or one for all of them.
#[derive(Clone)]
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
    /// Its value, in a condition on the value that is `given`. A level takes little stack: what
    /// takes more is in functions that do not call this one.
    pub(super) fn value(
        &self,
        pairs: &RecordBatch,
        given: Option<&Value>,
    ) -> Result<Value, ArrowError> {
        match &self.node {
            Node::Column(at) => Ok(Value { array: pairs.column(*at).clone(), single: false }),
            Node::Literal(value) => Ok(Value { array: value.clone(), single: true }),
            Node::Cast { of, fails } => {
                let value = of.value(pairs, given)?;
                let array = cast_value(&value.array, &self.data_type, *fails)?;
                Ok(Value { array, ..value })
            }
            Node::Not(of) => {
                let value = of.value(pairs, given)?;
                let array = Arc::new(boolean::not(value.array.as_boolean())?);
                Ok(Value { array, ..value })
            }
            Node::IsNull(of) => {
                let value = of.value(pairs, given)?;
                let array = Arc::new(boolean::is_null(&value.array)?);
                Ok(Value { array, ..value })
            }
            Node::Negative(of) => {
                let value = of.value(pairs, given)?;
                Ok(Value { array: numeric::neg(&value.array)?, ..value })
            }
            Node::Two { operator, of } => {
                let [left, right] = [of[0].value(pairs, given)?, of[1].value(pairs, given)?];
                let single = left.single && right.single;
                Ok(Value { array: operator.apply(&left, &right)?, single })
            }
            Node::Chain { connective, of } => {
                let (first, rest) = of.split_first().expect("a chain has a term");
                let mut value = first.value(pairs, given)?;
                for term in rest {
                    value = connective.apply(&value, &term.value(pairs, given)?)?;
                }
                Ok(value)
            }
            Node::With { of, condition } => {
                let value = of.value(pairs, given)?;
                condition.value(pairs, Some(&value))
            }
            Node::Given => Ok(given.expect("a value is given to its condition").clone()),
        }
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
            Self::Column(_) | Self::Literal(_) | Self::Cast { .. } | Self::Given => {
                unreachable!("their types are known")
            }
            Self::Not(_) | Self::IsNull(_) | Self::Chain { .. } | Self::With { .. } => {
                unreachable!("they are true or false")
            }
        }
    }
}

impl Operator {
    #[inline(never)]
    fn apply(self, left: &Value, right: &Value) -> Result<ArrayRef, ArrowError> {
        let truth = |result: Result<BooleanArray, ArrowError>| {
            result.map(|array| Arc::new(array) as ArrayRef)
        };
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
        }
    }
}

impl Connective {
    #[inline(never)]
    fn apply(self, left: &Value, right: &Value) -> Result<Value, ArrowError> {
        let rows = if left.single { right.array.len() } else { left.array.len() };
        let single = left.single && right.single;
        let (left, right) = (truths(left, rows)?, truths(right, rows)?);
        let array = match self {
            Self::And => boolean::and_kleene(&left, &right)?,
            Self::Or => boolean::or_kleene(&left, &right)?,
        };
        Ok(Value { array: Arc::new(array), single })
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
