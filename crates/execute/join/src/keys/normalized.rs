//! The normalized keys of a batch.

use arrow_buffer::bit_chunk_iterator::BitChunks;
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use workahead_walks::bloom::{Filter, Survivors, filter_keys};
use workahead_walks::isa::Detected;
use workahead_walks::memory::{Prefetching, ToL1};
use workahead_walks::walk::Row;
use workahead_walks::with_isa;

use super::fixed::FixedWidth;
use super::packed::Packing;
use super::store::FullKeys;
use super::{EncodingKind, KeyEncoding, bytes};

/// Rows are masked instead of dropped if at least one in this many has a key.
const MASKED: usize = 2;

/// The normalized keys of a batch, without rows whose key can match nothing.
#[derive(Debug, Default)]
pub(crate) struct NormalizedKeys {
    pub(super) values: Vec<u64>,
    /// Borrowed from a column that stores them as they are.
    borrowed: Option<ScalarBuffer<u64>>,
    /// Row of each key, unless key `i` is of row `i`.
    pub(super) rows: Option<Vec<Row>>,
    /// Whether rows without a key may stay among the keys, for a table in which looking them up
    /// costs less than dropping them.
    may_mask: bool,
    /// Which keys are keys, if others stayed.
    mask: Option<BooleanBuffer>,
    /// The full keys, if they are hashed.
    pub(crate) full_keys: FullKeys,
    /// Scratch: the values of each component.
    pub(super) loaded: Vec<Vec<u64>>,
    outside: Vec<bool>,
}

impl NormalizedKeys {
    pub(crate) fn values(&self) -> &[u64] {
        self.borrowed.as_deref().unwrap_or(&self.values)
    }

    /// Borrows the keys of a column in which every row has one.
    pub(super) fn borrow(&mut self, normalized: ScalarBuffer<u64>) {
        self.rows = None;
        self.borrowed = Some(normalized);
    }

    /// Releases what was borrowed from a column.
    pub(crate) fn release_borrowed(&mut self) {
        self.borrowed = None;
        self.mask = None;
    }

    /// Lets rows without a key stay among the keys, marked by [`mask`](Self::mask). Not for hashed
    /// keys.
    pub(crate) fn may_mask(&mut self, may_mask: bool) {
        self.may_mask = may_mask;
    }

