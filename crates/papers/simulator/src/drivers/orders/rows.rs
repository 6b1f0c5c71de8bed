//! Statements and their access to rows: find the page, read or change it, write the log.

use super::engine::{Engine, PLAN_BYTES};
use super::footprint::{ADD, FETCH, LOG, STATEMENT, UPDATE};
use super::latch::{LatchId, Mode};
use super::session::Session;
use super::space::{read, reads, write, writes};
use super::tables::TableId;

/// Bytes of a log record in addition to the row's images: a default.
const RECORD_BYTES: u64 = 64;

/// Bytes of a row that a change writes, and of its before- and after-images: defaults.
const CHANGED_BYTES: u64 = 32;

impl Session {
    /// Starts a statement: reads its plan, opens its cursor.
    pub(super) fn statement(&self, which: usize) {
        let plan = self.engine().plans + which as u64 * PLAN_BYTES;
        let cursor = self.heap(which as u64 * 256);
        let data: Vec<_> = reads(plan, PLAN_BYTES).chain(writes(cursor, 128)).collect();
        self.call(STATEMENT + which, &data);
    }

    /// Reads a row into the client's memory.
    pub(super) async fn read_row(&self, table: TableId, row: u32) {
        let ((address, bytes), page) = self.place(table, row);
        let frame = self.page(page, Mode::Shared).await;
        let to = self.heap(4096 + table as u64 * 384);
        let data: Vec<_> = reads(address, bytes).zip(writes(to, bytes)).collect();
        let data: Vec<_> = data.into_iter().flat_map(|(from, to)| [from, to]).collect();
        self.call(FETCH, &data);
        self.unpin(frame, Mode::Shared).await;
    }

    /// Changes a row, and logs the change.
    pub(super) async fn change_row<T>(
        &self,
        (table, row): (TableId, u32),
        change: impl FnOnce(&mut Engine) -> T,
    ) -> T {
        let ((address, bytes), page) = self.place(table, row);
        let frame = self.page(page, Mode::Exclusive).await;
        let changed = bytes.min(CHANGED_BYTES);
        let data: Vec<_> = reads(address, changed).chain(writes(address, changed)).collect();
        self.call(UPDATE, &data);
        self.sync().await;
        let changed = change(&mut self.engine());
        self.unpin(frame, Mode::Exclusive).await;
        self.log(2 * CHANGED_BYTES).await;
        changed
    }

    /// Adds `count` rows at the end of a table by calling `add`: the number of the first.
    pub(super) async fn add_rows(
        &self,
        table: TableId,
        count: u32,
        add: impl FnOnce(&mut Engine) -> u32,
    ) -> u32 {
        let end = LatchId::End(table as usize);
        self.latch(end, Mode::Exclusive).await;
        let first = add(&mut self.engine());
        let address = self.engine().latch(end).1;
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
        self.latch(LatchId::Log, Mode::Exclusive).await;
        let (tail, word) = {
            let mut engine = self.engine();
            let tail = engine.log_tail();
            engine.log_end += RECORD_BYTES + bytes;
            (tail, engine.latch(LatchId::Log).1 + 8)
        };
        let record = writes(tail, RECORD_BYTES + bytes);
        let data: Vec<_> = [read(word)].into_iter().chain(record).chain([write(word)]).collect();
        self.call(LOG, &data);
        self.unlatch(LatchId::Log, Mode::Exclusive).await;
    }

    /// Address and bytes of a row, and its page.
    fn place(&self, table: TableId, row: u32) -> ((u64, u64), u32) {
        let engine = self.engine();
        let at = engine.tables.row(table, row);
        (at, engine.tables.page(at.0))
    }
}
