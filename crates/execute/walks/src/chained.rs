//! The paper's hash join: a chained table over 64-byte rows (Zhou et al., VLDB 2005, §5.2).
//!
//! ```text
//! heads   ┌───┬───┬───┬───┐     one u32 a bucket
//!         └───┴─┬─┴───┴───┘
//!               ▼
//! cells       [hash code, build row, next] ──► [hash code, build row, next]
//!                          │
//!                          ▼
//! build rows            64-byte record ──► 128-byte output   (or records of another size)
//! ```
//!
//! A probe takes the four phases of the paper: hash the key and ask for the bucket; visit the
//! bucket and ask for its first cell; compare hash codes in the cell and ask for the build row;
//! compare keys and emit. Phases 3 and 4 repeat to the end of the list.

#[cfg(test)]
mod tests;

use bytemuck::{Pod, Zeroable};
use workahead_machine::pages::{AllocationError, PageBuffer, Pages};

use crate::hash::hash_u32;
pub use crate::materialise::Materialise;
use crate::memory::{Branch, Memory};
use crate::place::Place;
use crate::record::{Clustered, OneLine, Payload, Probes, Record, Unclustered};
use crate::walk::{Row, Sink, Walk};

/// End of a list.
const NIL: u32 = u32::MAX;

/// A build row in a bucket's list.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Cell {
    /// Hash of the build key: a filter for the key comparison.
    pub hash: u32,
    /// Position of the build row.
    pub row: u32,
    /// Next cell of the bucket, `u32::MAX` at the end of the list.
    pub next: u32,
    /// To 16 bytes, so that no cell straddles two lines.
    _pad: u32,
}

const _: () = assert!(64 % size_of::<Cell>() == 0);

/// Bucket heads and cells; the rows stay in the build table.
pub struct Chains {
    heads: PageBuffer<u32>,
    cells: PageBuffer<Cell>,
    shift: u32,
}

impl Chains {
    /// Chains the keys of a build side; row `i` has `keys[i]`.
    ///
    /// Buckets are the power of two from 2 to 4 times the rows: lists stay near one cell.
    ///
    /// # Errors
    /// When memory for the table cannot be allocated.
    ///
    /// # Panics
    /// For `u32::MAX` rows or more.
    pub fn build(
        keys: impl ExactSizeIterator<Item = u32>,
        pages: Pages,
    ) -> Result<Self, AllocationError> {
        assert!(keys.len() < NIL as usize, "rows are counted in 32 bits");
        let buckets = (keys.len().max(1) * 2).next_power_of_two();
        let shift = 32 - buckets.trailing_zeros().min(32);
        let mut heads = PageBuffer::zeroed(buckets, pages)?;
        heads.fill(NIL);
        let mut cells = PageBuffer::zeroed(keys.len(), pages)?;
        for (row, key) in keys.enumerate() {
            let hash = hash_u32(key);
            let head: &mut u32 = &mut heads[(hash >> shift) as usize];
            cells[row] = Cell { hash, row: row as u32, next: *head, _pad: 0 };
            *head = row as u32;
        }
        Ok(Self { heads, cells, shift })
    }

    /// Bytes of heads and cells.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (heads, cells) = self.parts_bytes();
        heads + cells
    }

    /// Bytes of heads, and of cells.
    #[must_use]
    pub fn parts_bytes(&self) -> (usize, usize) {
        (self.heads.bytes(), self.cells.bytes())
    }
}

/// The borrowed parts of [`Chains`], side by side so that a walk keeps them in registers.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    heads: &'a [u32],
    cells: &'a [Cell],
    shift: u32,
}

impl<'a> Lists<'a> {
    /// Borrows a table.
    #[must_use]
    pub fn of(chains: &'a Chains) -> Self {
        Self { heads: &chains.heads, cells: &chains.cells, shift: chains.shift }
    }

