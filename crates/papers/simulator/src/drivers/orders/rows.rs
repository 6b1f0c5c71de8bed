//! Statements and what they do with rows: find the page, read or change it, write the log.

use super::footprint::{ADD, FETCH, LOG, STATEMENT, UPDATE};
use super::latch::{At, Mode};
use super::session::Session;
use super::space::{read, reads, write, writes};
use super::tables::Name;
use super::world::{PLAN_BYTES, World};

/// Bytes of a log record beside what it says of a row: a default.
const RECORD_BYTES: u64 = 64;

/// Bytes of a row that a change writes, and of what it was before and after in the log: defaults.
const CHANGED_BYTES: u64 = 32;

impl Session {
    /// Begins a statement: its plan is read, its cursor is set.
    pub(super) fn statement(&self, which: usize) {
        let plan = self.world().plans + which as u64 * PLAN_BYTES;
        let cursor = self.heap(which as u64 * 256);
        let data: Vec<_> = reads(plan, PLAN_BYTES).chain(writes(cursor, 128)).collect();
        self.call(STATEMENT + which, &data);
    }

    /// Reads a row to where the client has rows.
    pub(super) async fn read_row(&self, table: Name, row: u32) {
        let ((address, bytes), page) = self.place(table, row);
        let frame = self.page(page, Mode::Shared).await;
        let to = self.heap(4096 + table as u64 * 384);
        let data: Vec<_> = reads(address, bytes).zip(writes(to, bytes)).collect();
        let data: Vec<_> = data.into_iter().flat_map(|(from, to)| [from, to]).collect();
        self.call(FETCH, &data);
        self.unpin(frame, Mode::Shared).await;
    }

    /// Changes a row, and says so in the log.
    pub(super) async fn change_row<T>(
        &self,
        (table, row): (Name, u32),
        change: impl FnOnce(&mut World) -> T,
    ) -> T {
        let ((address, bytes), page) = self.place(table, row);
        let frame = self.page(page, Mode::Exclusive).await;
        let changed = bytes.min(CHANGED_BYTES);
        let data: Vec<_> = reads(address, changed).chain(writes(address, changed)).collect();
        self.call(UPDATE, &data);
        self.sync().await;
        let changed = change(&mut self.world());
        self.unpin(frame, Mode::Exclusive).await;
        self.log(2 * CHANGED_BYTES).await;
        changed
    }

    /// Adds rows at the end of a table: the number of the first. `add` puts them there.
    pub(super) async fn add_rows(
        &self,
        (table, count): (Name, u32),
        add: impl FnOnce(&mut World) -> u32,
    ) -> u32 {
        let end = At::End(table as usize);
        self.latch(end, Mode::Exclusive).await;
        let first = add(&mut self.world());
        let address = self.world().latch(end).1;
        self.push(write(address + 8));
        self.unlatch(end, Mode::Exclusive).await;
        for row in first..first + count {
            let ((address, bytes), page) = self.place(table, row);
            let frame = self.page(page, Mode::Exclusive).await;
            let data: Vec<_> = writes(address, bytes).collect();
            self.call(ADD, &data);
            self.unpin(frame, Mode::Exclusive).await;
            self.log(bytes).await;
        }
        first
    }

    /// Writes a record to the log's end.
    pub(super) async fn log(&self, bytes: u64) {
        self.latch(At::Log, Mode::Exclusive).await;
        let (tail, word) = {
            let mut world = self.world();
            let tail = world.log_tail();
            world.log_end += RECORD_BYTES + bytes;
            (tail, world.latch(At::Log).1 + 8)
        };
        let record = writes(tail, RECORD_BYTES + bytes);
        let data: Vec<_> = [read(word)].into_iter().chain(record).chain([write(word)]).collect();
        self.call(LOG, &data);
        self.unlatch(At::Log, Mode::Exclusive).await;
    }

    /// Where a row and its bytes are, and on which page.
    fn place(&self, table: Name, row: u32) -> ((u64, u64), u32) {
        let world = self.world();
        let at = world.tables.row(table, row);
        (at, world.tables.page(at.0))
    }
}
