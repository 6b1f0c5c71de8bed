//! OLTP: transactions on one table through its clustered index, laid out as in InnoDB.
//!
//! The nine kinds of a transaction in advanced mode (S3.25): reads of one row, of a range, its sum,
//! in order, without duplicates; an update with and without an index, a deletion, an insertion.
//! Which rows they touch is the workload's own distribution.

use std::cell::RefCell;
use std::rc::Rc;

use workahead_walks::random::Random;

use crate::drivers::code::{Execution, Footprint, Function, Mix};
use crate::op::{Call, Dependence, Op, Script};
use crate::ticks::Ticks;

/// Bytes of an InnoDB page.
const PAGE: u64 = 16 << 10;
/// Bytes of rows per page: fifteen sixteenths when a table is filled in order.
const PAGE_ROWS_BYTES: u64 = PAGE / 16 * 15;
/// Bytes of an entry of an inner page: a key, the page, a header.
const ENTRY: u64 = 17;
/// Bytes of a thread's own memory: stack, sort, send buffer.
const OWN: u64 = 256 << 10;
/// Bytes of the circular log buffer.
const LOG: u64 = 1 << 20;
/// Bytes of a client's messages.
const CLIENT_BYTES: u64 = 1 << 10;
/// Rows of a range.
const RANGE: u64 = 100;

/// Generator of row numbers, from 0.
pub type Rows = Box<dyn FnMut() -> u32>;

/// A table and its workload.
#[derive(Debug, Clone, Copy)]
pub struct Oltp {
    /// Address of the table.
    pub base: u64,
    /// Number of rows, of 190 bytes in the paper.
    pub rows: u32,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Transactions of all threads together.
    pub transactions: u64,
    /// Micro-operations of a client between two statements; 0 without clients.
    pub client_uops: u32,
    /// System call at the end of a transaction: a sleep while the log is written.
    pub commit: Option<Call>,
    /// Seed of log positions and data-dependent branches.
    pub seed: u64,
}

/// Work of all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statements {
    /// Transactions begun.
    pub transactions: u64,
    /// Statements.
    pub statements: u64,
    /// Rows read.
    pub read: u64,
    /// Rows written.
    pub written: u64,
    /// Instructions.
    pub instructions: u64,
}

const STATEMENT: usize = 0;
const SEARCH: usize = 1;
const ROW: usize = 2;
const WRITE: usize = 3;
const COMMIT: usize = 4;

/// The code footprint.
static FOOTPRINT: Footprint = Footprint {
    origin: "synthetic: nobody counted InnoDB's; calls are of the order of PostgreSQL's, counted \
             under callgrind; mix of Hassanein et al. 2008, table 1",
    functions: &[
        Function { name: "dispatch_command", instructions: 20_000, bytes: 40_000 },
        Function { name: "btr_cur_search_to_nth_level", instructions: 600, bytes: 2_100 },
        Function { name: "row_search_mvcc", instructions: 500, bytes: 1_750 },
        Function { name: "row_upd_step", instructions: 3_000, bytes: 10_500 },
        Function { name: "trx_commit", instructions: 4_000, bytes: 14_000 },
    ],
    mix: Mix {
        loads: 0.36,
        stores: 0.21,
        branches: 0.18,
        uops_per_instruction: 1.6,
        unpredictable: 0.1,
    },
    text_bytes: 8 << 20,
    own_bytes: 16 << 10,
};

impl Oltp {
    /// Description and source of its code.
    #[must_use]
    pub fn origin() -> &'static str {
        FOOTPRINT.origin
    }

    /// A thread for each generator of rows, and their common counts.
    pub fn threads(
        self,
        generators: impl IntoIterator<Item = Rows>,
    ) -> (Vec<Box<dyn Script>>, Rc<RefCell<Statements>>) {
        let did = Rc::new(RefCell::new(Statements::default()));
        let thread = |(at, rows): (u64, Rows)| {
            let own = self.table_end() + LOG + at * OWN;
            let thread = Thread {
                oltp: self,
                at: at as u32,
                rows,
                random: Random::of(self.seed ^ at),
                execution: Execution::new(&FOOTPRINT, own, self.seed ^ at),
                own,
                ops: Vec::new(),
                done: 0,
                did: Rc::clone(&did),
            };
            Box::new(thread) as Box<dyn Script>
        };
        ((0..).zip(generators).map(thread).collect(), did)
    }

    /// The client of a thread, in a program of its own: it sends statements and waits for the
    /// answers.
    #[must_use]
    pub fn client(self, at: u32) -> Box<dyn Script> {
        let own = u64::from(at) * CLIENT_BYTES;
        let buffer = (0..CLIENT_BYTES).step_by(64).map(move |line| own + line);
        let touches = buffer.map(|address| Op::Store { address, bytes: 64 });
        let one: Vec<Op> = [Op::Compute { uops: self.client_uops }]
            .into_iter()
            .chain(touches)
            .chain(
                [Call::Post { channel: 2 * at }, Call::Wait { channel: 2 * at + 1 }]
                    .map(Op::System),
            )
            .collect();
        Box::new(one.into_iter().cycle())
    }

    /// Bytes of its pages, which all threads share.
    #[must_use]
    pub fn working_set_bytes(&self) -> u64 {
        self.table_end() - self.base
    }

    fn rows_of_page(&self) -> u64 {
        (PAGE_ROWS_BYTES / self.row_bytes.max(1)).max(1)
    }

    fn leaves(&self) -> u64 {
        u64::from(self.rows).div_ceil(self.rows_of_page())
    }

    /// Inner pages; the root is before them.
    fn inners(&self) -> u64 {
        self.leaves().div_ceil(PAGE_ROWS_BYTES / ENTRY)
    }

    fn table_end(&self) -> u64 {
        self.base + (1 + self.inners() + self.leaves()) * PAGE
    }

    fn leaf(&self, row: u64) -> u64 {
        self.base + (1 + self.inners() + row / self.rows_of_page()) * PAGE
    }

    fn row(&self, row: u64) -> u64 {
        self.leaf(row) + 128 + row % self.rows_of_page() * self.row_bytes
    }

    /// Loads of a search for a row's leaf: at each level a header and a few entries by binary
    /// search.
    fn path(&self, row: u64) -> Vec<Op> {
        let leaf = row / self.rows_of_page();
        let fan = PAGE_ROWS_BYTES / ENTRY;
        let inner = leaf / fan;
        let levels = [
            (self.base, inner, self.inners(), ENTRY),
            (self.base + (1 + inner) * PAGE, leaf % fan, fan.min(self.leaves()), ENTRY),
            (self.leaf(row), row % self.rows_of_page(), self.rows_of_page(), self.row_bytes),
        ];
        let mut ops = Vec::new();
        for (page, wanted, entries, bytes) in levels {
            ops.push(Op::Load { address: page, bytes: 38, after: Dependence::Load });
            let (mut low, mut high) = (0, entries);
            while high - low > 1 {
                let middle = low.midpoint(high);
                let address = page + 128 + middle * bytes;
                ops.push(Op::Load { address, bytes: 8, after: Dependence::Load });
                if middle <= wanted { low = middle } else { high = middle }
            }
        }
        ops
    }
}

