//! A thread of a trace as a script.

use std::io::Read;

use super::{Header, Reader, TraceError};
use workahead_simulator::op::{After, Op};

/// What a whole trace has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    /// What it says of itself.
    pub(crate) header: Header,
    /// Records, by thread.
    pub(crate) records: Vec<u64>,
}

/// Reads a trace to its end: worth doing before a long run.
///
/// # Errors
/// If it is no whole trace.
pub(crate) fn check(from: impl Read) -> Result<Summary, TraceError> {
    let mut reader = Reader::new(from)?;
    let header = *reader.header();
    let mut records = vec![0; usize::from(header.threads)];
    for record in &mut reader {
        records[usize::from(record?.thread)] += 1;
    }
    Ok(Summary { header, records })
}

/// The operations of one thread of a trace, read as they are asked for. Each thread reads the file
/// for itself, so that none has to keep what another does.
#[derive(Debug)]
pub(crate) struct Replay<R> {
    reader: Reader<R>,
    thread: u16,
    after: After,
    /// The operations of the last record that are still to come, next one first.
    pending: [Option<Op>; 3],
    failed: Option<TraceError>,
}

impl<R: Read> Replay<R> {
    /// One thread's; loads wait for what the header says. A thread that the trace does not have
    /// does nothing.
    ///
    /// # Errors
    /// If it is no trace.
    pub(crate) fn new(from: R, thread: u16) -> Result<Self, TraceError> {
        let reader = Reader::new(from)?;
        let after = reader.header().after;
        Ok(Self { reader, thread, after, pending: [None; 3], failed: None })
    }

    /// Whether the trace was whole; operations ended early where it was not.
    ///
    /// # Errors
    /// For what was wrong with it.
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
