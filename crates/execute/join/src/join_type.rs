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
pub(crate) enum Alone {
    Never,
    Matched,
    Unmatched,
    /// All, and whether they have a match.
    Marked,
    /// Never, but it is to be known which have a match.
    Noted,
}

/// What a join emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Emits {
    pub(crate) pairs: bool,
    pub(crate) probe: Alone,
    pub(crate) build: Alone,
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
    pub fn shows(self, side: Side) -> bool {
        self.pairs() || self.alone(side) != Alone::Never
    }

    /// Whether a side's columns can come out beside no row of it, as nulls.
    #[must_use]
    pub fn nulls(self, side: Side) -> bool {
        self.pairs() && self.alone(side.other()) != Alone::Never
    }

    /// Whether the last column says if a row has a match.
    #[must_use]
    pub fn marks(self) -> bool {
        matches!(self, Self::LeftMark | Self::RightMark)
    }

    fn pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    fn alone(self, side: Side) -> Alone {
        match (self, side) {
            (Self::Left | Self::Full | Self::LeftAnti, Side::Left)
            | (Self::Right | Self::Full | Self::RightAnti, Side::Right) => Alone::Unmatched,
            (Self::LeftSemi, Side::Left) | (Self::RightSemi, Side::Right) => Alone::Matched,
            (Self::LeftMark, Side::Left) | (Self::RightMark, Side::Right) => Alone::Marked,
            _ => Alone::Never,
        }
    }

    pub(crate) fn emits(self, build: Side) -> Emits {
        Emits { pairs: self.pairs(), probe: self.alone(build.other()), build: self.alone(build) }
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
            assert_eq!(left.emits(Side::Left), right.emits(Side::Right));
            assert_eq!(left.nulls(Side::Right), right.nulls(Side::Left));
            assert_eq!(left.shows(Side::Right), right.shows(Side::Left));
        }
        let left = JoinType::Left.emits(Side::Right);
        let (probe, build) = (Alone::Unmatched, Alone::Never);
        assert_eq!(left, Emits { pairs: true, probe, build });
        assert!(JoinType::Left.nulls(Side::Right) && !JoinType::Left.nulls(Side::Left));
        assert!(!JoinType::LeftSemi.shows(Side::Right) && !JoinType::LeftSemi.nulls(Side::Right));
    }
}
