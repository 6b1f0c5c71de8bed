//! The tables, their indexes, and their addresses.

use super::layout::{Heap, Pool};
use super::tree::Tree;
use crate::drivers::space::Space;

/// Positions shared by all processes: the next row of `result` and the end of the log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AppendPositions {
    pub(super) results: u64,
    pub(super) log: u64,
}

/// Size of the circular log buffer (PostgreSQL 8.1: 8 pages).
const LOG_BYTES: u64 = 8 * 8192;

/// Rows of T1 and T2 in memory.
#[derive(Debug)]
pub struct Database {
    /// a1, a2, a3 of T1's rows in the order of the file.
    pub(super) rows: Vec<[u32; 3]>,
    /// The rows of T1 in the order of a2.
    pub(super) by_a2: Vec<u32>,
    pub(super) t1: Heap,
    pub(super) t2: Heap,
    pub(super) index_a2: Tree,
    pub(super) index_t2: Tree,
    result: Heap,
    log: u64,
    pub(super) pool: Pool,
    privates: Vec<ProcessMemory>,
}

/// Addresses of a process's own memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessMemory {
    /// Stack and state of operators.
    pub(super) own: u64,
    /// Catalogue entries that a planner looks up.
    pub(super) catalogue: u64,
    /// Its pin counts of all buffers.
    pub(super) pins: u64,
    /// The rows of a sort, and the pointers to them.
    pub(super) sort_rows: u64,
    pub(super) sort_slots: u64,
    /// Pages of a bitmap.
    pub(super) bitmap: u64,
    /// A work-ahead set.
    pub(super) set: u64,
}

impl ProcessMemory {
    /// A default: `pg_class`, `pg_attribute`, `pg_operator` of a few tables.
    pub(super) const CATALOGUE_BYTES: u64 = 64 << 10;
    const OWN_BYTES: u64 = 16 << 10;
    /// A default: a row of one column as 8.1 keeps it for a sort, 56 bytes in a chunk of 64 with a
    /// header of 8.
    pub(super) const SORT_ROW: u64 = 72;
    /// A page of a bitmap: its number and a bit for each row.
    pub(super) const BITMAP_PAGE: u64 = 48;

    fn new(memory: &mut Space, buffers: u64, rows: u64) -> Self {
        Self {
            own: memory.reserve(Self::OWN_BYTES),
            catalogue: memory.reserve(Self::CATALOGUE_BYTES),
            pins: memory.reserve(buffers * 4),
            sort_rows: memory.reserve(rows * Self::SORT_ROW),
            sort_slots: memory.reserve(rows * 4),
            bitmap: memory.reserve(rows * Self::BITMAP_PAGE),
            set: memory.reserve(SET_BYTES),
        }
    }
}

/// Bytes of a1, a2, a3 and the filler of a row, as in `workahead-workloads`.
const COLUMNS: u64 = 100;
/// A row of `result`: one number.
const RESULT_COLUMNS: u64 = 8;

impl Database {
    /// Servers for `clients` clients, each with its own copy of T1's rows `a1, a2, a3` and of T2
    /// with a1 = 1, 2, ….
    ///
    /// # Panics
    /// If T1 or T2 has no row, or there is no client.
    #[must_use]
    pub fn servers(rows: &[[u32; 3]], t2_rows: u32, clients: usize, servers: usize) -> Vec<Self> {
        assert!(!rows.is_empty() && t2_rows > 0 && clients > 0, "nobody asks for nothing");
        let mut memory = Space::new();
        (0..servers).map(|_| Self::new(&mut memory, rows.to_vec(), t2_rows, clients)).collect()
    }

    /// Bytes of this process for the tables of a server: three numbers of each row of T1, its place
    /// by a2 and its key, and the keys of T2.
    pub(super) fn bytes(t1_rows: u64, t2_rows: u64) -> u64 {
        const NUMBER: u64 = size_of::<u32>() as u64;
        (t1_rows * (3 + 1 + 1) + t2_rows) * NUMBER
    }

    /// Pages of T1.
    pub(super) fn t1_pages(t1_rows: u64) -> u64 {
        Heap::pages(t1_rows, COLUMNS)
    }

    fn new(memory: &mut Space, rows: Vec<[u32; 3]>, t2_rows: u32, clients: usize) -> Self {
        let mut buffers = 0;
        let count = rows.len() as u64;
        let t1 = Heap::new(memory, &mut buffers, count, COLUMNS);
        let t2 = Heap::new(memory, &mut buffers, t2_rows.into(), COLUMNS);
        let mut by_a2: Vec<u32> = (0..rows.len() as u32).collect();
        by_a2.sort_by_key(|row| (rows[*row as usize][1], *row));
        let keys = by_a2.iter().map(|row| rows[*row as usize][1]).collect();
        let index_a2 = Tree::new(memory, &mut buffers, keys);
        let index_t2 = Tree::new(memory, &mut buffers, (1..=t2_rows).collect());
        // Further rows start at its first page again.
        let result = Heap::new(memory, &mut buffers, RESULT_ROWS, RESULT_COLUMNS);
        let log = memory.reserve(LOG_BYTES);
        let pool = Pool::new(memory, buffers);
        let privates = (0..clients).map(|_| ProcessMemory::new(memory, buffers, count)).collect();
        Self { rows, by_a2, t1, t2, index_a2, index_t2, result, log, pool, privates }
    }

    /// A client's own memory.
    pub(super) fn private(&self, client: usize) -> ProcessMemory {
        self.privates[client]
    }

    /// The number of clients that it has room for.
    pub(super) fn clients(&self) -> usize {
        self.privates.len()
    }

    /// Address of a row of `result`.
    pub(super) fn result_row(&self, number: u64) -> super::layout::RowAddress {
        self.result.row(number % RESULT_ROWS)
    }

    /// Address of a position in the log.
    pub(super) const fn log_at(&self, place: u64) -> u64 {
        self.log + place % (LOG_BYTES - 256)
    }
}

/// Bytes of a work-ahead set: as many keys as there may be, of four bytes.
const SET_BYTES: u64 = 4 * super::ahead::ENTRIES_MAX as u64;

/// Capacity of `result` in rows.
const RESULT_ROWS: u64 = 100_000;
