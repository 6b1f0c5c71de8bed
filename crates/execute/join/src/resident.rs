//! The part of the build side that is in memory, as a table: all of it unless some was spilled.

use std::sync::Arc;

use workahead_machine::pages::PageBuffer;
use workahead_walks::walk::Row;

use crate::chunks::Chunks;
use crate::context::Facts;
use crate::entries::Entries;
use crate::filtering::Filtering;
use crate::flags::Flags;
use crate::groups::group;
use crate::inline::Inline;
use crate::join_type::{Alone, Emits};
use crate::keys::Mapping;
use crate::keys::store::KeyStore;
use crate::layout::Source;
use crate::{Choice, JoinSpec, Reservation, Side};

/// How many build rows there are of each kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rows {
    /// With a key: the first ones.
    pub(crate) keyed: usize,
    /// With a key that matches nothing, kept because they may come out alone.
    pub(crate) impossible: usize,
    /// Of a null-aware join, with a null key, kept likewise: the last ones.
    pub(crate) null: usize,
    /// Given, kept or not.
    pub(crate) seen: usize,
    /// Of a null-aware join, whether any key was null.
    pub(crate) saw_null: bool,
}

impl Rows {
    /// Kept.
    pub(crate) fn all(self) -> usize {
        self.keyed + self.impossible + self.null
    }
}

/// What was built.
pub(crate) struct Inside {
    pub(crate) table: Entries,
    pub(crate) groups: PageBuffer<Row>,
    /// The keys, if a hit must be compared.
    pub(crate) store: Option<KeyStore>,
    /// Whether rows of one group have different keys: then each pair must be compared.
    pub(crate) collides: bool,
    pub(crate) chunks: Chunks,
    /// If entries hold values, not rows.
    pub(crate) inline: Option<Inline>,
    pub(crate) design: Choice,
    pub(crate) mapping: Mapping,
}

/// A built table, for any number of probers on any thread.
pub(crate) struct Resident {
    pub(crate) spec: Arc<JoinSpec>,
    pub(crate) inside: Inside,
    pub(crate) emits: Emits,
    pub(crate) pair_sources: Vec<Source>,
    pub(crate) choice: Choice,
    /// If words may be asked of a filter first.
    pub(crate) filtering: Option<Filtering>,
    pub(crate) rows: Rows,
    /// Of build rows with a match, if those come out alone or must not. Where every pair is looked
    /// at, a bit a row; else one for the row of a key and, after those of all rows, one for the
    /// start of a group.
    pub(crate) flags: Option<Flags>,
    pub(crate) facts: Arc<Facts>,
    payload_bytes: usize,
    /// What all of it is charged with.
    pub(crate) memory: Reservation,
}

impl Resident {
    pub(crate) fn new(
        spec: Arc<JoinSpec>,
        inside: Inside,
        rows: Rows,
        facts: Arc<Facts>,
        memory: Reservation,
    ) -> Self {
        let (emits, pair_sources) = (spec.emits(), spec.pair_sources());
        let sieves = inside.collides || spec.filter.is_some();
        let group_bits = if sieves { 0 } else { inside.groups.len() };
        let flags = (emits.build != Alone::Never).then(|| Flags::new(rows.keyed + group_bits));
        let hashed = inside.store.is_some();
        let choice = inside.design.clone().unless_hashed(hashed);
        // A word that is a hash is looked up with what it is a hash of.
        let filtering = match inside.table.buckets() {
            Some(table) if !hashed => Filtering::of(&spec, table),
            _ => None,
        };
        let payload_bytes = inside.chunks.bytes();
        Self {
            spec,
            inside,
            emits,
            pair_sources,
            choice,
            filtering,
            rows,
            flags,
            facts,
            payload_bytes,
            memory,
        }
    }

    /// Whether a hit does not prove a pair: each must be looked at.
    pub(crate) fn sieves(&self) -> bool {
        self.inside.collides || self.spec.filter.is_some()
    }

    /// The bit of an entry's rows, where a hit proves all its pairs.
    #[inline]
    pub(crate) fn bit(&self, value: u64) -> usize {
        match group(value) {
            (_, None) => value as Row as usize,
            (_, Some(start)) => self.rows.keyed + start,
        }
    }

    /// The side it was built from.
    pub(crate) fn build_side(&self) -> Side {
        self.spec.build_side
    }

    /// Bytes that probes touch: the table, the rows of repeated keys, and keys that are compared.
    pub(crate) fn table_bytes(&self) -> usize {
        let store_bytes = self.inside.store.as_ref().map_or(0, KeyStore::bytes);
        let flag_bytes = self.flags.as_ref().map_or(0, Flags::bytes);
        self.inside.table.bytes() + self.inside.groups.bytes() + store_bytes + flag_bytes
    }

    /// Bytes of a row, about.
    pub(crate) fn row_bytes(&self) -> usize {
        self.payload_bytes.div_ceil(self.rows.all().max(1))
    }

    /// Bytes of all of it.
    pub(crate) fn bytes(&self) -> usize {
        self.table_bytes() + self.payload_bytes
    }
}
