//! Expressions with types, cast to fit each other.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, NullArray, RecordBatch, new_empty_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{ArrowError, DataType};

use super::types;

/// An expression and its type.
#[derive(Debug, Clone)]
pub(super) struct TypedExpression {
    pub(super) node: Node,
    pub(super) data_type: DataType,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    /// One of the filter's columns.
    Column(usize),
    /// An array of one value.
    Literal(ArrayRef),
    Cast {
        of: Box<TypedExpression>,
        fails: bool,
    },
    Two {
        operator: Operator,
        of: Box<[TypedExpression; 2]>,
    },
    /// Conditions beside each other, not in each other: evaluating and dropping them is a loop.
    Chain {
        connective: Connective,
        of: Vec<TypedExpression>,
    },
    /// A condition on a value that it uses more than once, as [`Node::Given`].
    With {
        of: Box<TypedExpression>,
        condition: Box<TypedExpression>,
    },
    /// The value of the nearest [`Node::With`] that this is in the condition of.
    Given,
    Not(Box<TypedExpression>),
    Negative(Box<TypedExpression>),
    IsNull(Box<TypedExpression>),
}

/// An operator on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Distinct,
    NotDistinct,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Like,
    LikeInAnyCase,
}

/// The operator that joins several conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connective {
    And,
    Or,
}

impl Operator {
    fn is_arithmetic(self) -> bool {
        matches!(self, Self::Plus | Self::Minus | Self::Times | Self::Over | Self::Modulo)
    }

    fn is_like(self) -> bool {
        matches!(self, Self::Like | Self::LikeInAnyCase)
    }
}

/// Values that can't be cast are errors if `fails`, otherwise nulls.
fn options(fails: bool) -> CastOptions<'static> {
    CastOptions { safe: !fails, ..CastOptions::default() }
}

impl TypedExpression {
    pub(super) fn column(at: usize, data_type: DataType) -> Self {
        Self { node: Node::Column(at), data_type }
    }

    pub(super) fn literal(value: ArrayRef) -> Self {
        let data_type = value.data_type().clone();
        Self { node: Node::Literal(value), data_type }
    }

    pub(super) fn null() -> Self {
        Self::literal(Arc::new(NullArray::new(1)))
    }

    pub(super) fn not(of: Self) -> Result<Self, String> {
        let of = Box::new(of.of_type(&DataType::Boolean)?);
        Ok(Self { node: Node::Not(of), data_type: DataType::Boolean })
    }

    pub(super) fn is_null(of: Self) -> Self {
        Self { node: Node::IsNull(Box::new(of)), data_type: DataType::Boolean }
    }

    pub(super) fn negative(of: Self) -> Result<Self, String> {
        let shown = of.data_type.to_string();
        let wanted = types::arithmetic(&of.data_type, &of.data_type);
        let of = of.of_type(&wanted.ok_or_else(|| format!("{shown} can't be negated"))?)?;
        let data_type = of.data_type.clone();
        Self { node: Node::Negative(Box::new(of)), data_type }.with_kernel_type()
    }

    /// An explicit cast.
    pub(super) fn cast(self, to: DataType, fails: bool) -> Result<Self, String> {
        if self.data_type == to {
            return Ok(self);
        }
        if !can_cast_types(&self.data_type, &to) {
            return Err(format!("{} can't be cast to {to}", self.data_type));
        }
        if let Node::Literal(value) = &self.node {
            let cast = cast_with_options(value, &to, &options(fails));
            return cast.map(Self::literal).map_err(|error| error.to_string());
        }
        Ok(Self { node: Node::Cast { of: Box::new(self), fails }, data_type: to })
    }

    /// The expression in a type that it has, or to which nulls, dictionaries or texts convert.
    pub(super) fn of_type(self, wanted: &DataType) -> Result<Self, String> {
        let common = types::common(&self.data_type, wanted);
        if common.as_ref() != Some(wanted) {
            return Err(format!("expected {wanted}, found {}", self.data_type));
        }
        self.cast(wanted.clone(), true)
    }