    /// The head of a hash's bucket: the handle of its first cell.
    #[inline(always)]
    #[must_use]
    pub fn head(&self, hash: u32) -> &'a u32 {
        &self.heads[(hash >> self.shift) as usize]
    }

    /// A cell by its handle; `None` at the end of a list.
    #[inline(always)]
    #[must_use]
    pub fn cell(&self, handle: u32) -> Option<&'a Cell> {
        // `NIL` is out of bounds by construction: the bounds check is the end-of-list check.
        self.cells.get(handle as usize)
    }
}

/// The probe side of the paper's hash join.
#[derive(Clone, Copy)]
pub struct HashJoin<'a, P: Probes<'a>> {
    lists: Lists<'a>,
    build: &'a [Record<P::Payload>],
    probes: P,
}

impl<'a, P: Probes<'a>> HashJoin<'a, P> {
    /// Probes `chains`, built over the keys of `build`, with `probes`.
    #[must_use]
    pub fn new(chains: &'a Chains, build: &'a [Record<P::Payload>], probes: P) -> Self {
        Self { lists: Lists::of(chains), build, probes }
    }
}

/// Which phase the next step is, and the place it visits: found, and checked to lie in the table,
/// by the step that asked for it.
#[derive(Debug, Clone, Copy)]
enum Phase<'a, P: Payload> {
    /// Phase 2: the head of a bucket.
    Bucket(&'a u32),
    /// Phase 3: a cell.
    Cell(&'a Cell),
    /// Phase 4: a build row, with the rest of the list still to come.
    Tuple { build: &'a Record<P>, next: u32 },
}

/// A probe between two phases: the paper's slot state.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a, P: Payload = OneLine> {
    probe: &'a Record<P>,
    row: Row,
    /// The paper's hash code, kept so that phase 3 does not go back to the probe row.
    hash: u32,
    phase: Phase<'a, P>,
}

impl<'a, P: Probes<'a>> Walk for HashJoin<'a, P> {
    type Cursor = Cursor<'a, P::Payload>;
    type Hit = (&'a Record<P::Payload>, &'a Record<P::Payload>);
    type Asks = <P::Payload as Payload>::Asks;

    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        self.probes.input(row)
    }

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Self::Cursor, Self::Asks) {
        let probe = self.probes.read(row, memory);
        let hash = hash_u32(probe.key);
        let head = self.lists.head(hash);
        (Cursor { probe, row, hash, phase: Phase::Bucket(head) }, Place::of(head).into())
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Self::Hit>>(
        &mut self,
        cursor: &mut Self::Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Self::Asks> {
        let next = match cursor.phase {
            Phase::Bucket(head) => *memory.read(head),
            Phase::Cell(cell) => {
                let cell = memory.read(cell);
                if memory.decided(Branch::SameHash, cell.hash == cursor.hash) {
                    let build = &self.build[cell.row as usize];
                    cursor.phase = Phase::Tuple { build, next: cell.next };
                    return Some(Place::of(build).into());
                }
                cell.next
            }
            Phase::Tuple { build, next } => {
                let build = memory.read(build);
                // The probe row is this row's own input, read before and still near.
                let probe = memory.read(cursor.probe);
                if memory.decided(Branch::SameKey, build.key == probe.key) {
                    sink.emit(cursor.row, (probe, build));
                }
                next
            }
        };
        let cell = self.lists.cell(next);
        memory.decided(Branch::GoesOn, cell.is_some());
        let cell = cell?;
        cursor.phase = Phase::Cell(cell);
        Some(Place::of(cell).into())
    }
}

// SAFETY: heads, cells, build and probe rows are borrowed, and immutable, for `'a`.
unsafe impl<'a, P: Payload> crate::work_ahead::Preloadable for HashJoin<'a, Clustered<'a, P>> {}
// SAFETY: as above.
unsafe impl<'a, P: Payload> crate::work_ahead::Preloadable for HashJoin<'a, Unclustered<'a, P>> {}
