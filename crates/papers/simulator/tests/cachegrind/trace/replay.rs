//! A thread of a trace as a script.

use std::io::Read;

use super::{Header, Reader, TraceError};
use workahead_simulator::op::{Dependence, Op};

/// Summary of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Its header.
    pub(crate) header: Header,
    /// Records, by thread.
    pub(crate) records: Vec<u64>,
}

/// Reads a trace to its end, as a check before a long run.
///
/// # Errors
/// If it is not a whole trace.
pub(crate) fn check(from: impl Read) -> Result<Summary, TraceError> {
    let mut reader = Reader::new(from)?;
    let header = *reader.header();
    let mut records = vec![0; usize::from(header.threads)];
    for record in &mut reader {
        records[usize::from(record?.thread)] += 1;
    }
    Ok(Summary { header, records })
}

/// The operations of one thread of a trace. Each thread reads the file itself, so that no other
/// thread's records are buffered.
#[derive(Debug)]
pub(crate) struct Replay<R> {
    reader: Reader<R>,
    thread: u16,
    after: Dependence,
    /// The remaining operations of the last record, next one first.
    pending: [Option<Op>; 3],
    failed: Option<TraceError>,
}

impl<R: Read> Replay<R> {
    /// The operations of `thread`; loads wait as the header says. A thread that the trace does not
    /// have has none.
    ///
    /// # Errors
    /// If it is not a trace.
    pub(crate) fn new(from: R, thread: u16) -> Result<Self, TraceError> {
        let reader = Reader::new(from)?;
        let after = reader.header().after;
        Ok(Self { reader, thread, after, pending: [None; 3], failed: None })
    }

    /// Whether the trace was whole; operations end early if not.
    ///
    /// # Errors
    /// The error of the trace.
    pub(crate) fn finish(self) -> Result<(), TraceError> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl<R: Read> Iterator for Replay<R> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        loop {
            if let Some(next) = self.pending.iter_mut().find_map(Option::take) {
                return Some(next);
            }
            match self.reader.next()? {
                Ok(record) if record.thread == self.thread => {
                    let ops = record.ops(self.after);
                    for (place, op) in self.pending.iter_mut().zip(ops) {
                        *place = Some(op);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            }
        }
    }
}
