//! Normalized keys: the key columns of a row as one 64-bit integer, which the table stores.
//!
//! ```text
//! columns ─► components ─┬─ one: itself                              exact
//!                        ├─ several whose ranges fit 64 bits: packed exact
//!                        └─ several: hashed ┐
//! strings, bytes ────────────────────hashed ├ each hit is compared with the build side's full key
//! anything else ─► row format ────── hashed ┘
//! ```
//!
//! A column of fixed width is one or two *components*, integers of 64 bits.
//!
//! Rows whose key can match nothing (a null unless nulls are equal, a number that the other side's
//! type lacks) get no normalized key.

pub(crate) mod bytes;
mod fixed;
mod kind;
mod normalized;
mod packed;
mod rows;
pub(crate) mod store;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

use fixed::FixedWidth;
pub(crate) use kind::readers;
pub(crate) use normalized::NormalizedKeys;
use normalized::compact;
pub(crate) use packed::{Packing, Range};
use rows::RowFormat;

/// Reads one side's keys.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    columns: Vec<usize>,
    form: Form,
    /// Nulls equal each other: another component says which columns are null.
    nulls_equal: bool,
}

#[derive(Debug, Clone)]
enum Form {
    FixedWidth(Arc<[FixedWidth]>),
    Bytes,
    Rows(RowFormat),
}

/// How a key is normalized: the same on both sides.
#[derive(Debug, Clone)]
pub(crate) struct KeyEncoding {
    pub(crate) kind: EncodingKind,
    /// Mixed into every key if a table without it would be crowded.
    pub(crate) salt: Option<u64>,
    /// The bits of a hash that are kept: all, except in tests of hash collisions.
    pub(crate) hash_mask: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum EncodingKind {
    /// The key is its only component.
    Identity,
    Packed(Packing),
    Hashed,
}

impl Reader {
    /// Whether both read the same keys from a side's rows.
    pub(crate) fn reads_as(&self, other: &Self) -> bool {
        self.columns == other.columns
            && self.nulls_equal == other.nulls_equal
            && match (&self.form, &other.form) {
                (Form::FixedWidth(own), Form::FixedWidth(other)) => own == other,
                (Form::Bytes, Form::Bytes) => true,
                (Form::Rows(own), Form::Rows(other)) => own.formats_as(other),
                _ => false,
            }
    }

    /// The encoding, if it doesn't depend on the build side's values.
    pub(crate) fn fixed_encoding(&self) -> Option<EncodingKind> {
        match &self.form {
            Form::FixedWidth(fixed) => (self.width(fixed) == 1).then_some(EncodingKind::Identity),
            Form::Bytes | Form::Rows(_) => Some(EncodingKind::Hashed),
        }
    }

    /// Empty ranges, to be widened by [`measure`](Self::measure).
    pub(crate) fn ranges(&self) -> Vec<Range> {
        let Form::FixedWidth(columns) = &self.form else { return Vec::new() };
        let components = columns.iter().flat_map(|fixed| {
            let signed = |component| fixed.signed(component);
            (0..fixed.components()).map(signed)
        });
        let mask = self.nulls_equal.then_some(false);
        components.chain(mask).map(Range::empty).collect()
    }

    /// The range of normalized keys, given the range of each column. `None` if keys are hashed, or
    /// a column has two components.
    pub(crate) fn span(&self, columns: &[Option<u64>]) -> Option<u64> {
        let Form::FixedWidth(fixed) = &self.form else { return None };
        if fixed.len() != columns.len() || fixed.iter().any(|fixed| fixed.components() > 1) {
            return None;
        }
        let places = |product: u128, span: &Option<u64>| {
            span.and_then(|span| product.checked_mul(u128::from(span) + 1))
        };
        u64::try_from(columns.iter().try_fold(1, places)? - 1).ok()
    }

    fn width(&self, fixed: &[FixedWidth]) -> usize {
        fixed.iter().map(FixedWidth::components).sum::<usize>() + usize::from(self.nulls_equal)
    }

