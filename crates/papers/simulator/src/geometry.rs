//! Cache geometry, checked once.

use serde::{Deserialize, Serialize};

/// Sets of `ways` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    sets: u64,
    ways: u32,
    line: u32,
}

/// Geometry as written in a preset: bytes, ways, bytes per line. 0 ways is fully associative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Total bytes.
    pub bytes: u64,
    /// Lines per set; 0 for fully associative.
    pub ways: u32,
    /// Bytes per line.
    pub line: u32,
}

/// Why a geometry is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// The line size is not a power of two.
    #[error("a line of {0} bytes: it takes a power of two from 4 to 4096")]
    Line(u32),
    /// The size is not a multiple of the bytes of a set.
    #[error("{bytes} bytes in sets of {ways} lines of {line} bytes leave a part of a set")]
    Part {
        /// Total bytes.
        bytes: u64,
        /// Lines per set.
        ways: u32,
        /// Bytes per line.
        line: u32,
    },
    /// The size is 0 or too large.
    #[error("a cache of {0} bytes: it takes one line to 4 GiB")]
    Size(u64),
    /// The number of ways is too large.
    #[error("{0} ways: it takes 1 to 64, or 0 for a cache without sets of at most 4096 lines")]
    Ways(u32),
    /// A tree has one bit per node in one word, and a cache without sets may have more ways.
    #[error("tree-plru of {0} ways: it takes up to 64; set its ways, or its replacement to lru")]
    Tree(u32),
}

/// Ways of a set whose tree fits a word.
pub(crate) const TREE_WAYS_MAX: u32 = u64::BITS;

impl Geometry {
    /// Checks sizes.
    ///
    /// # Errors
    /// If they are impossible.
    pub fn of(sizes: Sizes) -> Result<Self, GeometryError> {
        let Sizes { bytes, ways, line } = sizes;
        if !line.is_power_of_two() || !(4..=4096).contains(&line) {
            return Err(GeometryError::Line(line));
        }
        if bytes < u64::from(line) || bytes > 4 << 30 {
            return Err(GeometryError::Size(bytes));
        }
        let lines = bytes / u64::from(line);
        let ways = match ways {
            0 if lines <= 4096 => lines as u32,
            1..=64 => ways,
            _ => return Err(GeometryError::Ways(ways)),
        };
        let set = u64::from(ways) * u64::from(line);
        match bytes % set {
            0 => Ok(Self { sets: bytes / set, ways, line }),
            _ => Err(GeometryError::Part { bytes, ways, line }),
        }
    }

    /// Number of sets.
    #[must_use]
    pub const fn sets(self) -> u64 {
        self.sets
    }

    /// Lines per set.
    #[must_use]
    pub const fn ways(self) -> u32 {
        self.ways
    }

    /// Bytes per line.
    #[must_use]
    pub const fn line(self) -> u32 {
        self.line
    }

    /// Total bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.sets * self.ways as u64 * self.line as u64
    }

    /// An equal share for each of `parts` threads: of the ways if divisible, else of the sets.
    #[must_use]
    pub const fn split(self, parts: u32) -> Self {
        let sets = self.sets / parts as u64;
        match self.ways.is_multiple_of(parts) || sets == 0 {
            true if self.ways >= parts => Self { ways: self.ways / parts, ..self },
            true => Self { ways: 1, ..self },
            false => Self { sets, ..self },
        }
    }
}
