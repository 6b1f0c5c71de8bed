//! The value of a tree, or why it is unavailable.

use super::{Node, Operation};
use crate::cycles::{Unavailable, Value, missing};

pub(super) fn value(node: &Node, count: &dyn Fn(&str) -> Option<f64>) -> Value {
    let value = match node {
        Node::Number(number) => *number,
        Node::Event(event) => count(event).ok_or_else(|| missing(event, "it was not counted"))?,
        Node::Of(operation, left, right) => {
            let divisor = right;
            let (left, right) = (self::value(left, count)?, self::value(right, count)?);
            if *operation == Operation::Divide && right == 0.0 {
                return Err(Unavailable::NothingToDivideBy { name: divisor.to_string() });
            }
            operation.of(left, right)
        }
    };
    match value.is_finite() {
        true => Ok(value),
        false => Err(Unavailable::Impossible { name: node.to_string(), value: value.to_string() }),
    }
}

impl Operation {
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Min => left.min(right),
            Self::Max => left.max(right),
        }
    }
}
