//! A server process: what its calls touch.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::ahead::Set;
use super::database::{Database, Private, Tail};
use super::footprint::Call;
use super::layout::{Page, ROW_HEADER, RowAt, index_entry};
use super::tree::{Node, Tree};
use crate::drivers::code::{Execution, Footprint};
use crate::op::{After, Op};

/// A read of an address that is known.
pub(super) const fn load(address: u64, bytes: u16) -> Op {
    Op::Load { address, bytes, after: After::Nothing }
}

/// A read of what the last one pointed to.
pub(super) const fn follow(address: u64, bytes: u16) -> Op {
    Op::Load { address, bytes, after: After::Load }
}

pub(super) const fn store(address: u64, bytes: u16) -> Op {
    Op::Store { address, bytes }
}

/// A process.
pub(super) struct Process<'d> {
    pub(super) database: &'d Database,
    pub(super) private: Private,
    execution: Execution<'static>,
    tail: Rc<RefCell<Tail>>,
    /// What it does next.
    pub(super) ops: Vec<Op>,
    /// The work-ahead set that a helper sees.
    set: Option<Rc<RefCell<Set>>>,
    /// Keys that will be in it, and after how many of `ops`.
    posts: VecDeque<(usize, u32)>,
}

impl<'d> Process<'d> {
    pub(super) fn new(
        (database, client): (&'d Database, usize),
        footprint: &'static Footprint,
        tail: Rc<RefCell<Tail>>,
        seed: u64,
    ) -> Self {
        let private = database.private(client);
        let execution = Execution::new(footprint, private.own, seed);
        Self {
            database,
            private,
            execution,
            tail,
            ops: Vec::new(),
            set: None,
            posts: VecDeque::new(),
        }
    }

    /// Has a work-ahead set of so many entries from now on.
    pub(super) fn keep_set(&mut self, size: usize) -> Rc<RefCell<Set>> {
        let set = Rc::new(RefCell::new(Set::new(self.private.set, size)));
        self.set = Some(Rc::clone(&set));
        set
    }

    /// Posts a key to the set: visible when the store is done.
    pub(super) fn post(&mut self, key: u32, number: usize) {
        let Some(set) = &self.set else { return };
        let slot = set.borrow().slot(number);
        self.call(Call::Join, &[store(slot, 4)]);
        self.posts.push_back((self.ops.len(), key));
    }

    /// Says that so many of the posted keys were probed.
    pub(super) fn probed(&mut self, count: usize) {
        if let Some(set) = &self.set {
            set.borrow_mut().probed = count;
        }
    }

    /// Shows what was posted, once so many of `ops` are done.
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

    /// Calls a function that does `data` on its way.
    pub(super) fn call(&mut self, call: Call, data: &[Op]) {
        self.execution.call(call.number(), data, &mut self.ops);
    }

    /// A call of the planner and its like: it looks up catalogue entries, a line of them in a
    /// hundred instructions.
    pub(super) fn call_with_catalogue(&mut self, call: Call) {
        let instructions = u64::from(call.function().instructions);
        let lines = Private::CATALOGUE_BYTES / 64;
        // Some entries first, then others: no order that a prefetcher would know.
        let entry = |at: u64| load(self.private.catalogue + at * 37 % lines * 64, 8);
        let data: Vec<Op> = (0..instructions / 100).map(entry).collect();
        self.call(call, &data);
    }

    /// Takes a shared lock, or gives it back.
    fn lock(&mut self, call: Call, lock: u64) {
        self.call(call, &[load(lock, 4), store(lock, 4)]);
    }

    /// Pins a page: its buffer is looked up and kept.
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

    /// Unpins it.
    pub(super) fn release_buffer(&mut self, page: Page) {
        let descriptor = self.database.pool.descriptor(page.buffer);
        let pins = self.private.pins + page.buffer * 4;
        let data = [load(pins, 4), store(pins, 4), load(descriptor, 16), store(descriptor, 16)];
        self.call(Call::ReleaseBuffer, &data);
    }

    /// Locks a page's content.
    pub(super) fn lock_page(&mut self, page: Page) {
        self.call(Call::LockBuffer, &[]);
        self.lock(Call::LockAcquire, self.database.pool.content_lock(page.buffer));
    }

    pub(super) fn unlock_page(&mut self, page: Page) {
        self.lock(Call::LockRelease, self.database.pool.content_lock(page.buffer));
    }

    /// Gets a row of a page that is pinned, by `call`, and looks whether it is visible.
    pub(super) fn fetch_row(&mut self, call: Call, row: RowAt) {
        self.lock_page(row.page);
        self.call(call, &[load(row.page.address, 20), load(row.pointer, 4), follow(row.header, 4)]);
        self.call(Call::Visible, &[load(row.header, 24)]);
        self.unlock_page(row.page);
        self.call(Call::Slot, &[]);
    }

    /// Takes the columns out of a row.
    pub(super) fn deform(&mut self, row: RowAt) {
        self.call(Call::Deform, &[load(row.header + 20, 8), load(row.header + ROW_HEADER, 12)]);
    }

    /// Down an index to the first entry that is no less than `key`: its leaf, which stays pinned
    /// and locked, and its slot there.
    pub(super) fn search(&mut self, tree: &Tree, key: u32) -> (Node, usize) {
        self.call(Call::BeginSearch, &[]);
        self.call(Call::Descend, &[]);
        let mut node = tree.root();
        loop {
            let page = tree.page(node);
            self.read_buffer(page);
            self.lock_page(page);
            if tree.right(node).is_some() {
                // Split meanwhile? The page's high key is its first entry (Lehman and Yao 1981).
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

    /// From behind a leaf's last entry to the next leaf's first.
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

    /// Leaves an index page.
    pub(super) fn leave(&mut self, page: Page) {
        self.unlock_page(page);
        self.release_buffer(page);
    }

    /// The condition `low < a2 and a2 < high`; the second half where the first holds.
    pub(super) fn qualify(&mut self, a2: u32, (low, high): (u32, u32)) -> bool {
        self.call(Call::Qualify, &[]);
        self.call(Call::Evaluate, &[]);
        if a2 <= low {
            return false;
        }
        self.call(Call::Evaluate, &[]);
        a2 < high
    }

    /// Puts a row into `result`, and into the log.
    pub(super) fn insert(&mut self) {
        let pool = self.database.pool;
        let (row, log) = {
            let mut tail = self.tail.borrow_mut();
            let at = (self.database.result_row(tail.results), self.database.log_at(tail.log));
            tail.results += 1;
            tail.log += 64;
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

    /// A statement's lock on a table, and its view of who else runs.
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
