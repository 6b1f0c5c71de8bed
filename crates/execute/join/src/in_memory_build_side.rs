//! The in-memory build side: all of the build side, unless some of it was spilled.

use std::sync::Arc;

use workahead_machine::pages::PageBuffer;
use workahead_walks::walk::Row;

use crate::batch::batch_bytes_max;
use crate::bloom_filter::SharedBloomFilter;
use crate::chunks::Chunks;
use crate::context::NullAwareState;
use crate::duplicates::duplicate_list;
use crate::hash_table::HashTable;
use crate::join_type::{OutputRules, SideOutput};
use crate::keys::KeyEncoding;
use crate::keys::store::KeyStore;
use crate::match_bitmap::SharedMatchBitmap;
use crate::memory_estimate::RowSize;
use crate::output_columns::ColumnSource;
use crate::table_payload::TablePayload;
use crate::{JoinSpec, LayoutChoice, Reservation, Side};

/// Build rows by kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BuildRowCounts {
    /// With a key; the first ones.
    pub(crate) keyed: usize,
    /// Whose key can match nothing, kept because the join may output them unmatched.
    pub(crate) unmatchable: usize,
    /// In a null-aware join, with a null key, kept likewise; the last ones.
    pub(crate) null: usize,
    /// Pushed, kept or not.
    pub(crate) input: usize,
    /// In a null-aware join, whether any key was null.
    pub(crate) has_null: bool,
}

impl BuildRowCounts {
    /// Kept rows.
    pub(crate) fn all(self) -> usize {
        self.keyed + self.unmatchable + self.null
    }
}

/// Hash table, duplicate lists, keys and columns of the build side.
pub(crate) struct BuildData {
    pub(crate) hash_table: HashTable,
    pub(crate) duplicate_lists: PageBuffer<Row>,
    /// The full keys, if hits must be compared.
    pub(crate) store: Option<KeyStore>,
    /// Whether rows of a duplicate list have different keys, so that every candidate must be
    /// compared.
    pub(crate) collides: bool,
    pub(crate) chunks: Chunks,
    /// The payload, if entries hold values instead of rows.
    pub(crate) payload: Option<TablePayload>,
    pub(crate) layout: LayoutChoice,
    pub(crate) encoding: KeyEncoding,
}

/// The built table, for any number of probers on any thread.
pub(crate) struct InMemoryBuildSide {
    pub(crate) spec: Arc<JoinSpec>,
    pub(crate) data: Arc<BuildData>,
    pub(crate) output_rules: OutputRules,
    pub(crate) match_sources: Vec<ColumnSource>,
    pub(crate) layout_choice: LayoutChoice,
    /// The Bloom filter, if one may be put before the table.
    pub(crate) bloom_filter: Option<Arc<SharedBloomFilter>>,
    pub(crate) rows: BuildRowCounts,
    /// Build rows with a match, if the join outputs or excludes them. With a residual predicate, a
    /// bit for each row; else one for the row of each key and, after those of all rows, one for the
    /// start of each duplicate list.
    pub(crate) match_bitmap: Option<SharedMatchBitmap>,
    pub(crate) null_aware_state: Arc<NullAwareState>,
    /// Most bytes of a batch that is gathered from it, unless a single row has more.
    pub(crate) batch_bytes_max: usize,
    payload_bytes: usize,
    /// The charge for all of it.
    pub(crate) memory: Reservation,
    /// That whose data this is too: it keeps the charge.
    _base: Option<Arc<InMemoryBuildSide>>,
}

impl InMemoryBuildSide {
    pub(crate) fn new(
        spec: Arc<JoinSpec>,
        data: BuildData,
        rows: BuildRowCounts,
        null_aware_state: Arc<NullAwareState>,
        memory: Reservation,
    ) -> Self {
        let (output_rules, match_sources) = (spec.output_rules(), spec.match_sources());
        let has_residual_predicate = data.collides || spec.filter.is_some();
        let list_bits = if has_residual_predicate { 0 } else { data.duplicate_lists.len() };
        let match_bitmap = (output_rules.build != SideOutput::Never)
            .then(|| SharedMatchBitmap::new(rows.keyed + list_bits));
        let hashed = data.store.is_some();
        let layout_choice = data.layout.clone().unless_hashed(hashed);
        // A hashed key is looked up together with its full key.
        let bloom_filter = match data.hash_table.buckets() {
            Some(table) if !hashed => SharedBloomFilter::of(&spec, table).map(Arc::new),
            _ => None,
        };
        let payload_bytes = data.chunks.bytes();
        let batch_bytes_max = batch_bytes_max(memory.pool().share(), spec.probers);
        Self {
            spec,
            data: Arc::new(data),
            output_rules,
            match_sources,
            layout_choice,
            bloom_filter,
            rows,
            match_bitmap,
            null_aware_state,
            batch_bytes_max,
            payload_bytes,
            memory,
            _base: None,
        }
    }

    /// The same data for another join, which outputs no build rows on their own.
    pub(crate) fn for_join(self: &Arc<Self>, spec: Arc<JoinSpec>) -> Self {
        Self {
            output_rules: spec.output_rules(),
            match_sources: spec.match_sources(),
            spec,
            data: self.data.clone(),
            layout_choice: self.layout_choice.clone(),
            bloom_filter: self.bloom_filter.clone(),
            rows: self.rows,
            match_bitmap: None,
            null_aware_state: self.null_aware_state.clone(),
            batch_bytes_max: self.batch_bytes_max,
            payload_bytes: self.payload_bytes,
            memory: Reservation::new(self.memory.pool().clone()),
            _base: Some(self.clone()),
        }
    }

    /// Whether a hit does not prove a match: hashes of different keys collide, or there is a
    /// filter.
    pub(crate) fn has_residual_predicate(&self) -> bool {
        self.data.collides || self.spec.filter.is_some()
    }

    /// The bit for an entry's rows, if a hit proves that all of them match.
    #[inline]
    pub(crate) fn bit(&self, value: u64) -> usize {
        match duplicate_list(value) {
            (_, None) => value as Row as usize,
            (_, Some(start)) => self.rows.keyed + start,
        }
    }

    /// The build side.
    pub(crate) fn build_side(&self) -> Side {
        self.spec.build_side
    }

    /// Bytes that probes touch: hash table, duplicate lists, and keys that are compared.
    pub(crate) fn table_bytes(&self) -> usize {
        let store_bytes = self.data.store.as_ref().map_or(0, KeyStore::bytes);
        let bitmap_bytes = self.match_bitmap.as_ref().map_or(0, SharedMatchBitmap::bytes);
        self.data.hash_table.bytes()
            + self.data.duplicate_lists.bytes()
            + store_bytes
            + bitmap_bytes
    }

    /// Bytes of a row.
    pub(crate) fn row_size(&self) -> RowSize {
        let average = self.payload_bytes.div_ceil(self.rows.all().max(1));
        RowSize { average, widest: self.data.chunks.widest_row() }
    }

    /// Bytes in total.
    pub(crate) fn bytes(&self) -> usize {
        self.table_bytes() + self.payload_bytes
    }
}
