//! Layouts of the hash table, and the choice between them.
//!
//! ```text
//! keys are integers, and a slot for each integer of their range
//! takes at most twice the memory of buckets ────────────────────────► dense (perfect hash table)
//! else ─► buckets ─┬─ few of the first probes hit ────────────────► Bloom filter first
//!                  └─ else
//! ```
//!
//! A slot is found without hashing or comparing, which pays for twice the bytes in every cache and
//! in memory (`cargo xtask bench auto`); where memory is limited, a dense table is only used if it
//! is no larger than buckets.
//!
//! The first condition is known when the build side is complete, the second only while probing: so
//! [the Bloom filter](crate::bloom_filter) is built once the misses so far have paid for it.

use std::fmt;
use std::str::FromStr;

use workahead_walks::bucket::{self, Load};
use workahead_walks::perfect_hash;
use workahead_walks::perfect_hash::set::KeySet;

use crate::display::{Bytes, Count};

/// How the build side's keys are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TableLayout {
    /// Chosen by the keys' range, the caches, and the share of probes that hit.
    #[default]
    Auto,
    /// A hash table whose buckets are cache lines.
    Buckets,
    /// A perfect hash table: a slot for every integer between the lowest and the highest key. Falls
    /// back to buckets if the keys are not integers or far apart, or if memory is limited and
    /// buckets are smaller.
    Dense,
    /// A Bloom filter in front of buckets. Only buckets if hits must be compared.
    Bloom,
}

/// An unknown layout name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown layout {name:?}; use {}", TableLayout::names())]
pub struct UnknownTableLayout {
    /// The given name.
    pub name: String,
}

/// Largest size of a dense table relative to buckets: by default, and on request.
const DENSE_RATIO_MAX: usize = 2;
const REQUESTED_RATIO_MAX: usize = 16;

/// The reason for buckets if keys are hashed.
pub(crate) const NO_INTEGERS: &str = "the keys are not integers";

const LIMITED_LOAD: Load = Load::percent(75).unwrap();

/// How full a table may get: where memory is limited, one of two thirds the size is worth a quarter
/// more lines for each look-up.
pub(crate) fn table_load(limited: bool) -> Load {
    if limited { LIMITED_LOAD } else { Load::HALF }
}

/// Bytes of a dense table whose highest key is so much above its lowest: of a set, if only the
/// presence of a key counts. `None` if there can be none.
pub(crate) fn dense_bytes(span: u64, existence_only: bool) -> Option<usize> {
    if existence_only { KeySet::bytes_for(span) } else { perfect_hash::Table::bytes_for(span) }
}

impl TableLayout {
    /// All layouts, [`Auto`](Self::Auto) first.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Buckets, Self::Dense, Self::Bloom];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Buckets => "buckets",
            Self::Dense => "dense",
            Self::Bloom => "bloom",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The layout for a number of distinct keys, and their range if they are integers. With limited
    /// memory, no layout is larger than buckets.
    pub(crate) fn choose(
        self,
        entries: usize,
        span: Option<u64>,
        limited: bool,
        existence_only: bool,
    ) -> LayoutChoice {
        let buckets = bucket::Table::bytes_for(entries, table_load(limited)).unwrap_or(usize::MAX);
        let most = match self {
            Self::Buckets | Self::Bloom => {
                return LayoutChoice { layout: self, why: "as requested".into() };
            }
            // A partition may have the range of all rows: only the size of buckets is certain to
            // fit.
            _ if limited => buckets,
            Self::Dense => buckets.saturating_mul(REQUESTED_RATIO_MAX),
            Self::Auto => buckets.saturating_mul(DENSE_RATIO_MAX),
        };
        let Some(span) = span else {
            return LayoutChoice { layout: Self::Buckets, why: NO_INTEGERS.into() };
        };
        let (places, buckets) = (Count(u128::from(span) + 1), Bytes(buckets));
        let place = if existence_only { "bit" } else { "slot" };
        match dense_bytes(span, existence_only) {
            Some(dense) if dense <= most && self == Self::Dense => {
                LayoutChoice { layout: self, why: "as requested".into() }
            }
            Some(dense) if dense <= most => {
                let dense = Bytes(dense);
                let why = format!(
                    "a {place} for each of the {places} integers between the lowest and the \
                     highest key is {dense}, where buckets take {buckets}"
                );
                LayoutChoice { layout: Self::Dense, why }
            }
            Some(dense) => {
                let dense = Bytes(dense);
                let why = format!(
                    "{buckets}, where a {place} for each of the {places} integers between the \
                     lowest and the highest key would be {dense}"
                );
                LayoutChoice { layout: Self::Buckets, why }
            }
            None => {
                let why = format!("{buckets}; the keys lie too far apart for a {place} each");
                LayoutChoice { layout: Self::Buckets, why }
            }
        }
    }
}

