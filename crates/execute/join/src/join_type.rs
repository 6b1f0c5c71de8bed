//! The ten join types, and which rows each outputs.
//!
//! Every probe row is looked up in the table of the build side. The output is then the product of
//! three decisions, so that ten types with either build side are not twenty cases:
//!
//! ```text
//!               matches  rows of the probe side      rows of the build side (after all probes)
//! inner          yes      none                        none
//! outer, full    yes      unmatched, of the sides that are preserved
//! semi           no       matched,   of its side      (mark: all, with a match flag;
//! anti           no       unmatched, of its side       none of the other side)
//! ```

use std::fmt;
use std::str::FromStr;

use crate::Side;

/// The type of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinType {
    /// Matching rows.
    Inner,
    /// Matching rows, and unmatched left rows with nulls.
    Left,
    /// Matching rows, and unmatched right rows with nulls.
    Right,
    /// Matching rows, and unmatched rows of both sides with nulls.
    Full,
    /// Left rows with a match, each once.
    LeftSemi,
    /// Right rows with a match, each once.
    RightSemi,
    /// Left rows without a match.
    LeftAnti,
    /// Right rows without a match.
    RightAnti,
    /// All left rows, with a flag whether they have a match.
    LeftMark,
    /// All right rows, with a flag whether they have a match.
    RightMark,
}

/// Whether null keys are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NullEquality {
    /// A null equals nothing, like `=` in SQL.
    #[default]
    NullEqualsNothing,
    /// Nulls equal each other, like `IS NOT DISTINCT FROM`.
    NullEqualsNull,
}

/// Which rows of a side are output on their own, beside the matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideOutput {
    Never,
    Matched,
    Unmatched,
    /// All, with a flag whether they have a match.
    Marked,
    /// None, but matched rows are tracked.
    Tracked,
}

/// Which rows a join outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) matches: bool,
    pub(crate) probe: SideOutput,
    pub(crate) build: SideOutput,
}

/// An unknown join type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no join type {name:?}: choose from {}", JoinType::names())]
pub struct UnknownJoinType {
    /// The given name.
    pub name: String,
}

impl JoinType {
    /// All types.
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

    /// Whether the output has a side's columns.
    #[must_use]
    pub fn outputs(self, side: Side) -> bool {
        self.has_matches() || self.side_output(side) != SideOutput::Never
    }

    /// Whether a side's columns may be null-extended: rows of the other side are output without a
    /// match.
    #[must_use]
    pub fn null_extends(self, side: Side) -> bool {
        self.has_matches() && self.side_output(side.other()) != SideOutput::Never
    }

    /// Whether this is a mark join, whose last column flags rows with a match.
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
    fn types_are_symmetric_in_the_sides() {
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
