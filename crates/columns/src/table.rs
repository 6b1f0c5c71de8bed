//! The built table, shared by probers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use workahead_machine::pages::PageBuffer;
use workahead_operators::bucket::Table;
use workahead_operators::walk::Row;

use crate::chunks::Chunks;
use crate::flags::Flags;
use crate::groups::group;
use crate::inline::Inline;
use crate::join::Order;
use crate::join_type::{Alone, Emits};
use crate::keys::Mapping;
use crate::keys::store::KeyStore;
use crate::layout::Source;
use crate::{Choice, HashJoin, Side, Strategy};

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
    pub(crate) table: Table,
    pub(crate) groups: PageBuffer<Row>,
    /// The keys, if a hit must be compared.
    pub(crate) store: Option<KeyStore>,
    /// Whether rows of one group have different keys: then each pair must be compared.
    pub(crate) collides: bool,
    pub(crate) chunks: Chunks,
    /// If entries hold values, not rows.
    pub(crate) inline: Option<Inline>,
    pub(crate) mapping: Mapping,
}

/// What the probers of a table tell each other.
#[derive(Debug)]
struct Shared {
    /// Probers that have not ended.
    probers: AtomicUsize,
    /// Whether the probe side had a row, and one with a null key: asked by null-aware joins.
    saw_row: AtomicBool,
    saw_null: AtomicBool,
}

/// A built table: for any number of [`Prober`](crate::Prober)s on any thread.
pub struct JoinTable {
    pub(crate) join: HashJoin,
    pub(crate) inside: Inside,
    pub(crate) emits: Emits,
    pub(crate) pair_sources: Vec<Source>,
    pub(crate) choice: Choice,
    pub(crate) rows: Rows,
    /// Of build rows with a match, if those come out alone or must not. Where every pair is looked
    /// at, a bit a row; else one for the row of a key and, after those of all rows, one for the
    /// start of a group.
    pub(crate) flags: Option<Flags>,
    shared: Shared,
    busy: Duration,
}

impl JoinTable {
    pub(crate) fn new(join: HashJoin, inside: Inside, rows: Rows, busy: Duration) -> Self {
        let (emits, pair_sources) = (join.emits(), join.pair_sources());
        let sieves = inside.collides || join.filter.is_some();
        let group_bits = if sieves { 0 } else { inside.groups.len() };
        let flags = (emits.build != Alone::Never).then(|| Flags::new(rows.keyed + group_bits));
        let store_bytes = inside.store.as_ref().map_or(0, KeyStore::bytes);
        let probed_bytes = inside.table.bytes() + inside.groups.bytes() + store_bytes;
        let mut choice = join.strategy.choose(probed_bytes, join.caches);
        if join.order == Order::Kept && !choice.strategy.keeps_order() {
            let why = format!("{} was asked for, which loses the probe's order", choice.strategy);
            choice = Choice { strategy: Strategy::Distance, why };
        }
        let shared = Shared {
            probers: AtomicUsize::new(1),
            saw_row: AtomicBool::new(false),
            saw_null: AtomicBool::new(false),
        };
        Self { join, inside, emits, pair_sources, choice, rows, flags, shared, busy }
    }

    /// Says how many probers will [`end`](crate::Prober::end): the last one gives the build rows
    /// that come out alone. One, unless it is said before any ends.
    ///
    /// # Panics
    /// If `probers` is zero.
    pub fn expect_probers(&self, probers: usize) {
        assert!(probers > 0, "a table is probed by at least one prober");
        self.shared.probers.store(probers, Ordering::Release);
    }

    /// Whether the prober that ends now is the last.
    pub(crate) fn end_prober(&self) -> bool {
        // What other probers flagged is seen by the last.
        let before = self.shared.probers.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "more probers end than were expected: call expect_probers before");
        before == 1
    }

    /// Notes what a null-aware join must know of a probe batch.
    pub(crate) fn see(&self, rows: usize, nulls: bool) {
        if rows > 0 {
            self.shared.saw_row.store(true, Ordering::Relaxed);
        }
        if nulls {
            self.shared.saw_null.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any probe row, and any null key, was seen.
    pub(crate) fn seen(&self) -> (bool, bool) {
        (self.shared.saw_row.load(Ordering::Relaxed), self.shared.saw_null.load(Ordering::Relaxed))
    }

    /// Whether a hit does not prove a pair: each must be looked at.
    pub(crate) fn sieves(&self) -> bool {
        self.inside.collides || self.join.filter.is_some()
    }

    /// The bit of an entry's rows, where a hit proves all its pairs.
    #[inline]
    pub(crate) fn bit(&self, value: u64) -> usize {
        match group(value) {
            (_, None) => value as Row as usize,
            (_, Some(start)) => self.rows.keyed + start,
        }
    }

    /// The join it was built for.
    #[must_use]
    pub fn join(&self) -> &HashJoin {
        &self.join
    }

    /// The side it was built from.
    #[must_use]
    pub fn build_side(&self) -> Side {
        self.join.build_side
    }

    /// Build rows in it: those whose key can match.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.keyed
    }

    /// Different keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.inside.table.len()
    }

    /// Bytes that probes touch: the table, the rows of repeated keys, and keys that are compared.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        let store_bytes = self.inside.store.as_ref().map_or(0, KeyStore::bytes);
        let flag_bytes = self.flags.as_ref().map_or(0, Flags::bytes);
        self.inside.table.bytes() + self.inside.groups.bytes() + store_bytes + flag_bytes
    }

    /// Bytes of the build side's columns.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.inside.chunks.bytes()
    }

    /// The strategy, and why.
    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Time spent in [`BuildSide::push`](crate::BuildSide::push) and
    /// [`BuildSide::finish`](crate::BuildSide::finish).
    #[must_use]
    pub fn build_time(&self) -> Duration {
        self.busy
    }
}

impl std::fmt::Debug for JoinTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinTable")
            .field("rows", &self.rows)
            .field("keys", &self.keys())
            .field("table_bytes", &self.table_bytes())
            .field("choice", &self.choice)
            .finish_non_exhaustive()
    }
}
