//! The degree of a formula in the counts: how often it doubles when all counts double.

use super::{Node, Operation};

/// The change of a value when every count is multiplied by k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Degree {
    /// It is zero, and stays zero: it fits anything it is added to (`max(0, A - B)`).
    Any,
    /// It is multiplied by k to this power.
    Exactly(i32),
}

/// None where parts of different degree are added or compared: there is no such power.
pub(super) fn of(node: &Node) -> Option<Degree> {
    let (operation, left, right) = match node {
        // No smaller number can be written than 0, so this compares exactly on purpose.
        Node::Number(number) if *number == 0.0 => return Some(Degree::Any),
        Node::Number(_) => return Some(Degree::Exactly(0)),
        Node::Event(_) => return Some(Degree::Exactly(1)),
        Node::Of(operation, left, right) => (*operation, of(left)?, of(right)?),
    };
    match (operation, left, right) {
        // A constant zero below the line has no value at any length.
        (Operation::Divide, _, Degree::Any) => None,
        (Operation::Divide | Operation::Multiply, Degree::Any, _)
        | (Operation::Multiply, _, Degree::Any) => Some(Degree::Any),
        (Operation::Multiply, Degree::Exactly(left), Degree::Exactly(right)) => {
            left.checked_add(right).map(Degree::Exactly)
        }
        (Operation::Divide, Degree::Exactly(left), Degree::Exactly(right)) => {
            left.checked_sub(right).map(Degree::Exactly)
        }
        (_, Degree::Any, other) | (_, other, Degree::Any) => Some(other),
        (_, left, right) => (left == right).then_some(left),
    }
}
