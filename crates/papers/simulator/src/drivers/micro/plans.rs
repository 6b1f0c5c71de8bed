//! The plans of Hassanein et al. 2008 (figures 1 and 2), step by step.
//!
//! ```text
//!   µTPC-C   index scan ─► bitmap ─► rows of its pages ─► average ─► result
//!   µSS      file scan ─► sort ─► no duplicates ─► result
//!   µNJ      file scan ─► an index scan of T2 for each row ─► average ─► result
//! ```

use std::collections::VecDeque;

use super::ahead::ENTRIES_MAX;
use super::database::ProcessMemory;
use super::footprint::Call;
use super::heap::{Rows, merge_sort};
use super::layout::Page;
use super::process::{Process, follow, load, store};
use super::tree::Node;
use super::{Query, QueryAnswer};
use crate::op::Op;

/// A plan in execution.
pub(super) trait Plan {
    /// Executes a step: a page of an index, a row. False at the end.
    fn step(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer) -> bool;

    /// Entries of its work-ahead set; 0 for none.
    fn set_size(&self) -> usize {
        0
    }
}

/// The plan of a query over the rows with a2 between two bounds, both exclusive.
pub(super) fn plan(query: Query, range: (u32, u32), set_size: usize) -> Box<dyn Plan> {
    let scan = FileScan { row: 0, pinned: None, range };
    match query {
        Query::Utpcc => Box::new(BitmapScan { range, stage: Stage::Descend }),
        Query::Uss => Box::new(SortDistinct { scan, rows: Rows::default(), last: None }),
        Query::Unj => {
            let (set_size, waiting) = (set_size.min(ENTRIES_MAX), VecDeque::new());
            Box::new(NestedLoop { scan, pinned: None, set_size, waiting, posted: 0 })
        }
    }
}

/// Adds a value to an average.
fn advance(process: &mut Process<'_>, found: &mut QueryAnswer, a3: u32) {
    process.call(Call::Advance, &[]);
    found.sum += u64::from(a3);
    found.rows += 1;
}

/// State of a bitmap scan.
enum Stage {
    /// Before the index.
    Descend,
    /// At an entry of a leaf, with the rows so far.
    Leaf(Node, usize, Vec<u32>),
    /// At one of the rows, in the order of the file.
    Rows(Vec<u32>, usize),
    /// The average is stored.
    Done,
}

struct BitmapScan {
    range: (u32, u32),
    stage: Stage,
}

impl Plan for BitmapScan {
    fn step(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer) -> bool {
        let database = process.database;
        self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Descend => {
                let (leaf, slot) = process.search(&database.index_a2, self.range.0 + 1);
                Stage::Leaf(leaf, slot, Vec::new())
            }
            Stage::Leaf(leaf, slot, rows) => self.leaf(process, (leaf, slot), rows),
            Stage::Rows(rows, at) => match at < rows.len() {
                true => Self::page(process, found, rows, at),
                false => {
                    process.insert();
                    Stage::Done
                }
            },
            Stage::Done => return false,
        };
        true
    }
}

impl BitmapScan {
    /// Collects the entries of a leaf within the bounds; then the next leaf, or the rows.
    fn leaf(
        &self,
        process: &mut Process<'_>,
        (leaf, slot): (Node, usize),
        mut rows: Vec<u32>,
    ) -> Stage {
        let database = process.database;
        let tree = &database.index_a2;
        let page = tree.page(leaf);
        process.call(Call::ReadEntries, &[load(page.address, 20)]);
        for slot in slot..tree.len(leaf) {
            let (pointer, key) = super::layout::index_entry(page, slot as u64);
            process.call(Call::CheckKey, &[load(pointer, 4), follow(key, 12)]);
            if tree.key(leaf, slot) >= self.range.1 {
                process.leave(page);
                return Self::sorted(process, rows);
            }
            let row = database.by_a2[tree.rank(leaf, slot)];
            let bits = Self::bits(process, database.t1.page_of(row.into()) as u32);
            process.call(Call::AddToBitmap, &[load(bits, 8), store(bits + 8, 4)]);
            rows.push(row);
        }
        process.leave(page);
        let Some(next) = tree.right(leaf) else { return Self::sorted(process, rows) };
        let page = tree.page(next);
        process.read_buffer(page);
        process.lock_page(page);
        Stage::Leaf(next, 0, rows)
    }

