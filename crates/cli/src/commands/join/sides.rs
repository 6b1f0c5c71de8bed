//! Which side goes into the table.

use workahead_columns::Side;

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

impl Sides {
    /// Row counts come from the metadata: nothing is read.
    pub(crate) fn choose(asked: Asked, left: &Input, right: &Input) -> Self {
        match (left.rows(), right.rows()) {
            (Some(left), Some(right)) => Self::by(asked, left, right, "rows"),
            _ => Self::by(asked, left.file_bytes(), right.file_bytes(), "bytes of file"),
        }
    }

    fn by(asked: Asked, left: u64, right: u64, what: &str) -> Self {
        match asked {
            Asked::Left => Self { build: Side::Left, why: "as asked".to_owned() },
            Asked::Right => Self { build: Side::Right, why: "as asked".to_owned() },
            Asked::Auto if left <= right => {
                Self { build: Side::Left, why: format!("{left} {what} against {right}") }
            }
            Asked::Auto => {
                Self { build: Side::Right, why: format!("{right} {what} against {left}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_with_fewer_rows_is_built_on() {
        assert_eq!(Sides::by(Asked::Auto, 1, 2, "rows").build, Side::Left);
        assert_eq!(Sides::by(Asked::Auto, 2, 2, "rows").build, Side::Left);
        let sides = Sides::by(Asked::Auto, 3, 2, "rows");
        assert_eq!(sides, Sides { build: Side::Right, why: "2 rows against 3".to_owned() });
        assert_eq!(Sides::by(Asked::Left, 3, 2, "rows").build, Side::Left);
        assert_eq!(Sides::by(Asked::Right, 1, 2, "rows").build, Side::Right);
    }
}
