//! Conversion from our own tracer.

use workahead_walks::traced::{Access, Kind as Traced, Trace};

use super::{Header, Kind, Record, TraceError};
use workahead_simulator::op::Dependence;

/// Treatment of announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hints {
    /// Prefetch instructions, which fetch the line.
    Followed,
    /// Only the moment at which the address is known.
    Ignored,
}

/// The header of a trace of ours: announced addresses are known at their announcement, all others
/// depend on the last load. There are as many threads as the largest number says.
#[must_use]
pub(crate) fn header_of(trace: &Trace) -> Header {
    let threads = trace.accesses().iter().map(|access| access.thread).max().unwrap_or(0);
    let threads = threads.saturating_add(1);
    Header { threads, after: Dependence::Announcement, line: None, page: None }
}

/// The records of a trace of ours, in order. Reads declared as cached are reads.
pub(crate) fn records(
    trace: &Trace,
    hints: Hints,
) -> impl Iterator<Item = Result<Record, TraceError>> {
    let numbered = (0..).zip(trace.accesses());
    numbered.map(move |(number, access)| record(number, access, hints))
}

fn record(number: u64, access: &Access, hints: Hints) -> Result<Record, TraceError> {
    let Access { address, bytes, thread, kind, .. } = *access;
    let kind = match (kind, hints) {
        (Traced::Read | Traced::HotRead, _) => Kind::Load,
        (Traced::Write, _) => Kind::Store,
        (Traced::Fetch(_), Hints::Followed) => Kind::Hint,
        (Traced::Fetch(_), Hints::Ignored) => Kind::Announce,
    };
    let bytes = u16::try_from(bytes).map_err(|_| TraceError::Unwritable {
        record: number,
        what: "the length",
        value: bytes.into(),
        takes: format!("at most {}", u16::MAX),
    })?;
    Ok(Record { thread, kind, address: address as u64, bytes, instructions: 0 })
}
