//! Memory layout of a server.
//!
//! ```text
//!   shared   T1 pages │ T2 pages │ index pages │ RESULT │ WAL │ locks, pool     all processes'
//!   private  sort area, bitmap, pin counts, stack                              one process's each
//! ```
//!
//! A page is PostgreSQL 8.1's: a header, line pointers from the front, rows from the end.

use crate::drivers::space::{PAGE_BYTES, Space};

/// Bytes of a page.
pub(super) const PAGE: u64 = 8192;
const PAGE_HEADER: u64 = 20;
const LINE_POINTER: u64 = 4;
/// Transaction numbers, place and flags before a row's columns.
pub(super) const ROW_HEADER: u64 = 28;
/// Special space at the end of an index page.
const INDEX_SPECIAL: u64 = 16;
/// Place, flags and a key of four bytes.
const INDEX_ENTRY: u64 = 12;
/// A file in the buffer pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    base: u64,
    /// The number of its first page's buffer.
    first: u64,
}

/// A page of a file, and its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) address: u64,
    pub(super) buffer: u64,
}

impl File {
    pub(super) fn new(memory: &mut Space, buffers: &mut u64, pages: u64) -> Self {
        let file = Self { base: memory.reserve(pages * PAGE), first: *buffers };
        *buffers += pages;
        file
    }

    pub(super) fn page(&self, number: u64) -> Page {
        Page { address: self.base + number * PAGE, buffer: self.first + number }
    }
}

/// A table of rows of `row_bytes` bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heap {
    pub(super) file: File,
    row_bytes: u64,
}

/// Addresses on the path to a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowAddress {
    pub(super) page: Page,
    pub(super) pointer: u64,
    pub(super) header: u64,
}

impl Heap {
    pub(super) fn new(memory: &mut Space, buffers: &mut u64, rows: u64, columns: u64) -> Self {
        let pages = Self::pages(rows, columns);
        Self { file: File::new(memory, buffers, pages), row_bytes: Self::row_bytes(columns) }
    }

    /// Pages of a table.
    pub(super) fn pages(rows: u64, columns: u64) -> u64 {
        rows.div_ceil(Self::of_page(Self::row_bytes(columns))).max(1)
    }

    const fn row_bytes(columns: u64) -> u64 {
        (ROW_HEADER + columns).div_ceil(4) * 4
    }

    const fn of_page(row_bytes: u64) -> u64 {
        (PAGE - PAGE_HEADER) / (row_bytes + LINE_POINTER)
    }

    /// Number of the page of a row.
    pub(super) fn page_of(&self, row: u64) -> u64 {
        row / Self::of_page(self.row_bytes)
    }

    pub(super) fn row(&self, row: u64) -> RowAddress {
        let (number, slot) = (self.page_of(row), row % Self::of_page(self.row_bytes));
        let page = self.file.page(number);
        RowAddress {
            page,
            pointer: page.address + PAGE_HEADER + slot * LINE_POINTER,
            header: page.address + PAGE - (slot + 1) * self.row_bytes,
        }
    }
}

/// Entries of an index page that is `percent` full.
pub(super) const fn entries_of_page(percent: u64) -> u64 {
    (PAGE - PAGE_HEADER - INDEX_SPECIAL) * percent / 100 / (INDEX_ENTRY + LINE_POINTER)
}

/// Addresses of the line pointer and the key of an index entry.
pub(super) const fn index_entry(page: Page, slot: u64) -> (u64, u64) {
    let pointer = page.address + PAGE_HEADER + slot * LINE_POINTER;
    (pointer, page.address + PAGE - INDEX_SPECIAL - (slot + 1) * INDEX_ENTRY)
}

/// The buffer manager's data of each buffer, and the shared locks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pool {
    descriptors: u64,
    content_locks: u64,
    buckets: u64,
    entries: u64,
    bucket_count: u64,
    /// The lock of the buffer table: a single one until PostgreSQL 8.2.
    pub(super) mapping_lock: u64,
    /// The locks of the log, the lock manager, and the list of transactions.
    pub(super) log_lock: u64,
    pub(super) manager_lock: u64,
    pub(super) transactions_lock: u64,
    /// The data under the latter two.
    pub(super) lock_table: u64,
    pub(super) transactions: u64,
}

impl Pool {
    const DESCRIPTOR: u64 = 64;
    /// Two locks of a buffer, of 32 bytes each.
    const LOCKS: u64 = 64;
    const ENTRY: u64 = 32;

    pub(super) fn new(memory: &mut Space, buffers: u64) -> Self {
        let bucket_count = buffers.next_power_of_two();
        let locks = memory.reserve(4 * 32);
        Self {
            descriptors: memory.reserve(buffers * Self::DESCRIPTOR),
            content_locks: memory.reserve(buffers * Self::LOCKS),
            buckets: memory.reserve(bucket_count * 4),
            entries: memory.reserve(buffers * Self::ENTRY),
            bucket_count,
            mapping_lock: locks,
            log_lock: locks + 32,
            manager_lock: locks + 64,
            transactions_lock: locks + 96,
            lock_table: memory.reserve(PAGE_BYTES),
            transactions: memory.reserve(PAGE_BYTES),
        }
    }

    pub(super) const fn descriptor(&self, buffer: u64) -> u64 {
        self.descriptors + buffer * Self::DESCRIPTOR
    }

    pub(super) const fn content_lock(&self, buffer: u64) -> u64 {
        self.content_locks + buffer * Self::LOCKS
    }

    /// The bucket of a buffer's page, by a hash.
    pub(super) const fn bucket(&self, buffer: u64) -> u64 {
        let hash = buffer.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        self.buckets + hash % self.bucket_count * 4
    }

    pub(super) const fn entry(&self, buffer: u64) -> u64 {
        self.entries + buffer * Self::ENTRY
    }
}
