//! Tables as columns, and the order in which their rows probe.

use workahead_machine::pages::{AllocationError, PageBuffer, Pages};

use crate::memory::Memory;
use crate::place::Place;
use crate::random::Random;
use crate::walk::Row;

/// A table of a key and two integers, each attribute in an array of its own.
pub struct Table {
    keys: PageBuffer<u32>,
    integers: [PageBuffer<u32>; 2],
}

impl Table {
    /// A table of these keys; the integers tell row and column, so that a mistaken gather shows.
    ///
    /// # Errors
    /// When memory for the columns cannot be allocated.
    pub fn of_keys(keys: &[u32], pages: Pages) -> Result<Self, AllocationError> {
        let column = || PageBuffer::<u32>::zeroed(keys.len(), pages);
        let mut table =
            Self { keys: PageBuffer::copied(keys, pages)?, integers: [column()?, column()?] };
        for (number, integers) in (1_u32..).zip(&mut table.integers) {
            for (row, integer) in (0_u32..).zip(integers.iter_mut()) {
                *integer = row.wrapping_mul(2).wrapping_add(number);
            }
        }
        Ok(table)
    }

    /// A table of `rows` rows whose keys are drawn from `1..=keys`.
    ///
    /// # Errors
    /// When memory for the columns cannot be allocated.
    ///
    /// # Panics
    /// If `keys` is zero.
    pub fn drawn(
        rows: u32,
        keys: u32,
        random: &mut Random,
        pages: Pages,
    ) -> Result<Self, AllocationError> {
        let keys: Vec<u32> = (0..rows).map(|_| random.below(keys) + 1).collect();
        Self::of_keys(&keys, pages)
    }

    /// The columns of a table of records: the same rows for the row and column comparison (§6.4).
    ///
    /// # Errors
    /// When memory for the columns cannot be allocated.
    pub fn of_records(
        records: &[crate::record::Record],
        pages: Pages,
    ) -> Result<Self, AllocationError> {
        let column = || PageBuffer::<u32>::zeroed(records.len(), pages);
        let mut table = Self { keys: column()?, integers: [column()?, column()?] };
        for (row, record) in records.iter().enumerate() {
            table.keys[row] = record.key;
            for (integers, value) in table.integers.iter_mut().zip(record.payload) {
                integers[row] = value;
            }
        }
        Ok(table)
    }

    /// Rows of the table.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> Columns<'_> {
        let [a, b] = &self.integers;
        Columns { keys: &self.keys, integers: [a, b] }
    }

    /// Bytes of the columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        3 * self.keys.bytes()
    }
}

/// The borrowed columns of a table, all of one length.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Join keys.
    pub keys: &'a [u32],
    /// The columns that the output takes besides.
    pub integers: [&'a [u32]; 2],
}

/// The rows that probe, and in what order.
///
/// Sealed: a helper thread loads the places it names.
pub trait Stream: Copy + sealed::Sealed {
    /// The key of a row where it must be announced before it is read.
    fn input(&self, row: Row, keys: &[u32]) -> Option<Place>;
    /// Which row of the table is the `row`-th to probe.
    fn rid<M: Memory>(&self, row: Row, memory: &mut M) -> u32;
    /// Its key.
    fn key<M: Memory>(&self, row: Row, keys: &[u32], memory: &mut M) -> u32;
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Clustered {}
impl sealed::Sealed for Unclustered<'_> {}

/// Every row of the table, in memory order: the paper's.
#[derive(Debug, Clone, Copy)]
pub struct Clustered;

impl Stream for Clustered {
    #[inline(always)]
    fn input(&self, _: Row, _: &[u32]) -> Option<Place> {
        None
    }
    #[inline(always)]
    fn rid<M: Memory>(&self, row: Row, _: &mut M) -> u32 {
        row
    }
    #[inline(always)]
    fn key<M: Memory>(&self, row: Row, keys: &[u32], memory: &mut M) -> u32 {
        *memory.read_hot(&keys[row as usize])
    }
}

/// Row ids in any order, each dereferenced: what columns pay for random access.
#[derive(Debug, Clone, Copy)]
pub struct Unclustered<'a> {
    /// Positions in the table, in the order in which they probe.
    pub rids: &'a [u32],
    /// Whether a row's key is announced before it is read, as a stage of its own. Zhou et al.
    /// (2005, §5) have none: their main thread reads it when it starts a probe.
    pub row_stage: bool,
}

impl Stream for Unclustered<'_> {
    #[inline(always)]
    fn input(&self, row: Row, keys: &[u32]) -> Option<Place> {
        self.row_stage.then(|| Place::of(&keys[self.rids[row as usize] as usize]))
    }
    #[inline(always)]
    fn rid<M: Memory>(&self, row: Row, memory: &mut M) -> u32 {
        *memory.read_hot(&self.rids[row as usize])
    }
    #[inline(always)]
    fn key<M: Memory>(&self, row: Row, keys: &[u32], memory: &mut M) -> u32 {
        let rid = self.rid(row, memory);
        *memory.read(&keys[rid as usize])
    }
}
