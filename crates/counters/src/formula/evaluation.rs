//! The value of a tree, or why it has none.

use super::{Absent, Node, Operation};

pub(super) fn value(node: &Node, count: &dyn Fn(&str) -> Option<f64>) -> Result<f64, Absent> {
    let value = match node {
        Node::Number(number) => *number,
        Node::Event(event) => {
            count(event).ok_or_else(|| Absent::NotCounted { event: event.clone() })?
        }
        Node::Of(operation, left, right) => {
            let divisor = right;
            let (left, right) = (self::value(left, count)?, self::value(right, count)?);
            if *operation == Operation::Divide && right == 0.0 {
                return Err(Absent::DividedByZero { divisor: divisor.to_string() });
            }
            operation.of(left, right)
        }
    };
    if value.is_finite() { Ok(value) } else { Err(Absent::NotFinite { part: node.to_string() }) }
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
