//! A server process and its calls.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::ahead::WorkAheadSet;
use super::database::{AppendPositions, Database, ProcessMemory};
use super::footprint::Call;
use super::layout::{Page, ROW_HEADER, RowAddress, index_entry};
use super::tree::{Node, Tree};
use crate::drivers::code::{Execution, Footprint};
use crate::op::{Dependence, Op};

/// A read whose address is known.
pub(super) const fn load(address: u64, bytes: u16) -> Op {
    Op::Load { address, bytes, after: Dependence::None }
}

/// A read through the pointer loaded last.
pub(super) const fn follow(address: u64, bytes: u16) -> Op {
    Op::Load { address, bytes, after: Dependence::Load }
}

pub(super) const fn store(address: u64, bytes: u16) -> Op {
    Op::Store { address, bytes }
}

/// A process.
pub(super) struct Process<'d> {
    pub(super) database: &'d Database,
    pub(super) private: ProcessMemory,
    execution: Execution<'static>,
    append: Rc<RefCell<AppendPositions>>,
    /// Its next operations.
    pub(super) ops: Vec<Op>,
    /// The work-ahead set, shared with a helper.
    set: Option<Rc<RefCell<WorkAheadSet>>>,
    /// Keys to be posted, and after how many of `ops`.
    posts: VecDeque<(usize, u32)>,
}

impl<'d> Process<'d> {
    pub(super) fn new(
        database: &'d Database,
        client: usize,
        footprint: &'static Footprint,
        append: Rc<RefCell<AppendPositions>>,
        seed: u64,
    ) -> Self {
        let private = database.private(client);
        let execution = Execution::new(footprint, private.own, seed);
        Self {
            database,
            private,
            execution,
            append,
            ops: Vec::new(),
            set: None,
            posts: VecDeque::new(),
        }
    }

    /// Allocates a work-ahead set of `size` entries.
    pub(super) fn keep_set(&mut self, size: usize) -> Rc<RefCell<WorkAheadSet>> {
        let set = Rc::new(RefCell::new(WorkAheadSet::new(self.private.set, size)));
        self.set = Some(Rc::clone(&set));
        set
    }

    /// Posts a key to the set: visible once the store is done.
    pub(super) fn post(&mut self, key: u32, number: usize) {
        let Some(set) = &self.set else { return };
        let slot = set.borrow().slot(number);
        self.call(Call::Join, &[store(slot, 4)]);
        self.posts.push_back((self.ops.len(), key));
    }

    /// Marks `count` posted keys as probed.
    pub(super) fn probed(&mut self, count: usize) {
        if let Some(set) = &self.set {
            set.borrow_mut().probed = count;
        }
    }

    /// Publishes the keys posted in the first `done` of `ops`.
    #[inline(always)]
    pub(super) fn publish(&mut self, done: usize) {
        while let Some((after, key)) = self.posts.front().copied()
            && after <= done
        {
            self.posts.pop_front();
            if let Some(set) = &self.set {
                set.borrow_mut().posted.push(key);
            }
        }
    }

    pub(super) fn instructions(&self) -> u64 {
        self.execution.instructions()
    }

    /// Calls a function with `data` among its operations.
    pub(super) fn call(&mut self, call: Call, data: &[Op]) {
        self.execution.call(call.number(), data, &mut self.ops);
    }

    /// A call of the planner or similar code, which looks up catalogue entries: a line of them per
    /// hundred instructions.
    pub(super) fn call_with_catalogue(&mut self, call: Call) {
        let instructions = u64::from(call.function().instructions);
        let lines = ProcessMemory::CATALOGUE_BYTES / 64;
        // Entries in an order that a prefetcher doesn't recognise.
        let entry = |at: u64| load(self.private.catalogue + at * 37 % lines * 64, 8);
        let data: Vec<Op> = (0..instructions / 100).map(entry).collect();
        self.call(call, &data);
    }

    /// Acquires or releases a shared lock.
    fn lock(&mut self, call: Call, lock: u64) {
        self.call(call, &[load(lock, 4), store(lock, 4)]);
    }

    /// Pins a page in the buffer pool.
    pub(super) fn read_buffer(&mut self, page: Page) {
        let pool = &self.database.pool;
        let (mapping, bucket) = (pool.mapping_lock, pool.bucket(page.buffer));
        let (entry, descriptor) = (pool.entry(page.buffer), pool.descriptor(page.buffer));
        let pins = self.private.pins + page.buffer * 4;
        self.call(Call::ReadBuffer, &[]);
        self.lock(Call::LockAcquire, mapping);
        self.call(Call::HashSearch, &[load(bucket, 4), follow(entry, 24)]);
        let pin = [load(pins, 4), store(pins, 4), load(descriptor, 16), store(descriptor, 16)];
        self.call(Call::PinBuffer, &pin);
        self.lock(Call::LockRelease, mapping);
    }

    /// Unpins a page.
    pub(super) fn release_buffer(&mut self, page: Page) {
        let descriptor = self.database.pool.descriptor(page.buffer);
        let pins = self.private.pins + page.buffer * 4;
        let data = [load(pins, 4), store(pins, 4), load(descriptor, 16), store(descriptor, 16)];
        self.call(Call::ReleaseBuffer, &data);
    }