/// A layout, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutChoice {
    /// Never [`TableLayout::Auto`]; [`TableLayout::Bloom`] only on request, as `Auto` finds out
    /// while probing whether a filter pays.
    pub layout: TableLayout,
    /// The reason, with the compared sizes.
    pub why: String,
}

impl LayoutChoice {
    /// Buckets instead of a Bloom filter if keys are hashed.
    pub(crate) fn unless_hashed(self, hashed: bool) -> Self {
        match self.layout {
            TableLayout::Bloom if hashed => {
                let why = "bloom was requested, but keys are hashed".to_owned();
                Self { layout: TableLayout::Buckets, why }
            }
            _ => self,
        }
    }
}

impl fmt::Display for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TableLayout {
    type Err = UnknownTableLayout;
    fn from_str(name: &str) -> Result<Self, UnknownTableLayout> {
        let found = Self::ALL.into_iter().find(|layout| layout.name() == name);
        found.ok_or_else(|| UnknownTableLayout { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused_with_the_list() {
        for layout in TableLayout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        let error = "trie".parse::<TableLayout>().unwrap_err().to_string();
        assert!(error.contains("\"trie\"") && error.contains("dense, bloom"), "{error}");
    }

    /// The choice with unlimited memory.
    fn free(layout: TableLayout, entries: usize, span: Option<u64>) -> LayoutChoice {
        layout.choose(entries, span, false, false)
    }

    #[test]
    fn auto_takes_dense_tables_up_to_twice_the_buckets() {
        let of = |entries, span| free(TableLayout::Auto, entries, Some(span));
        assert_eq!(of(1_000_000, 999_999).layout, TableLayout::Dense);
        assert_eq!(of(1_000_000, 7_900_000).layout, TableLayout::Dense);
        let wide = of(1_000_000, 9_000_000);
        assert_eq!(wide.layout, TableLayout::Buckets);
        assert!(wide.why.contains("of the 9,000,001 integers"), "{}", wide.why);
        assert_eq!(of(1_000_000, u64::MAX).layout, TableLayout::Buckets);
        assert_eq!(free(TableLayout::Auto, 10, None).layout, TableLayout::Buckets);
        assert_eq!(of(0, 0).layout, TableLayout::Dense);
    }

    #[test]
    fn no_table_is_larger_than_buckets_where_memory_is_limited() {
        for layout in [TableLayout::Auto, TableLayout::Dense] {
            let of = |span| layout.choose(1_000_000, Some(span), true, false).layout;
            assert_eq!((of(2_600_000), of(3_000_000)), (TableLayout::Dense, TableLayout::Buckets));
        }
    }

    #[test]
    fn a_requested_layout_is_used_where_possible() {
        assert_eq!(
            free(TableLayout::Dense, 1_000_000, Some(40_000_000)).layout,
            TableLayout::Dense
        );
        assert_eq!(
            free(TableLayout::Dense, 1_000_000, Some(u64::MAX)).layout,
            TableLayout::Buckets
        );
        assert_eq!(free(TableLayout::Dense, 1_000_000, None).layout, TableLayout::Buckets);
        assert_eq!(free(TableLayout::Buckets, 100, Some(99)).layout, TableLayout::Buckets);
        assert_eq!(free(TableLayout::Bloom, 100, None).layout, TableLayout::Bloom);
    }
}