    /// An operator on two expressions.
    pub(super) fn two(operator: Operator, left: Self, right: Self) -> Result<Self, String> {
        let [left, right] = fit(operator, left, right)?;
        let of = Box::new([left, right]);
        Self { node: Node::Two { operator, of }, data_type: DataType::Boolean }.with_kernel_type()
    }

    /// `AND` or `OR` of one or more conditions.
    pub(super) fn chain(connective: Connective, of: Vec<Self>) -> Result<Self, String> {
        let of = of.into_iter().map(|term| term.of_type(&DataType::Boolean));
        let of = of.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { node: Node::Chain { connective, of }, data_type: DataType::Boolean })
    }

    /// A condition that uses this value more than once, and for which it is computed once.
    pub(super) fn given_to(
        self,
        condition: impl FnOnce(&Self) -> Result<Self, String>,
    ) -> Result<Self, String> {
        // These cost nothing, and a text constant takes the type it is compared with.
        if matches!(self.node, Node::Column(_) | Node::Literal(_)) {
            return condition(&self);
        }
        let given = Self { node: Node::Given, data_type: self.data_type.clone() };
        let condition = condition(&given)?;
        let data_type = condition.data_type.clone();
        let (of, condition) = (Box::new(self), Box::new(condition));
        Ok(Self { node: Node::With { of, condition }, data_type })
    }

    /// With the result type of Arrow's kernel, found by running it on empty arrays.
    fn with_kernel_type(self) -> Result<Self, String> {
        let none = self.node.on_empty().map_err(|error| error.to_string())?;
        Ok(Self { data_type: none.data_type().clone(), ..self })
    }

    /// True, false or null for each pair.
    pub(super) fn truth(&self, pairs: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let value = self.value(pairs, None)?;
        super::evaluation::truths(&value, pairs.num_rows())
    }

    /// An empty array of its type.
    pub(super) fn empty(&self) -> ArrayRef {
        new_empty_array(&self.data_type)
    }
}

/// Casts two values to types that the operator takes.
fn fit(
    operator: Operator,
    left: TypedExpression,
    right: TypedExpression,
) -> Result<[TypedExpression; 2], String> {
    let (a, b) = (left.data_type.clone(), right.data_type.clone());
    if operator.is_arithmetic() {
        if types::plain(&a).is_temporal() || types::plain(&b).is_temporal() {
            return Ok([left, right]);
        }
        let Some(wanted) = types::arithmetic(&a, &b) else {
            return Err(format!("no arithmetic on {a} and {b}: cast them to numbers"));
        };
        return both(left, right, &wanted);
    }
    // A text constant takes the type it is compared with: '2024-01-31' is a date.
    let constant = |side: &TypedExpression| {
        matches!(side.node, Node::Literal(_)) && types::is_text(&side.data_type)
    };
    let texts = operator.is_like();
    if !texts && constant(&right) && types::plain(&a).is_temporal() {
        return both(left, right, types::plain(&a));
    }
    if !texts && constant(&left) && types::plain(&b).is_temporal() {
        return both(left, right, types::plain(&b));
    }
    match types::common(&a, &b) {
        Some(wanted) if !texts || types::is_text(&wanted) => both(left, right, &wanted),
        Some(_) => Err(format!("LIKE is for texts, not for {a} and {b}")),
        None => Err(format!("{a} and {b} can't be compared: cast one of them")),
    }
}

fn both(
    left: TypedExpression,
    right: TypedExpression,
    wanted: &DataType,
) -> Result<[TypedExpression; 2], String> {
    Ok([left.cast(wanted.clone(), true)?, right.cast(wanted.clone(), true)?])
}

/// The value of a cast.
pub(super) fn cast_value(
    value: &ArrayRef,
    to: &DataType,
    fails: bool,
) -> Result<ArrayRef, ArrowError> {
    cast_with_options(value, to, &options(fails))
}