    /// Locks the content of a page.
    pub(super) fn lock_page(&mut self, page: Page) {
        self.call(Call::LockBuffer, &[]);
        self.lock(Call::LockAcquire, self.database.pool.content_lock(page.buffer));
    }

    pub(super) fn unlock_page(&mut self, page: Page) {
        self.lock(Call::LockRelease, self.database.pool.content_lock(page.buffer));
    }

    /// Fetches a row of a pinned page by `call`, and checks its visibility.
    pub(super) fn fetch_row(&mut self, call: Call, row: RowAddress) {
        self.lock_page(row.page);
        self.call(call, &[load(row.page.address, 20), load(row.pointer, 4), follow(row.header, 4)]);
        self.call(Call::Visible, &[load(row.header, 24)]);
        self.unlock_page(row.page);
        self.call(Call::Slot, &[]);
    }

    /// Extracts the columns of a row.
    pub(super) fn deform(&mut self, row: RowAddress) {
        self.call(Call::Deform, &[load(row.header + 20, 8), load(row.header + ROW_HEADER, 12)]);
    }

    /// Searches an index for the first entry not less than `key`: its leaf, which stays pinned and
    /// locked, and its slot.
    pub(super) fn search(&mut self, tree: &Tree, key: u32) -> (Node, usize) {
        self.call(Call::BeginSearch, &[]);
        self.call(Call::Descend, &[]);
        let mut node = tree.root();
        loop {
            let page = tree.page(node);
            self.read_buffer(page);
            self.lock_page(page);
            if tree.right(node).is_some() {
                // Checks for a concurrent split: the page's high key is its first entry (Lehman and
                // Yao 1981).
                self.call(Call::MoveRight, &[load(page.address, 20)]);
                self.compare(page, 0);
            }
            self.call(Call::Search, &[load(page.address, 20)]);
            let slot = tree.halve(node, key, |slot| self.compare(page, slot));
            if node.level == 0 {
                return self.step_right(tree, node, slot);
            }
            self.unlock_page(page);
            self.release_buffer(page);
            node = tree.child(node, slot.saturating_sub(1));
        }
    }

    /// Moves from the end of a leaf to the first entry of the next.
    fn step_right(&mut self, tree: &Tree, leaf: Node, slot: usize) -> (Node, usize) {
        let Some(next) = tree.right(leaf).filter(|_| slot == tree.len(leaf)) else {
            return (leaf, slot);
        };
        self.leave(tree.page(leaf));
        let page = tree.page(next);
        self.read_buffer(page);
        self.lock_page(page);
        (next, 0)
    }

    fn compare(&mut self, page: Page, slot: usize) {
        let (pointer, key) = index_entry(page, slot as u64);
        self.call(Call::CompareKeys, &[load(pointer, 4), follow(key, 12)]);
        self.call(Call::Compare, &[]);
    }

    /// Unlocks and unpins an index page.
    pub(super) fn leave(&mut self, page: Page) {
        self.unlock_page(page);
        self.release_buffer(page);
    }

    /// Evaluates `low < a2 and a2 < high`; the second half only where the first holds.
    pub(super) fn qualify(&mut self, a2: u32, (low, high): (u32, u32)) -> bool {
        self.call(Call::Qualify, &[]);
        self.call(Call::Evaluate, &[]);
        if a2 <= low {
            return false;
        }
        self.call(Call::Evaluate, &[]);
        a2 < high
    }

    /// Inserts a row into `result` and the log.
    pub(super) fn insert(&mut self) {
        let pool = self.database.pool;
        let (row, log) = {
            let mut append = self.append.borrow_mut();
            let at = (self.database.result_row(append.results), self.database.log_at(append.log));
            append.results += 1;
            append.log += 64;
            at
        };
        self.call(Call::FormRow, &[]);
        self.call(Call::Allocate, &[]);
        self.call(Call::Insert, &[]);
        self.call(Call::FindPage, &[]);
        self.read_buffer(row.page);
        self.lock_page(row.page);
        let put = [load(row.page.address, 20), store(row.page.address, 20), store(row.pointer, 4)];
        self.call(Call::InsertRow, &put);
        self.call(Call::InsertRow, &[store(row.header, 36)]);
        self.lock(Call::LockAcquire, pool.log_lock);
        self.call(Call::LogRow, &[store(log, 64)]);
        self.lock(Call::LockRelease, pool.log_lock);
        self.unlock_page(row.page);
        self.release_buffer(row.page);
    }

    /// Locks a statement's tables, and takes its snapshot of running transactions.
    pub(super) fn lock_tables(&mut self, tables: u64, clients: u64) {
        let pool = self.database.pool;
        for table in 0..tables {
            let entry = pool.lock_table + table * 128;
            self.lock(Call::LockAcquire, pool.manager_lock);
            self.call(Call::LockRelation, &[load(entry, 32), store(entry, 32)]);
            self.lock(Call::LockRelease, pool.manager_lock);
        }
        self.lock(Call::LockAcquire, pool.transactions_lock);
        let others: Vec<Op> =
            (0..clients).map(|client| load(pool.transactions + client * 128, 16)).collect();
        self.call(Call::Snapshot, &others);
        self.lock(Call::LockRelease, pool.transactions_lock);
    }
}
