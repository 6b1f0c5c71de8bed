//! Formulas: a metric as arithmetic over counts, in the words of the vendor's tables.
//!
//! ```text
//!   sum     = product (('+' | '-') product)*
//!   product = operand (('*' | '/') operand)*
//!   operand = number | event | '(' sum ')' | ('min' | 'max') '(' sum ',' sum ')'
//!
//!   1000 * MEM_LOAD_RETIRED.L2_MISS / INST_RETIRED.ANY
//! ```
//!
//! A value is a number that was counted, or [`Unavailable`](crate::cycles::Unavailable) with the
//! reason: a formula never makes a zero out of an event that was not counted, and never a NaN or an
//! infinity.
//!
//! Counts grow with the time that is counted; metrics must not. So every formula of a table is
//! homogeneous of degree 0 in the counts: doubling all of them changes nothing. That is decided by
//! walking the tree ([`Formula::is_ratio`]), once, before anything is measured.

mod degree;
mod evaluation;
mod parser;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use degree::Degree;

use crate::cycles::Value;

/// Arithmetic over counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    tree: Node,
}

/// A tree of operations. It is at most as deep as the text is long, which the parser limits.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    Event(String),
    Of(Operation, Box<Node>, Box<Node>),
}

/// An operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
}

/// Why a text is not a formula.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormulaError {
    /// Something else was expected.
    #[error("at character {at} of the formula: expected {expected}, found {found}")]
    Unexpected {
        /// Characters before it, plus one.
        at: usize,
        /// The tokens that may stand there.
        expected: &'static str,
        /// The token that stands there.
        found: String,
    },
    /// Parentheses within parentheses within parentheses.
    #[error("at character {at} of the formula: parentheses are nested more than {max} deep")]
    TooDeep {
        /// Characters before it, plus one.
        at: usize,
        /// The limit.
        max: usize,
    },
    /// More than a page.
    #[error("the formula has {length} bytes, more than the {max} that one may have")]
    TooLong {
        /// Its length.
        length: usize,
        /// The limit.
        max: usize,
    },
}

impl Formula {
    /// Reads a formula. Event names have letters, digits, `_`, `.` and `:`.
    ///
    /// # Errors
    /// If the text is not a formula; the error names the place and what was expected there.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        Ok(Self { text: text.to_owned(), tree: parser::parse(text)? })
    }

    /// The events that must be counted for it.
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.tree.collect(&mut names);
        names
    }

    /// Its value, given the count of each event.
    ///
    /// # Errors
    /// If an event was not counted, if it divides by zero, or if a part is not finite.
    pub fn eval(&self, count: &dyn Fn(&str) -> Option<f64>) -> Value {
        evaluation::value(&self.tree, count)
    }

    /// Whether it is homogeneous of degree 0 in the counts, so that it does not matter how long
    /// anything was counted. A formula of constants only is a ratio as well.
    pub fn is_ratio(&self) -> bool {
        matches!(degree::of(&self.tree), Some(Degree::Any | Degree::Exactly(0)))
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    fn collect<'a>(&'a self, names: &mut BTreeSet<&'a str>) {
        match self {
            Self::Number(_) => {}
            Self::Event(name) => {
                names.insert(name);
            }
            Self::Of(_, left, right) => {
                left.collect(names);
                right.collect(names);
            }
        }
    }
}

impl fmt::Display for Node {
    /// Unambiguous rather than pretty: every operation inside another one has its parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, left, right) = match self {
            Self::Number(number) => return write!(f, "{number}"),
            Self::Event(name) => return f.write_str(name),
            Self::Of(operation, left, right) => (*operation, left, right),
        };
        if let Some(function) = operation.function() {
            return write!(f, "{function}({left}, {right})");
        }
        left.enclosed(f)?;
        write!(f, " {} ", operation.sign())?;
        right.enclosed(f)
    }
}

impl Node {
    fn enclosed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(operation, ..) if operation.function().is_none() => write!(f, "({self})"),
            _ => write!(f, "{self}"),
        }
    }
}

impl Operation {
    fn function(self) -> Option<&'static str> {
        match self {
            Self::Min => Some("min"),
            Self::Max => Some("max"),
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide => None,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}
