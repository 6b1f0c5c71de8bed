//! A table into a Parquet file, its parts made and encoded by several threads.
//!
//! A part is a row group. Workers take the next part's number, make it and hand it over; the
//! calling thread appends them in order, so the file is the same for every number of threads. A
//! worker that is `AHEAD` parts ahead of the file waits, which bounds the memory.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

use super::{Part, Table, Tpch};
use crate::WorkloadError;
use crate::row_groups::{EncodedRowGroup, RowGroupEncoders, RowGroupFile};

/// Rows of a row group: about 25 MB of lineitem once encoded, large enough for good dictionaries
/// and small enough for several threads to read a file of scale 1.
const ROW_GROUP_ROWS: u64 = 1 << 19;
/// Rows made at a time.
const BATCH_ROWS: usize = 8192;
/// Parts per worker that may wait to be appended.
const AHEAD: u32 = 2;

/// The size of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile {
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Who watches the writing: hears of progress, and may stop it.
pub trait Watch: Sync {
    /// This number of further rows is done.
    fn rows_done(&self, rows: u64);
    /// Whether to stop.
    fn stop(&self) -> bool;
}

/// Makes a table and writes it to `path`, which it replaces only when complete.
///
/// # Errors
/// When the file can't be written, or `watch` asked to stop; nothing is left behind then.
pub fn write_parquet(
    tpch: Tpch,
    table: Table,
    path: &Path,
    threads: NonZero<usize>,
    watch: &dyn Watch,
) -> Result<WrittenFile, WorkloadError> {
    let parts = tpch.rows(table).div_ceil(ROW_GROUP_ROWS).max(1) as u32;
    write_parts(Source { tpch, table, parts }, path, threads, watch)
}

/// A table, and into how many parts it is cut.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) tpch: Tpch,
    pub(super) table: Table,
    pub(super) parts: u32,
}

pub(super) fn write_parts(
    source: Source,
    path: &Path,
    threads: NonZero<usize>,
    watch: &dyn Watch,
) -> Result<WrittenFile, WorkloadError> {
    let workers = threads.get().min(source.parts as usize) as u32;
    let mut file = RowGroupFile::create(path, source.tpch.schema(source.table))?;
    let encoders = file.encoders();
    let state = WorkerState {
        source,
        next: AtomicU32::new(0),
        over: AtomicBool::new(false),
        appended: AppendedParts::default(),
        ahead: workers * AHEAD,
        watch,
    };
    let rows = thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..workers {
            let (state, encoders, send) = (&state, encoders.clone(), send.clone());
            scope.spawn(move || state.work(&encoders, &send));
        }
        drop(send);
        let rows = append_all(&state, &mut file, &receive);
        state.dismiss();
        rows
    })?;
    if watch.stop() {
        return Err(WorkloadError::Stopped);
    }
    let bytes = file.publish()?;
    Ok(WrittenFile { rows, bytes })
}

type EncodedPart = (u32, Result<EncodedRowGroup, WorkloadError>);

/// Appends parts in order as they come.
fn append_all(
    state: &WorkerState,
    file: &mut RowGroupFile,
    made: &mpsc::Receiver<EncodedPart>,
) -> Result<u64, WorkloadError> {
    let mut waiting = BTreeMap::new();
    let mut rows = 0;
    for next in 0..state.source.parts {
        let group: EncodedRowGroup = loop {
            if let Some(group) = waiting.remove(&next) {
                break group;
            }
            let (part, group) = made.recv().map_err(|_| WorkloadError::Stopped)?;
            waiting.insert(part, group?);
        };
        rows += group.rows();
        file.append(group)?;
        state.appended.set(next + 1);
    }
    Ok(rows)
}

/// The state that the workers share.
struct WorkerState<'a> {
    source: Source,
    next: AtomicU32,
    over: AtomicBool,
    appended: AppendedParts,
    ahead: u32,
    watch: &'a dyn Watch,
}

impl WorkerState<'_> {
    fn work(&self, encoders: &RowGroupEncoders, send: &mpsc::Sender<EncodedPart>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.source.parts || !self.may_start(index) {
                return;
            }
            let made = self.make(index, encoders);
            let failed = made.is_err();
            if send.send((index, made)).is_err() || failed {
                return;
            }
        }
    }

    /// Waits until the part is near enough to the end of the file.
    fn may_start(&self, index: u32) -> bool {
        self.appended.wait(|appended| self.is_over() || index < appended + self.ahead);
        !self.is_over()
    }

    fn make(
        &self,
        index: u32,
        encoders: &RowGroupEncoders,
    ) -> Result<EncodedRowGroup, WorkloadError> {
        let mut encoder = encoders.start()?;
        let Source { tpch, table, parts: of } = self.source;
        for batch in tpch.batches(table, Part { index, of }, BATCH_ROWS) {
            if self.is_over() {
                return Err(WorkloadError::Stopped);
            }
            encoder.write(&batch)?;
            self.watch.rows_done(batch.num_rows() as u64);
        }
        encoder.finish()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.watch.stop()
    }

    fn dismiss(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.appended.wake_all();
    }
}

/// How many parts are in the file.
#[derive(Default)]
struct AppendedParts {
    parts: Mutex<u32>,
    changed: Condvar,
}

impl AppendedParts {
    fn set(&self, parts: u32) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(u32) -> bool) {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self.changed.wait_while(parts, |parts| !until(*parts));
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }

    fn wake_all(&self) {
        // Taken, so that no waiter is between looking and sleeping.
        drop(self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}