/// A thread.
struct Thread {
    oltp: Oltp,
    at: u32,
    rows: Rows,
    random: Random,
    execution: Execution<'static>,
    own: u64,
    ops: Vec<Op>,
    done: usize,
    did: Rc<RefCell<Statements>>,
}

impl Thread {
    fn draw(&mut self) -> u64 {
        u64::from((self.rows)().min(self.oltp.rows - 1))
    }

    fn call(&mut self, function: usize, data: &[Op]) {
        self.execution.call(function, data, &mut self.ops);
    }

    /// A statement, sent by a client if there is one.
    fn statement(&mut self, does: impl FnOnce(&mut Self)) {
        if self.oltp.client_uops > 0 {
            self.ops.push(Op::System(Call::Wait { channel: 2 * self.at }));
        }
        self.call(STATEMENT, &[]);
        does(self);
        if self.oltp.client_uops > 0 {
            self.ops.push(Op::System(Call::Post { channel: 2 * self.at + 1 }));
        }
        self.did.borrow_mut().statements += 1;
    }

    /// Finds a row and reads `rows` rows from there.
    fn read(&mut self, rows: u64) {
        let first = self.draw();
        let last = (first + rows).min(u64::from(self.oltp.rows));
        let path = self.oltp.path(first);
        self.call(SEARCH, &path);
        for row in first..last {
            let (address, bytes) = (self.oltp.row(row), self.oltp.row_bytes as u16);
            let sent = self.own + (row - first) * self.oltp.row_bytes % OWN;
            let copied = Op::Store { address: sent, bytes };
            self.call(ROW, &[Op::Load { address, bytes, after: Dependence::None }, copied]);
        }
        self.did.borrow_mut().read += last - first;
    }

    /// Finds and changes a row, with its log record.
    fn write(&mut self) {
        let row = self.draw();
        let path = self.oltp.path(row);
        self.call(SEARCH, &path);
        let (address, bytes) = (self.oltp.row(row), self.oltp.row_bytes as u16);
        let log = self.oltp.table_end() + u64::from(self.random.below((LOG / 64) as u32)) * 64;
        let change = [
            Op::Load { address, bytes, after: Dependence::None },
            Op::Store { address, bytes },
            Op::Store { address: self.oltp.leaf(row), bytes: 8 },
            Op::Store { address: log, bytes: 64 },
        ];
        self.call(WRITE, &change);
        self.did.borrow_mut().written += 1;
    }

    /// The statements of a transaction.
    fn transaction(&mut self) {
        (0..10).for_each(|_| self.statement(|thread| thread.read(1)));
        // A range, its sum, in order, without duplicates.
        (0..4).for_each(|_| self.statement(|thread| thread.read(RANGE)));
        // An update with and one without an index, a deletion, an insertion.
        (0..4).for_each(|_| self.statement(Self::write));
        self.call(COMMIT, &[]);
        self.ops.extend(self.oltp.commit.map(Op::System));
    }
}

impl Script for Thread {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if self.done == self.ops.len() {
            {
                let mut did = self.did.borrow_mut();
                if did.transactions == self.oltp.transactions {
                    return None;
                }
                did.transactions += 1;
            }
            self.ops.clear();
            self.done = 0;
            let before = self.execution.instructions();
            self.transaction();
            self.did.borrow_mut().instructions += self.execution.instructions() - before;
        }
        self.done += 1;
        self.ops.get(self.done - 1).copied()
    }
}
