//! The papers' row store: records of 64 bytes, one cache line each (Zhou et al., §6.2), or of half
//! a line to four lines, since the paper varied the size too ("similar").

mod layout;

use workahead_machine::pages::{AllocationError, PageBuffer, Pages};

use crate::memory::Memory;
use crate::place::Place;
use crate::random::Random;
use crate::walk::Row;

pub use layout::{HalfLine, JoinedRecord, Line, OneLine, Payload, Record};

/// A table of `rows` records whose keys are drawn from `1..=keys` (Zhou et al., §6.2: two million
/// records, keys "randomly assigned values in the range from 1 to 2 million").
///
/// # Errors
/// When memory for the table cannot be allocated.
///
/// # Panics
/// If `keys` is zero.
pub fn drawn_table(
    rows: u32,
    keys: u32,
    random: &mut Random,
    pages: Pages,
) -> Result<PageBuffer<Record>, AllocationError> {
    let mut table = PageBuffer::<Record>::zeroed(rows as usize, pages)?;
    for (row, record) in (0..).zip(table.iter_mut()) {
        let key = random.below(keys) + 1;
        *record = Record::new(key, row, row ^ key);
    }
    Ok(table)
}

/// The rows that probe, and in what order (Zhou et al., §5): the running example is a stream of row
/// ids into a table of records.
pub trait Probes<'a>: Copy {
    /// The payload of its records.
    type Payload: Payload;

    /// How many rows probe.
    fn len(&self) -> usize;

    /// Whether no row probes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of a row, where it must be announced before it is read.
    fn input(&self, row: Row) -> Option<Place>;

    /// Reads the record of a row.
    fn read<M: Memory>(&self, row: Row, memory: &mut M) -> &'a Record<Self::Payload>;
}

/// The records in memory order: the hardware prefetcher is always there first.
#[derive(Debug, Clone, Copy)]
pub struct Clustered<'a, P: Payload = OneLine>(pub &'a [Record<P>]);

impl<'a, P: Payload> Probes<'a> for Clustered<'a, P> {
    type Payload = P;

    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn input(&self, _: Row) -> Option<Place> {
        None
    }
    #[inline(always)]
    fn read<M: Memory>(&self, row: Row, memory: &mut M) -> &'a Record<P> {
        memory.read_hot(&self.0[row as usize])
    }
}

/// Row ids in random order, each dereferenced.
#[derive(Debug, Clone, Copy)]
pub struct Unclustered<'a, P: Payload = OneLine> {
    /// The table.
    pub records: &'a [Record<P>],
    /// Positions in it, in the order in which they probe.
    pub rids: &'a [u32],
    /// Whether a row's record is announced before it is read, as a stage of its own. Zhou et al.
    /// (2005, §5) have none: their main thread reads it when it starts a probe.
    pub row_stage: bool,
}

impl<'a, P: Payload> Probes<'a> for Unclustered<'a, P> {
    type Payload = P;

    fn len(&self) -> usize {
        self.rids.len()
    }
    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        self.row_stage.then(|| Place::of(&self.records[self.rids[row as usize] as usize]))
    }
    #[inline(always)]
    fn read<M: Memory>(&self, row: Row, memory: &mut M) -> &'a Record<P> {
        let rid = *memory.read_hot(&self.rids[row as usize]);
        memory.read(&self.records[rid as usize])
    }
}