    /// Address of the bits of a page: in a hash table.
    fn bits(process: &Process<'_>, page: u32) -> u64 {
        let slots = process.database.rows.len() as u64 / 64 + 1;
        process.private.bitmap + u64::from(page) * 40_503 % slots * ProcessMemory::BITMAP_PAGE
    }

    /// Rows in the order of their pages.
    fn sorted(process: &mut Process<'_>, mut rows: Vec<u32>) -> Stage {
        let page = |row: u32| process.database.t1.page_of(row.into()) as u32;
        let mut pages: Vec<u32> = rows.iter().map(|row| page(*row)).collect();
        rows.sort_unstable();
        pages.sort_unstable();
        pages.dedup();
        // In the order of the hash table.
        pages.sort_by_key(|page| Self::bits(process, *page));
        let mut pairs = Vec::new();
        merge_sort(&mut pages, &mut |one, two| pairs.push([one, two]));
        for pair in pairs {
            let [one, two] = pair.map(|page| load(Self::bits(process, page), 8));
            process.call(Call::SortBitmap, &[]);
            process.call(Call::CompareBitmap, &[one, two]);
        }
        Stage::Rows(rows, 0)
    }

    /// Fetches the rows of a page.
    fn page(
        process: &mut Process<'_>,
        found: &mut QueryAnswer,
        rows: Vec<u32>,
        at: usize,
    ) -> Stage {
        let database = process.database;
        let number = database.t1.page_of(rows[at].into());
        let page = database.t1.file.page(number);
        let bits = Self::bits(process, number as u32);
        process.call(Call::NextOfBitmap, &[load(bits, 16)]);
        process.read_buffer(page);
        let mut next = at;
        while let Some(row) = rows.get(next).copied()
            && database.t1.page_of(row.into()) == number
        {
            let at = database.t1.row(row.into());
            process.call(Call::BitmapRow, &[]);
            process.fetch_row(Call::Fetch, at);
            process.deform(at);
            advance(process, found, database.rows[row as usize][2]);
            next += 1;
        }
        process.release_buffer(page);
        Stage::Rows(rows, next)
    }
}

/// A scan of all rows of T1.
struct FileScan {
    row: usize,
    pinned: Option<Page>,
    range: (u32, u32),
}

/// Result of a step of a scan.
enum ScanStep {
    /// A row within the bounds: its a1 and a3.
    Row(u32, u32),
    /// A row outside the bounds.
    Other,
    /// The end.
    End,
}

impl FileScan {
    fn step(&mut self, process: &mut Process<'_>) -> ScanStep {
        let database = process.database;
        let Some([a1, a2, a3]) = database.rows.get(self.row).copied() else {
            if let Some(page) = self.pinned.take() {
                process.release_buffer(page);
            }
            return ScanStep::End;
        };
        let row = database.t1.row(self.row as u64);
        self.row += 1;
        if self.pinned != Some(row.page) {
            if let Some(before) = self.pinned.replace(row.page) {
                process.release_buffer(before);
            }
            process.read_buffer(row.page);
        }
        process.call(Call::Scan, &[]);
        process.fetch_row(Call::NextRow, row);
        process.deform(row);
        match process.qualify(a2, self.range) {
            true => ScanStep::Row(a1, a3),
            false => ScanStep::Other,
        }
    }
}

struct SortDistinct {
    scan: FileScan,
    rows: Rows,
    /// The value stored last, once the scan is done.
    last: Option<u32>,
}

impl Plan for SortDistinct {
    fn step(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer) -> bool {
        match self.scan.step(process) {
            ScanStep::Row(_, a3) => self.put(process, found, a3),
            ScanStep::Other => {}
            ScanStep::End => return self.take(process, found),
        }
        true
    }
}

impl SortDistinct {
    /// Adds a row to the sort.
    fn put(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer, a3: u32) {
        let number = found.rows as u32;
        found.rows += 1;
        let at = process.private.sort_rows + u64::from(number) * ProcessMemory::SORT_ROW;
        process.call(Call::Allocate, &[]);
        process.call(Call::IntoSort, &[store(at, 60)]);
        let heap = &mut self.rows;
        heap.insert((a3, number), |slot, rows| compare(process, slot, rows));
    }

