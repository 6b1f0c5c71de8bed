//! The seeds' row store: records of 64 bytes, one cache line each (Zhou et al., §6.2).

use bytemuck::{Pod, Zeroable};
use workahead_machine::pages::{AllocationError, PageBuffer, Pages};

use crate::draws::Draws;
use crate::memory::Memory;
use crate::place::Place;
use crate::walk::Row;

/// A row of a table: a join key, the row's own position, and payload up to one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Record {
    /// Join key.
    pub key: u32,
    /// Position in its table: what a checker needs to know a record again after it was copied.
    pub row: u32,
    /// Everything else the query carries along.
    pub payload: [u32; 14],
}

const _: () = assert!(size_of::<Record>() == 64);

impl Record {
    /// What stands where an outer join found nothing: no record has this `row`.
    pub const NULL: Self = Self { key: 0, row: u32::MAX, payload: [0; 14] };
}

/// A table of `rows` records whose keys are drawn from `1..=keys` (Zhou et al., §6.2: two million
/// records, keys "randomly assigned values in the range from 1 to 2 million").
///
/// # Errors
/// When memory for the table cannot be had.
///
/// # Panics
/// If `keys` is zero.
pub fn drawn_table(
    rows: u32,
    keys: u32,
    draws: &mut Draws,
    pages: Pages,
) -> Result<PageBuffer<Record>, AllocationError> {
    let mut table = PageBuffer::<Record>::zeroed(rows as usize, pages)?;
    for (row, record) in (0..).zip(table.iter_mut()) {
        let key = draws.below(keys) + 1;
        *record = Record { key, row, payload: [row ^ key; 14] };
    }
    Ok(table)
}

/// A joined row: 128 bytes, as in Zhou et al., §6.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Joined {
    /// From the probe (outer, left) side.
    pub probe: Record,
    /// From the build (inner, right) side.
    pub build: Record,
}

const _: () = assert!(size_of::<Joined>() == 128);

/// The rows that probe, and in what order (Zhou et al., §5): the running example is a stream of row
/// ids into a table of records.
pub trait Probes<'a>: Copy {
    /// How many rows probe.
    fn len(&self) -> usize;

    /// Whether no row probes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of a row, where it must be announced before it is read.
    fn input(&self, row: Row) -> Option<Place>;

    /// Reads the record of a row.
    fn read<M: Memory>(&self, row: Row, memory: &mut M) -> &'a Record;
}

/// The records in memory order: the hardware prefetcher is always there first.
#[derive(Debug, Clone, Copy)]
pub struct Clustered<'a>(pub &'a [Record]);

impl<'a> Probes<'a> for Clustered<'a> {
    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn input(&self, _: Row) -> Option<Place> {
        None
    }
    #[inline(always)]
    fn read<M: Memory>(&self, row: Row, memory: &mut M) -> &'a Record {
        memory.read_hot(&self.0[row as usize])
    }
}

/// Row ids in random order, each dereferenced.
#[derive(Debug, Clone, Copy)]
pub struct Unclustered<'a> {
    /// The table.
    pub records: &'a [Record],
    /// Positions in it, in the order in which they probe.
    pub rids: &'a [u32],
}

impl<'a> Probes<'a> for Unclustered<'a> {
    fn len(&self) -> usize {
        self.rids.len()
    }
    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        Some(Place::of(&self.records[self.rids[row as usize] as usize]))
    }
    #[inline(always)]
    fn read<M: Memory>(&self, row: Row, memory: &mut M) -> &'a Record {
        let rid = *memory.read_hot(&self.rids[row as usize]);
        memory.read(&self.records[rid as usize])
    }
}