    /// A bitmap, 64 bits at a time: which of the keys from `first` on are keys. `None` if all are.
    pub(crate) fn mask(&self, first: usize, keys: usize) -> Option<impl Iterator<Item = u64> + '_> {
        let mask = self.mask.as_ref()?;
        let bits = BitChunks::new(mask.values(), mask.offset() + first, keys);
        Some(bits.iter().chain([bits.remainder_bits()]))
    }

    /// Takes the normalized and the full keys.
    pub(crate) fn take(&mut self) -> (Vec<u64>, FullKeys) {
        (std::mem::take(&mut self.values), std::mem::take(&mut self.full_keys))
    }

    /// Row of each key, unless key `i` is of row `i`.
    pub(crate) fn rows(&self) -> Option<&[Row]> {
        self.rows.as_deref()
    }

    /// The row of a key.
    #[inline]
    pub(crate) fn row(&self, key: Row) -> Row {
        self.rows.as_ref().map_or(key, |rows| rows[key as usize])
    }

    /// Drops keys that a Bloom filter doesn't have. Only for keys that aren't hashed: full keys are
    /// not compacted.
    pub(crate) fn apply_bloom_filter(&mut self, filter: &Filter, survivors: &mut Survivors) {
        let memory = &mut Prefetching::<ToL1>::default();
        with_isa!(Detected::best(), isa => {
            let _inside = isa;
            filter_keys(filter, self.values(), memory, survivors)
        });
        if survivors.keys().len() == self.values().len() {
            return;
        }
        match &mut self.rows {
            Some(rows) => {
                // A survivor never moves towards the end.
                for (to, from) in survivors.rows().iter().enumerate() {
                    rows[to] = rows[*from as usize];
                }
                rows.truncate(survivors.rows().len());
            }
            None => self.rows = Some(survivors.rows().to_vec()),
        }
        self.borrowed = None;
        self.values.clear();
        self.values.extend_from_slice(survivors.keys());
    }

    /// Records which rows have a key.
    pub(super) fn keep(&mut self, keep: Option<BooleanBuffer>, rows: usize) {
        let count = keep.as_ref().map_or(rows, BooleanBuffer::count_set_bits);
        let Some(keep) = keep.filter(|_| count < rows) else {
            self.rows = None;
            return;
        };
        if self.may_mask && count >= rows / MASKED {
            self.rows = None;
            self.mask = Some(keep);
            return;
        }
        let kept = self.rows.get_or_insert_default();
        kept.clear();
        kept.extend(keep.set_indices().map(|row| row as Row));
    }

    /// Normalizes the loaded components.
    pub(super) fn normalize(
        &mut self,
        encoding: &KeyEncoding,
        keep: Option<BooleanBuffer>,
        masked: Option<&[FixedWidth]>,
    ) {
        let rows = self.loaded[0].len();
        match &encoding.kind {
            EncodingKind::Identity => {
                std::mem::swap(&mut self.values, &mut self.loaded[0]);
                self.keep(keep, rows);
                compact(&mut self.values, self.rows.as_deref());
            }
            EncodingKind::Packed(packing) => {
                if let Some(fixed) = masked {
                    self.neutralise(packing, fixed);
                }
                let Self { values: normalized, loaded, outside, .. } = self;
                normalized.clear();
                normalized.resize(rows, 0);
                outside.clear();
                outside.resize(rows, false);
                for (component, from) in loaded.iter().enumerate() {
                    packing.add(component, from, normalized, outside);
                }
                let in_range = outside
                    .contains(&true)
                    .then(|| BooleanBuffer::collect_bool(rows, |row| !self.outside[row]));
                self.keep(
                    in_range.map_or(keep.clone(), |in_range| super::both(keep, in_range)),
                    rows,
                );
                compact(&mut self.values, self.rows.as_deref());
            }
            EncodingKind::Hashed => {
                self.keep(keep, rows);
                self.hash_loaded(encoding, rows);
            }
        }
    }

    /// Nulls only count by their mask.
    fn neutralise(&mut self, packing: &Packing, fixed: &[FixedWidth]) {
        let Some((mask, columns)) = self.loaded.split_last_mut() else { return };
        if mask.iter().all(|mask| *mask == 0) {
            return;
        }
        let of_column =
            fixed.iter().enumerate().flat_map(|(at, f)| std::iter::repeat_n(at, f.components()));
        for (component, (loaded, column)) in columns.iter_mut().zip(of_column).enumerate() {
            for (value, mask) in loaded.iter_mut().zip(&*mask) {
                if mask >> column & 1 != 0 {
                    *value = packing.neutral(component);
                }
            }
        }
    }

    fn hash_loaded(&mut self, encoding: &KeyEncoding, rows: usize) {
        let Self { values: normalized, rows: kept, full_keys, loaded, .. } = self;
        let width = loaded.len();
        full_keys.clear(width, false);
        let rows = kept.as_ref().map_or(rows, Vec::len);
        // Column by column, into the row layout of the build side's full keys.
        full_keys.components.resize(rows * width, 0);
        for (component, column) in loaded.iter().enumerate() {
            let to = full_keys.components.iter_mut().skip(component).step_by(width);
            match kept {
                None => to.zip(column).for_each(|(to, from)| *to = *from),
                Some(kept) => to.zip(kept).for_each(|(to, row)| *to = column[*row as usize]),
            }
        }
        normalized.clear();
        let hashes = full_keys.components.chunks_exact(width);
        normalized.extend(hashes.map(|key| bytes::hash_encoded(key) & encoding.hash_mask));
    }

    /// Hashes the bytes of the kept rows.
    #[inline]
    pub(super) fn hash<'b>(
        &mut self,
        encoding: &KeyEncoding,
        rows: usize,
        key: impl Fn(usize) -> Option<&'b [u8]>,
    ) {
        let Self { values: normalized, rows: kept, full_keys, .. } = self;
        full_keys.clear(bytes::WIDTH, true);
        normalized.clear();
        match kept {
            None => hash_each(0..rows, key, encoding, (normalized, full_keys)),
            Some(kept) => {
                hash_each(
                    kept.iter().map(|row| *row as usize),
                    key,
                    encoding,
                    (normalized, full_keys),
                );
            }
        }
    }
}

#[inline]
fn hash_each<'b>(
    rows: impl ExactSizeIterator<Item = usize>,
    key: impl Fn(usize) -> Option<&'b [u8]>,
    encoding: &KeyEncoding,
    (normalized, full_keys): (&mut Vec<u64>, &mut FullKeys),
) {
    normalized.resize(rows.len(), 0);
    full_keys.components.resize(rows.len() * bytes::WIDTH, 0);
    let to = full_keys.components.as_chunks_mut().0.iter_mut().zip(normalized);
    for (row, (full_key, normalized)) in rows.zip(to) {
        let hash;
        (*full_key, hash) = match key(row) {
            Some(key) => bytes::encode(key, &mut full_keys.long),
            None => (bytes::NULL_KEY, bytes::hash_encoded(&bytes::NULL_KEY)),
        };
        *normalized = hash & encoding.hash_mask;
    }
}

/// Keeps some rows.
pub(super) fn compact(values: &mut Vec<u64>, rows: Option<&[Row]>) {
    let Some(rows) = rows else { return };
    // A kept row never moves towards the end.
    for (to, from) in rows.iter().enumerate() {
        values[to] = values[*from as usize];
    }
    values.truncate(rows.len());
}
