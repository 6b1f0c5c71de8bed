//! Strategies for users, and the choice between them.
//!
//! Few and for production; what studies explore besides (historical and negative variants) is in
//! `engines`. The rules are for a table of one hop (docs/walks.md, "When it pays").

use std::fmt::{self, Write};
use std::str::FromStr;

use crate::{Caches, Design};

/// How rows are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// By the size of the table against the caches.
    #[default]
    Auto,
    /// One row after the other, no prefetching: best in cache.
    Sequential,
    /// One row after the other, prefetching for rows some distance ahead.
    Distance,
    /// Asynchronous memory access chaining: one step of each of many rows in turn.
    Amac,
    /// Group prefetching: many rows in lock step.
    Groups,
    /// Vector at a time: finished rows leave the vector after each round.
    Rounds,
    /// A vector in one loop that decides nothing by what it reads, prefetching a block ahead.
    Vectors,
}

/// A name that is no strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no strategy {name:?}: choose from {}", Strategy::names())]
pub struct UnknownStrategy {
    /// What was asked for.
    pub name: String,
}

impl Strategy {
    /// All of them, [`Auto`](Self::Auto) first.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Sequential,
        Self::Distance,
        Self::Amac,
        Self::Groups,
        Self::Rounds,
        Self::Vectors,
    ];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sequential => "sequential",
            Self::Distance => "distance",
            Self::Amac => "amac",
            Self::Groups => "groups",
            Self::Rounds => "rounds",
            Self::Vectors => "vectors",
        }
    }

    /// Whether rows come out in the order they went in.
    #[must_use]
    pub fn keeps_order(self) -> bool {
        matches!(self, Self::Auto | Self::Sequential | Self::Distance | Self::Vectors)
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The strategy for a table of so many bytes: a choice only for [`Auto`](Self::Auto).
    #[must_use]
    pub fn choose(self, table_bytes: usize, caches: Caches) -> Choice {
        if self != Self::Auto {
            return Choice::of(self, "as asked".to_owned());
        }
        let (table, l2) = (Bytes(table_bytes), Bytes(caches.l2_bytes));
        let from = caches.source.name();
        let llc = Bytes(caches.llc_bytes);
        let size = if table_bytes <= caches.l2_bytes {
            format!("the table's {table} fit in L2 ({l2} {from})")
        } else if table_bytes <= caches.llc_bytes {
            format!("the table's {table} exceed L2 ({l2} {from}) and fit in the last-level cache")
        } else {
            format!("the table's {table} exceed the last-level cache ({llc} {from})")
        };
        let why = size + ", and a lookup is one line: a loop without decisions wins at every size";
        Choice::of(Self::Vectors, why)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;
    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| UnknownStrategy { name: name.to_owned() })
    }
}

/// What was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Never [`Strategy::Auto`].
    pub strategy: Strategy,
    /// In words, with the sizes compared.
    pub why: String,
    /// How keys are kept; [`Design::Bloom`] only where it was asked for, as `Auto` finds out later
    /// whether it pays.
    pub design: Design,
    /// In words.
    pub design_why: String,
}

impl Choice {
    fn of(strategy: Strategy, why: String) -> Self {
        Self { strategy, why, design: Design::Buckets, design_why: String::new() }
    }
}

/// Bytes for people.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0 as f64, "B");
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if value < 1024.0 {
                break;
            }
            value /= 1024.0;
            unit = larger;
        }
        let digits = usize::from(unit != "B" && value < 10.0);
        write!(f, "{value:.digits$} {unit}")
    }
}

/// A number for people: its digits in threes.
pub(crate) struct Count(pub(crate) u128);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CachesSource;

    #[test]
    fn names_are_read_back_and_others_refused_with_the_list() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.name().parse(), Ok(strategy));
        }
        let error = "fast".parse::<Strategy>().unwrap_err().to_string();
        assert!(error.contains("\"fast\"") && error.contains("amac, groups"), "{error}");
    }

    #[test]
    fn auto_says_what_it_knows_of_the_size() {
        let caches = Caches { source: CachesSource::Measured, ..Caches::ASSUMED };
        for (bytes, size) in [
            (500 << 10, "500 KiB fit in L2 (1.0 MiB measured)"),
            (20 << 20, "20 MiB exceed L2 (1.0 MiB measured) and fit in"),
            (4 << 30, "4.0 GiB exceed the last-level cache (32 MiB measured)"),
        ] {
            let choice = Strategy::Auto.choose(bytes, caches);
            assert_eq!(choice.strategy, Strategy::Vectors);
            assert!(choice.why.contains(size), "{}", choice.why);
        }
    }

    #[test]
    fn digits_are_in_threes() {
        for (number, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")]
        {
            assert_eq!(Count(number).to_string(), shown);
        }
        assert_eq!(Count(1 << 64).to_string(), "18,446,744,073,709,551,616");
    }

    #[test]
    fn what_is_asked_for_is_done() {
        let choice = Strategy::Amac.choose(1, Caches::ASSUMED);
        assert_eq!((choice.strategy, &*choice.why), (Strategy::Amac, "as asked"));
    }
}
