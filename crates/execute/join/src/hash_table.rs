//! The hash table of the build side's keys, of either layout.

use workahead_walks::bucket::{self, select};
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Prefetching, ToL1};
use workahead_walks::perfect_hash::set::{self, KeySet};
use workahead_walks::selection::SelectionVector;
use workahead_walks::{perfect_hash, with_isa};

/// A hash table in which every key is once.
pub(crate) enum HashTable {
    Buckets(bucket::Table),
    Dense(perfect_hash::Table),
    /// No values, for a join that only asks whether a key is there.
    Set(KeySet),
}

impl HashTable {
    /// The table, if it has buckets.
    pub(crate) fn buckets(&self) -> Option<&bucket::Table> {
        match self {
            Self::Buckets(table) => Some(table),
            Self::Dense(_) | Self::Set(_) => None,
        }
    }

    fn dense(&self) -> Option<&perfect_hash::Table> {
        match self {
            Self::Buckets(_) | Self::Set(_) => None,
            Self::Dense(table) => Some(table),
        }
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Buckets(table) => table.len(),
            Self::Dense(table) => table.len(),
            Self::Set(set) => set.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Buckets(table) => table.bytes(),
            Self::Dense(table) => table.bytes(),
            Self::Set(set) => set.bytes(),
        }
    }

    /// The values of all entries, in memory order.
    pub(crate) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let of_buckets = self.buckets().into_iter().flat_map(bucket::Table::values);
        of_buckets.chain(self.dense().into_iter().flat_map(perfect_hash::Table::values))
    }

    /// Replaces the values of all entries, in memory order.
    pub(crate) fn update_values(&mut self, update: impl FnMut(u64) -> u64) {
        match self {
            Self::Buckets(table) => table.update_values(update),
            Self::Dense(table) => table.update_values(update),
            Self::Set(_) => {}
        }
    }

    /// The first cache line that a lookup of a key touches.
    pub(crate) fn line(&self, key: u64) -> usize {
        match self {
            Self::Buckets(table) => table.line(key),
            Self::Dense(table) => table.line(key),
            Self::Set(set) => set.line(key),
        }
    }

    /// Looks up a vector of keys.
    pub(crate) fn look_up(&self, keys: &[u64], selection: &mut SelectionVector) {
        let memory = &mut Prefetching::<ToL1>::default();
        match self {
            Self::Buckets(table) => {
                with_isa!(Detected::best(), isa => {
                    select::look_up(table, isa, keys, memory, selection)
                });
            }
            Self::Dense(table) => {
                with_isa!(Detected::best(), isa => {
                    let _inside = isa;
                    perfect_hash::look_up(table, keys, memory, selection)
                });
            }
            Self::Set(set) => {
                with_isa!(Detected::best(), isa => {
                    let _inside = isa;
                    set::look_up(set, keys, selection)
                });
            }
        }
    }
}
