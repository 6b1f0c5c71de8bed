//! Which side goes into the table.

use indicatif::{HumanBytes, HumanCount};
use workahead_join::Side;

use super::input::Input;

/// What the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Asked {
    /// The side with fewer rows; with fewer bytes, where a file does not say its rows in front
    Auto,
    /// The left side
    Left,
    /// The right side
    Right,
}

/// The choice, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) build: Side,
    pub(crate) why: String,
}

/// By what sides are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Files say so in front.
    Rows,
    /// Of the files.
    Bytes,
}

impl Sides {
    /// Row counts come from the metadata: nothing is read.
    pub(crate) fn choose(asked: Asked, left: &Input, right: &Input) -> Self {
        match (left.rows(), right.rows()) {
            (Some(left), Some(right)) => Self::of(asked, (left, right), By::Rows),
            _ => Self::of(asked, (left.file_bytes(), right.file_bytes()), By::Bytes),
        }
    }

    fn of(asked: Asked, (left, right): (u64, u64), by: By) -> Self {
        let build = match asked {
            Asked::Left => return Self { build: Side::Left, why: "as asked".to_owned() },
            Asked::Right => return Self { build: Side::Right, why: "as asked".to_owned() },
            Asked::Auto if left <= right => Side::Left,
            Asked::Auto => Side::Right,
        };
        let ((less, more), other) = ((left.min(right), left.max(right)), build.other().name());
        let why = match by {
            By::Rows if left == right => format!("as many rows as the {other} side"),
            By::Rows => format!("fewer rows than the {other} side's {}", HumanCount(more)),
            By::Bytes => {
                let (less, more) = (HumanBytes(less), HumanBytes(more));
                format!("a file of {less}, the {other} side's is {more}")
            }
        };
        Self { build, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_with_fewer_rows_is_built_on() {
        assert_eq!(Sides::of(Asked::Auto, (1, 2), By::Rows).build, Side::Left);
        assert_eq!(Sides::of(Asked::Auto, (2, 2), By::Bytes).build, Side::Left);
        let why = "fewer rows than the left side's 3,000".to_owned();
        let sides = Sides::of(Asked::Auto, (3000, 2), By::Rows);
        assert_eq!(sides, Sides { build: Side::Right, why });
        assert_eq!(Sides::of(Asked::Left, (3, 2), By::Rows).build, Side::Left);
        assert_eq!(Sides::of(Asked::Right, (1, 2), By::Rows).build, Side::Right);
    }
}