    /// Removes the next row, and stores its value unless it equals the last.
    fn take(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer) -> bool {
        let Some((a3, number)) = self.rows.take(|slot, rows| compare(process, slot, rows)) else {
            return false;
        };
        let at = process.private.sort_rows + u64::from(number) * ProcessMemory::SORT_ROW;
        process.call(Call::OutOfSort, &[load(at, 16)]);
        process.call(Call::Distinct, &[load(at + 56, 4)]);
        if self.last.replace(a3) != Some(a3) {
            found.distinct.push(a3);
            process.insert();
        }
        true
    }
}

/// Compares two rows of a sort: one of them is found by its slot in the heap.
fn compare(process: &mut Process<'_>, slot: usize, rows: [u32; 2]) {
    let at = |row: u32| process.private.sort_rows + u64::from(row) * ProcessMemory::SORT_ROW + 56;
    let pointer = process.private.sort_slots + slot as u64 * 4;
    let [one, two] = rows.map(at);
    let data: [Op; 2] = [load(one, 4), follow(two, 4)];
    process.call(Call::SiftUp, &[load(pointer, 4), store(pointer, 4)]);
    process.call(Call::CompareRows, &data);
    process.call(Call::Compare, &[]);
}

struct NestedLoop {
    scan: FileScan,
    /// The page of T2 of the previous row.
    pinned: Option<Page>,
    /// Entries of the work-ahead set.
    set_size: usize,
    /// Rows whose keys are in the set: a1 and a3.
    waiting: VecDeque<(u32, u32)>,
    /// Number of keys posted so far.
    posted: usize,
}

impl Plan for NestedLoop {
    fn step(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer) -> bool {
        match self.scan.step(process) {
            ScanStep::Row(a1, a3) => self.meant(process, found, (a1, a3)),
            ScanStep::Other => {}
            ScanStep::End if self.scan.row == usize::MAX => return false,
            ScanStep::End => match self.waiting.pop_front() {
                Some(row) => self.probe(process, found, row),
                None => {
                    self.scan.row = usize::MAX;
                    if let Some(page) = self.pinned.take() {
                        process.release_buffer(page);
                    }
                    process.insert();
                }
            },
        }
        true
    }

    fn set_size(&self) -> usize {
        self.set_size
    }
}

impl NestedLoop {
    /// Probes a row at once, or once its key has been in a full set.
    fn meant(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer, row: (u32, u32)) {
        if self.set_size == 0 {
            return self.probe(process, found, row);
        }
        process.post(row.0, self.posted);
        self.posted += 1;
        self.waiting.push_back(row);
        if self.waiting.len() > self.set_size
            && let Some(row) = self.waiting.pop_front()
        {
            process.probed(self.posted - self.set_size);
            self.probe(process, found, row);
        }
    }

    fn probe(&mut self, process: &mut Process<'_>, found: &mut QueryAnswer, (a1, a3): (u32, u32)) {
        let database = process.database;
        let tree = &database.index_t2;
        process.call(Call::Join, &[]);
        process.call(Call::Rescan, &[]);
        let (leaf, mut slot) = process.search(tree, a1);
        let page = tree.page(leaf);
        process.call(Call::ReadEntries, &[load(page.address, 20)]);
        let mut matched = Vec::new();
        while slot < tree.len(leaf) {
            let (pointer, key) = super::layout::index_entry(page, slot as u64);
            process.call(Call::CheckKey, &[load(pointer, 4), follow(key, 12)]);
            if tree.key(leaf, slot) != a1 {
                break;
            }
            matched.push(tree.rank(leaf, slot));
            slot += 1;
        }
        process.leave(page);
        for inner in matched {
            let row = database.t2.row(inner as u64);
            process.call(Call::NextOfIndex, &[]);
            if self.pinned != Some(row.page) {
                if let Some(before) = self.pinned.replace(row.page) {
                    process.release_buffer(before);
                }
                process.read_buffer(row.page);
            }
            process.fetch_row(Call::Fetch, row);
            advance(process, found, a3);
        }
    }
}
