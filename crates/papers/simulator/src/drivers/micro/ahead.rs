//! A join's probes through a work-ahead set: the helper of Zhou et al. (2005, section 4) in a query
//! of Hassanein et al. (2008). While the process collects rows, a helper on the sibling searches
//! the index for their keys, so that the pages are cached when the rows are probed.
//!
//! ```text
//!   process   row ─ post key ─► [ k k k k … ] ─► the oldest row is probed
//!   helper                        └─► index pages, row of T2: loaded, nothing computed
//! ```
//!
//! PostgreSQL has no such thread: its processes run one each. It shares the process's memory here.

use std::cell::RefCell;
use std::rc::Rc;

use super::database::Database;
use super::layout::index_entry;
use super::process::{follow, load};
use crate::op::{Op, Script};
use crate::ticks::Ticks;

/// Most entries of a set: more would be more lines than a first-level cache has.
pub const ENTRIES_MAX: usize = 4096;

/// Cycles of a PAUSE when nothing was posted: a default, as reported of a Pentium 4.
const PAUSE_CYCLES: u32 = 43;
/// Micro-operations of a comparison and of an entry: load, compare, go on.
const STEP_UOPS: u32 = 4;

/// A work-ahead set, shared by helper and process.
#[derive(Debug)]
pub(super) struct WorkAheadSet {
    base: u64,
    size: usize,
    /// Keys in the order in which they were posted.
    pub(super) posted: Vec<u32>,
    /// How many of them have been probed.
    pub(super) probed: usize,
}

impl WorkAheadSet {
    pub(super) fn new(base: u64, size: usize) -> Self {
        Self { base, size, posted: Vec::new(), probed: 0 }
    }

    /// Address of a key.
    pub(super) fn slot(&self, number: usize) -> u64 {
        self.base + (number % self.size) as u64 * 4
    }
}

/// The helper thread of a query.
pub(super) struct Helper<'d> {
    database: &'d Database,
    set: Rc<RefCell<WorkAheadSet>>,
    /// Number of the next key.
    next: usize,
    ops: Vec<Op>,
    done: usize,
}

impl<'d> Helper<'d> {
    pub(super) fn new(database: &'d Database, set: Rc<RefCell<WorkAheadSet>>) -> Self {
        Self { database, set, next: 0, ops: Vec::new(), done: 0 }
    }

    /// Searches the index for a key and loads its row.
    fn descend(&mut self, key: u32) {
        let (tree, ops) = (&self.database.index_t2, &mut self.ops);
        let mut node = tree.root();
        loop {
            let page = tree.page(node);
            ops.push(load(page.address, 20));
            let slot = tree.halve(node, key, |slot| {
                let (pointer, key) = index_entry(page, slot as u64);
                ops.extend([Op::Compute { uops: STEP_UOPS }, load(pointer, 4), follow(key, 12)]);
            });
            if node.level > 0 {
                node = tree.child(node, slot.saturating_sub(1));
                continue;
            }
            let row = self.database.t2.row(tree.rank(node, slot) as u64);
            ops.extend([load(row.page.address, 20), load(row.pointer, 4), follow(row.header, 28)]);
            return;
        }
    }
}

impl Script for Helper<'_> {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if let Some(op) = self.ops.get(self.done) {
            self.done += 1;
            return Some(*op);
        }
        self.ops.clear();
        self.done = 0;
        let (slot, key) = {
            let set = self.set.borrow();
            // Keys that the process has probed meanwhile are skipped.
            self.next = self.next.max(set.probed);
            (set.slot(self.next), set.posted.get(self.next).copied())
        };
        let Some(key) = key else { return Some(Op::Pause { cycles: PAUSE_CYCLES }) };
        self.next += 1;
        self.ops.extend([load(slot, 4), Op::Compute { uops: STEP_UOPS }]);
        self.descend(key);
        Script::next(self, 0)
    }
}
