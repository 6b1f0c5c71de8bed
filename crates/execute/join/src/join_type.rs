//! The ten types of join, and what each makes of a row.
//!
//! A join looks every probe row up in the table of the build side. What it then emits is a product
//! of three decisions, so that ten types with the build on either side are not twenty cases:
//!
//! ```text
//!               pairs    rows alone: probe side      rows alone: build side (when all probed)
//! inner          yes      never                       never
//! outer, full    yes      unmatched, of the sides kept whole
//! semi           no       matched,   of its side      (mark: all, with whether matched;
//! anti           no       unmatched, of its side       never, of the other side)
//! ```

use std::fmt;
use std::str::FromStr;

use crate::Side;

/// Which rows come out of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinType {
    /// Pairs of rows that match.
    Inner,
    /// Pairs, and left rows without one, beside nulls.
    Left,
    /// Pairs, and right rows without one, beside nulls.
    Right,
    /// Pairs, and rows of either side without one.
    Full,
    /// Left rows with a match, each once.
    LeftSemi,
    /// Right rows with a match, each once.
    RightSemi,
    /// Left rows without a match.
    LeftAnti,
    /// Right rows without a match.
    RightAnti,
    /// All left rows, and whether each has a match.
    LeftMark,
    /// All right rows, and whether each has a match.
    RightMark,
}

/// Whether null keys are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NullEquality {
    /// A null equals nothing, as `=` of SQL.
    #[default]
    NullEqualsNothing,
    /// Nulls equal each other, as `IS NOT DISTINCT FROM`.
    NullEqualsNull,
}

/// Which rows of a side come out alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideOutput {
    Never,
    Matched,
    Unmatched,
    /// All, and whether they have a match.
    Marked,
    /// Never, but it is to be known which have a match.
    Tracked,
}

/// What a join emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) matches: bool,
    pub(crate) probe: SideOutput,
    pub(crate) build: SideOutput,
}

/// A name that is no type of join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no join type {name:?}: choose from {}", JoinType::names())]
pub struct UnknownJoinType {
    /// What was asked for.
    pub name: String,
}

impl JoinType {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Inner,
        Self::Left,
        Self::Right,
        Self::Full,
        Self::LeftSemi,
        Self::RightSemi,
        Self::LeftAnti,
        Self::RightAnti,
        Self::LeftMark,
        Self::RightMark,
    ];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Left => "left",
            Self::Right => "right",
            Self::Full => "full",
            Self::LeftSemi => "left-semi",
            Self::RightSemi => "right-semi",
            Self::LeftAnti => "left-anti",
            Self::RightAnti => "right-anti",
            Self::LeftMark => "left-mark",
            Self::RightMark => "right-mark",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether the columns of a side come out.
    #[must_use]
    pub fn outputs(self, side: Side) -> bool {
        self.has_matches() || self.side_output(side) != SideOutput::Never
    }

    /// Whether a side's columns can come out beside no row of it, as nulls.
    #[must_use]
    pub fn null_extends(self, side: Side) -> bool {
        self.has_matches() && self.side_output(side.other()) != SideOutput::Never
    }

    /// Whether the last column says if a row has a match.
    #[must_use]
    pub fn is_mark(self) -> bool {
        matches!(self, Self::LeftMark | Self::RightMark)
    }

    fn has_matches(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    fn side_output(self, side: Side) -> SideOutput {
        match (self, side) {
            (Self::Left | Self::Full | Self::LeftAnti, Side::Left)
            | (Self::Right | Self::Full | Self::RightAnti, Side::Right) => SideOutput::Unmatched,
            (Self::LeftSemi, Side::Left) | (Self::RightSemi, Side::Right) => SideOutput::Matched,
            (Self::LeftMark, Side::Left) | (Self::RightMark, Side::Right) => SideOutput::Marked,
            _ => SideOutput::Never,
        }
    }

    pub(crate) fn output_rules(self, build: Side) -> OutputRules {
        OutputRules {
            matches: self.has_matches(),
            probe: self.side_output(build.other()),
            build: self.side_output(build),
        }
    }
}

impl fmt::Display for JoinType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for JoinType {
    type Err = UnknownJoinType;
    fn from_str(name: &str) -> Result<Self, UnknownJoinType> {
        let found = Self::ALL.into_iter().find(|join_type| join_type.name() == name);
        found.ok_or_else(|| UnknownJoinType { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused_with_the_list() {
        for join_type in JoinType::ALL {
            assert_eq!(join_type.name().parse(), Ok(join_type));
        }
        let error = "outer".parse::<JoinType>().unwrap_err().to_string();
        assert!(error.contains("\"outer\"") && error.contains("full, left-semi"), "{error}");
    }

    #[test]
    fn sides_are_mirrored() {
        let mirrored = [
            (JoinType::Left, JoinType::Right),
            (JoinType::LeftSemi, JoinType::RightSemi),
            (JoinType::LeftAnti, JoinType::RightAnti),
            (JoinType::LeftMark, JoinType::RightMark),
            (JoinType::Full, JoinType::Full),
        ];
        for (left, right) in mirrored {
            assert_eq!(left.output_rules(Side::Left), right.output_rules(Side::Right));
            assert_eq!(left.null_extends(Side::Right), right.null_extends(Side::Left));
            assert_eq!(left.outputs(Side::Right), right.outputs(Side::Left));
        }
        let left = JoinType::Left.output_rules(Side::Right);
        let (probe, build) = (SideOutput::Unmatched, SideOutput::Never);
        assert_eq!(left, OutputRules { matches: true, probe, build });
        assert!(
            JoinType::Left.null_extends(Side::Right) && !JoinType::Left.null_extends(Side::Left)
        );
        assert!(
            !JoinType::LeftSemi.outputs(Side::Right)
                && !JoinType::LeftSemi.null_extends(Side::Right)
        );
    }
}
