//! The build side's full keys, stored if equal hashes don't prove equal keys.
//!
//! The components of a key are contiguous, so comparing costs one miss; long strings lie in a
//! separate buffer, which costs another.

use workahead_machine::pages::{PageBuffer, Supply};
use workahead_walks::memory::{Memory, Prefetching, ToL1};
use workahead_walks::place::{Intent, Place};
use workahead_walks::selection::SelectionVector;
use workahead_walks::walk::Row;

use super::bytes;
use crate::{JoinError, StopCheck};

/// Full keys row by row.
#[derive(Debug, Clone, Default)]
pub(crate) struct FullKeys {
    /// Components per key.
    pub(crate) width: usize,
    pub(crate) components: Vec<u64>,
    /// The bytes of long keys, if keys are bytes.
    pub(crate) long: Vec<u8>,
    /// Whether keys are bytes.
    pub(crate) bytes: bool,
}

impl FullKeys {
    pub(crate) fn bytes(&self) -> usize {
        self.components.capacity() * size_of::<u64>() + self.long.capacity()
    }

    pub(crate) fn clear(&mut self, width: usize, bytes: bool) {
        (self.width, self.bytes) = (width, bytes);
        self.components.clear();
        self.long.clear();
    }
}

/// The full keys of the build side.
pub(crate) struct KeyStore {
    width: usize,
    components: PageBuffer<u64>,
    long: Vec<u8>,
    bytes: bool,
}

impl KeyStore {
    /// Concatenates the keys of all batches.
    pub(crate) fn new(
        batches: Vec<FullKeys>,
        pages: &Supply,
        stop: &StopCheck,
    ) -> Result<Self, JoinError> {
        let (width, bytes) = batches.first().map_or((1, false), |first| (first.width, first.bytes));
        let total = batches.iter().map(|batch| batch.components.len()).sum();
        let long_bytes = batches.iter().map(|batch| batch.long.len()).sum();
        let mut components = pages.any(total)?;
        let mut long = Vec::with_capacity(long_bytes);
        let mut rest = &mut components[..];
        for batch in batches {
            stop.check()?;
            let (to, behind) = rest.split_at_mut(batch.components.len());
            to.copy_from_slice(&batch.components);
            if !batch.long.is_empty() {
                let start = long.len() as u64;
                for key in to.as_chunks_mut::<{ bytes::WIDTH }>().0 {
                    if bytes::long_range(*key).is_some() {
                        key[0] += start;
                    }
                }
                long.extend_from_slice(&batch.long);
            }
            rest = behind;
        }
        Ok(Self { width, components, long, bytes })
    }

    #[inline(always)]
    fn key(&self, row: Row) -> &[u64] {
        &self.components[row as usize * self.width..][..self.width]
    }

    /// Prefetches a key.
    #[inline]
    pub(crate) fn prefetch(&self, row: Row) {
        let mut memory = Prefetching::<ToL1>::default();
        memory.fetch(Place::of(&self.components[row as usize * self.width]), Intent::Read);
    }

    /// Whether any key is longer than its components.
    pub(crate) fn holds_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// Prefetches the bytes of a long key, whose components have arrived.
    #[inline]
    pub(crate) fn prefetch_long(&self, row: Row) {
        if self.long.is_empty() {
            return;
        }
        let range = self.key(row).first_chunk().and_then(|key| bytes::long_range(*key));
        if let Some(byte) = range.and_then(|range| self.long.get(range.start)) {
            Prefetching::<ToL1>::default().fetch(Place::of(byte), Intent::Read);
        }
    }

    /// Keeps selected rows whose keys equal those of `others`, from `first` on. None of the stored
    /// keys may be [long](Self::holds_long).
    pub(crate) fn confirm(&self, selection: &mut SelectionVector, others: &FullKeys, first: usize) {
        if self.components.is_empty() {
            return;
        }
        debug_assert!(self.long.is_empty(), "long keys are compared hit by hit");
        match self.width {
            // Equal components are equal keys: those of the other side's long keys differ from
            // those of any short one.
            1 => self.confirm_of_width::<1>(selection, others, first),
            2 => self.confirm_of_width::<2>(selection, others, first),
            3 => self.confirm_of_width::<3>(selection, others, first),
            _ => selection.confirm(
                |row| self.prefetch(row as Row),
                |at, row| self.equals(row as Row, others, first + at),
            ),
        }
    }

    fn confirm_of_width<const WIDTH: usize>(
        &self,
        selection: &mut SelectionVector,
        others: &FullKeys,
        first: usize,
    ) {
        let own = self.components.as_chunks::<WIDTH>().0;
        let others = &others.components.as_chunks::<WIDTH>().0[first..];
        selection
            .confirm(|row| self.prefetch(row as Row), |at, row| own[row as usize] == others[at]);
    }

    /// Whether a build row has the key `at` of others.
    #[inline(always)]
    pub(crate) fn equals(&self, row: Row, others: &FullKeys, at: usize) -> bool {
        let other = &others.components[at * self.width..][..self.width];
        self.same(self.key(row), other, &others.long)
    }

    /// Whether two build rows have the same key.
    pub(crate) fn equal(&self, row: Row, other: Row) -> bool {
        self.same(self.key(row), self.key(other), &self.long)
    }

    #[inline(always)]
    fn same(&self, own: &[u64], other: &[u64], other_long: &[u8]) -> bool {
        let (Some(own), Some(other), true) = (own.first_chunk(), other.first_chunk(), self.bytes)
        else {
            return own == other;
        };
        // The second component has the length, and whether the first is part of the key itself.
        own[1] == other[1]
            && match (bytes::long_range(*own), bytes::long_range(*other)) {
                (Some(own), Some(other)) => self.long[own] == other_long[other],
                _ => own[0] == other[0],
            }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.components.bytes() + self.long.capacity()
    }
}
