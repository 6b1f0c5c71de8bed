//! The table of the build side's keys, of either design.

use workahead_walks::answers::Answers;
use workahead_walks::bucket::{self, select};
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Prefetching, ToL1};
use workahead_walks::{direct, with_isa};

/// A table that holds each key once.
pub(crate) enum HashTable {
    Buckets(bucket::Table),
    Dense(direct::Table),
}

impl HashTable {
    /// The table of buckets, which is the one that can be walked.
    pub(crate) fn buckets(&self) -> Option<&bucket::Table> {
        match self {
            Self::Buckets(table) => Some(table),
            Self::Dense(_) => None,
        }
    }

    fn dense(&self) -> Option<&direct::Table> {
        match self {
            Self::Buckets(_) => None,
            Self::Dense(table) => Some(table),
        }
    }

    /// Keys held.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Buckets(table) => table.len(),
            Self::Dense(table) => table.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Buckets(table) => table.bytes(),
            Self::Dense(table) => table.bytes(),
        }
    }

    /// The value of every entry, in the order of memory.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let of_buckets = self.buckets().into_iter().flat_map(bucket::Table::values);
        of_buckets.chain(self.dense().into_iter().flat_map(direct::Table::values))
    }

    /// Replaces the value of every entry, in the order of memory.
    pub(crate) fn update_values(&mut self, update: impl FnMut(u64) -> u64) {
        match self {
            Self::Buckets(table) => table.update_values(update),
            Self::Dense(table) => table.update_values(update),
        }
    }

    /// The line that a lookup of a word touches first.
    pub(crate) fn line(&self, word: u64) -> usize {
        match self {
            Self::Buckets(table) => table.line(word),
            Self::Dense(table) => table.line(word),
        }
    }

    /// Looks up a vector of words.
    pub(crate) fn look_up(&self, words: &[u64], answers: &mut Answers) {
        let memory = &mut Prefetching::<ToL1>::default();
        match self {
            Self::Buckets(table) => {
                with_isa!(Detected::best(), isa => {
                    select::look_up(table, isa, words, memory, answers)
                });
            }
            Self::Dense(table) => {
                with_isa!(Detected::best(), isa => {
                    let _inside = isa;
                    direct::look_up(table, words, memory, answers)
                });
            }
        }
    }
}
