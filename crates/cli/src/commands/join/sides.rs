//! The selection of the build side.

use indicatif::{HumanBytes, HumanCount};
use workahead_join::Side;

use super::input::Input;

/// The argument of `--build-side`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BuildSideArgument {
    /// The side with fewer rows, or with fewer bytes if a file has no row count
    Auto,
    /// The left side
    Left,
    /// The right side
    Right,
}

/// The build side, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) build: Side,
    pub(crate) why: String,
}

/// The sizes that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Criterion {
    /// Row counts in the files' metadata.
    Rows,
    /// Sizes of the files.
    Bytes,
}

impl Sides {
    /// Selects it without reading rows.
    pub(crate) fn choose(argument: BuildSideArgument, left: &Input, right: &Input) -> Self {
        match (left.rows(), right.rows()) {
            (Some(left), Some(right)) => Self::of(argument, (left, right), Criterion::Rows),
            _ => Self::of(argument, (left.file_bytes(), right.file_bytes()), Criterion::Bytes),
        }
    }

    fn of(argument: BuildSideArgument, (left, right): (u64, u64), criterion: Criterion) -> Self {
        let build = match argument {
            BuildSideArgument::Left => {
                return Self { build: Side::Left, why: "as requested".to_owned() };
            }
            BuildSideArgument::Right => {
                return Self { build: Side::Right, why: "as requested".to_owned() };
            }
            BuildSideArgument::Auto if left <= right => Side::Left,
            BuildSideArgument::Auto => Side::Right,
        };
        let ((less, more), other) = ((left.min(right), left.max(right)), build.other().name());
        let why = match criterion {
            Criterion::Rows if left == right => format!("as many rows as the {other} side"),
            Criterion::Rows => format!("fewer rows than the {other} side's {}", HumanCount(more)),
            Criterion::Bytes => {
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
        assert_eq!(Sides::of(BuildSideArgument::Auto, (1, 2), Criterion::Rows).build, Side::Left);
        assert_eq!(Sides::of(BuildSideArgument::Auto, (2, 2), Criterion::Bytes).build, Side::Left);
        let why = "fewer rows than the left side's 3,000".to_owned();
        let sides = Sides::of(BuildSideArgument::Auto, (3000, 2), Criterion::Rows);
        assert_eq!(sides, Sides { build: Side::Right, why });
        assert_eq!(Sides::of(BuildSideArgument::Left, (3, 2), Criterion::Rows).build, Side::Left);
        assert_eq!(Sides::of(BuildSideArgument::Right, (1, 2), Criterion::Rows).build, Side::Right);
    }
}