    /// Nulls of the only key column, for a null-aware join.
    pub(crate) fn nulls(&self, batch: &RecordBatch) -> Option<NullBuffer> {
        let nulls = batch.column(self.columns[0]).logical_nulls();
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// Reads a batch's keys, reusing memory.
    pub(crate) fn read(
        &self,
        encoding: &KeyEncoding,
        batch: &RecordBatch,
        keys: &mut NormalizedKeys,
    ) -> Result<(), ArrowError> {
        keys.release_borrowed();
        match &self.form {
            Form::FixedWidth(fixed) => {
                if let (EncodingKind::Identity, None, [fixed]) =
                    (&encoding.kind, encoding.salt, &**fixed)
                    && let Some(normalized) = fixed.borrow(&plain(batch.column(self.columns[0]))?)
                {
                    keys.borrow(normalized);
                    return Ok(());
                }
                let keep = self.load(fixed, batch, keys)?;
                keys.normalize(encoding, keep, self.nulls_equal.then_some(&**fixed));
            }
            Form::Bytes => self.read_bytes(encoding, batch, keys)?,
            Form::Rows(format) => self.read_rows(format, encoding, batch, keys)?,
        }
        if let Some(salt) = encoding.salt {
            keys.values.iter_mut().for_each(|key| *key = salted(*key, salt));
        }
        Ok(())
    }

    /// Widens the ranges by a batch's keys; the keys are then only good for counting distinct ones.
    pub(crate) fn measure(
        &self,
        batch: &RecordBatch,
        keys: &mut NormalizedKeys,
        ranges: &mut [Range],
    ) -> Result<(), ArrowError> {
        let Form::FixedWidth(fixed) = &self.form else { return Ok(()) };
        let keep = self.load(fixed, batch, keys)?;
        keys.keep(keep, batch.num_rows());
        let NormalizedKeys { loaded, rows, values: normalized, .. } = keys;
        normalized.clear();
        normalized.resize(rows.as_ref().map_or(batch.num_rows(), Vec::len), 0);
        let masks = self.nulls_equal.then(|| {
            let mut masks = loaded[ranges.len() - 1].clone();
            compact(&mut masks, rows.as_deref());
            masks
        });
        let columns = fixed.iter().enumerate().flat_map(|(at, fixed)| vec![at; fixed.components()]);
        let columns: Vec<_> = columns.map(Some).chain([None]).collect();
        for ((loaded, range), column) in loaded.iter_mut().zip(ranges).zip(columns) {
            compact(loaded, rows.as_deref());
            match (&masks, column) {
                (Some(masks), Some(column)) => {
                    let valid = |(_, mask): &(&u64, &u64)| *mask >> column & 1 == 0;
                    let valid = loaded.iter().zip(masks).filter(valid);
                    range.widen(valid.map(|(value, _)| *value));
                }
                _ => range.widen(loaded.iter().copied()),
            }
            for (combined, value) in normalized.iter_mut().zip(&*loaded) {
                *combined = (combined.rotate_left(29) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            }
        }
        Ok(())
    }

    /// Loads the components of all columns. Returns the rows that have a key, if some have none.
    fn load(
        &self,
        fixed: &[FixedWidth],
        batch: &RecordBatch,
        keys: &mut NormalizedKeys,
    ) -> Result<Option<BooleanBuffer>, ArrowError> {
        let width = self.width(fixed);
        keys.loaded.resize_with(width, Vec::new);
        let (columns, mask) = keys.loaded.split_at_mut(width - usize::from(self.nulls_equal));
        if let [mask] = mask {
            mask.clear();
            mask.resize(batch.num_rows(), 0);
        }
        let (mut keep, mut at) = (None, 0);
        for (bit, (fixed, column)) in fixed.iter().zip(&self.columns).enumerate() {
            let array = plain(batch.column(*column))?;
            let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
            for component in 0..fixed.components() {
                fixed.read(&array, component, &mut columns[at + component]);
            }
            if let Some(matchable) = fixed.matchable(&columns[at]) {
                // Values under nulls don't count.
                let matchable =
                    nulls.as_ref().map_or(matchable.clone(), |n| &matchable | &!n.inner());
                keep = both(keep, matchable);
            }
            if let Some(nulls) = nulls {
                match mask {
                    [mask] => {
                        let valid = nulls.inner();
                        for row in (0..batch.num_rows()).filter(|row| !valid.value(*row)) {
                            mask[row] |= 1 << bit;
                            columns[at..at + fixed.components()]
                                .iter_mut()
                                .for_each(|c| c[row] = 0);
                        }
                    }
                    _ => keep = both(keep, nulls.into_inner()),
                }
            }
            at += fixed.components();
        }
        Ok(keep)
    }

    fn read_bytes(
        &self,
        encoding: &KeyEncoding,
        batch: &RecordBatch,
        keys: &mut NormalizedKeys,
    ) -> Result<(), ArrowError> {
        let array = plain(batch.column(self.columns[0]))?;
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let dropped = nulls.as_ref().filter(|_| !self.nulls_equal).map(|n| n.inner().clone());
        keys.keep(dropped, batch.num_rows());
        let null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        macro_rules! hash {
            ($array:expr) => {{
                let array = $array;
                keys.hash(encoding, array.len(), |row| {
                    (!null(row)).then(|| -> &[u8] { array.value(row).as_ref() })
                });
            }};
        }
        match array.data_type() {
            DataType::Utf8 => hash!(array.as_string::<i32>()),
            DataType::LargeUtf8 => hash!(array.as_string::<i64>()),
            DataType::Utf8View => hash!(array.as_string_view()),
            DataType::Binary => hash!(array.as_binary::<i32>()),
            DataType::LargeBinary => hash!(array.as_binary::<i64>()),
            DataType::BinaryView => hash!(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => hash!(array.as_fixed_size_binary()),
            other => unreachable!("{other} is read in another form"),
        }
        Ok(())
    }

    fn read_rows(
        &self,
        format: &RowFormat,
        encoding: &KeyEncoding,
        batch: &RecordBatch,
        keys: &mut NormalizedKeys,
    ) -> Result<(), ArrowError> {
        let columns = self.columns.iter().map(|column| plain(batch.column(*column)));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut dropped = None;
        if !self.nulls_equal {
            for nulls in columns.iter().filter_map(|column| column.logical_nulls()) {
                dropped = both(dropped, nulls.into_inner());
            }
        }
        let (rows, matchable) = format.rows(columns)?;
        if let Some(matchable) = matchable {
            dropped = both(dropped, matchable);
        }
        keys.keep(dropped, batch.num_rows());
        keys.hash(encoding, batch.num_rows(), |row| Some(rows.row(row).data()));
        Ok(())
    }
}

impl KeyEncoding {
    pub(crate) fn new(kind: EncodingKind) -> Self {
        Self { kind, salt: None, hash_mask: u64::MAX }
    }

    /// Applies the salt, if there is one.
    pub(crate) fn salted<'w>(&self, normalized: &'w [u64], mixed: &'w mut Vec<u64>) -> &'w [u64] {
        let Some(salt) = self.salt else { return normalized };
        mixed.clear();
        mixed.extend(normalized.iter().map(|key| salted(*key, salt)));
        mixed
    }

    /// Whether hits must be compared: two keys may have one normalized key.
    pub(crate) fn is_hashed(&self) -> bool {
        matches!(self.kind, EncodingKind::Hashed)
    }
}

fn both(a: Option<BooleanBuffer>, b: BooleanBuffer) -> Option<BooleanBuffer> {
    Some(a.map_or(b.clone(), |a| &a & &b))
}

/// Decodes dictionaries.
fn plain(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let mut array = array.clone();
    while let Some(dictionary) = array.as_any_dictionary_opt() {
        array = take(dictionary.values(), dictionary.keys(), None)?;
    }
    Ok(array)
}

fn salted(key: u64, salt: u64) -> u64 {
    mixed(key ^ salt)
}

/// A bijection, so equality is preserved (the finaliser of SplitMix64).
pub(crate) fn mixed(key: u64) -> u64 {
    let mut x = key;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
