//! Address traces: a compact file, read and written in bounded memory.
//!
//! ```text
//!   header   89 57 41 54 0D 0A 1A 0A   magic: what a transfer as text would change
//!            u16 version  u16 threads  u8 after  u8 line shift  u8 page shift  u8 zero
//!   record   tag [thread] [Δ address] [bytes] [instructions]     integers are LEB128
//!            tag: kind in bits 0 to 2; which of thread (3), bytes (4), instructions (5) follow
//!   end      07  number of records  u32 CRC-32 of every byte before it
//! ```
//!
//! Numbers of fixed size are little-endian. Without a thread field, the record is of the previous
//! record's thread; without bytes, it has the bytes of the thread's last record of the kind;
//! without instructions, none. Addresses are zig-zag differences to that same record. Line and page
//! of the traced machine are notes; a shift of 0 means unknown. The end record distinguishes a
//! whole file from a truncated one.

mod cachegrind;
mod error;
mod lackey;
mod reader;
mod replay;
mod tracer;
mod writer;

pub(crate) use cachegrind::{Cachegrind, Misses, References};
pub(crate) use error::TraceError;
pub(crate) use lackey::Lackey;
pub(crate) use reader::Reader;
pub(crate) use replay::{Replay, check};
pub(crate) use tracer::{Hints, header_of, records};
pub(crate) use writer::Writer;

use workahead_simulator::op::{Dependence, Op};

/// Magic bytes.
pub(crate) const MAGIC: [u8; 8] = *b"\x89WAT\r\n\x1a\n";
/// Format version.
pub(crate) const VERSION: u16 = 1;
/// Most threads of a trace, as state is kept for each.
pub(crate) const THREADS_MAX: u16 = 1024;
/// Bits of an address: as processors translate, and without overflow of address plus length.
pub(crate) const ADDRESS_BITS: u32 = 56;
/// Most instructions of a record: times stay far below the limit of a tick counter.
pub(crate) const INSTRUCTIONS_MAX: u32 = 1 << 24;
/// Number of kinds, and of remembered addresses per thread.
pub(crate) const KINDS: usize = 7;
/// Tag of the end record.
pub(crate) const END: u8 = 7;
pub(crate) const HAS_THREAD: u8 = 1 << 3;
pub(crate) const HAS_BYTES: u8 = 1 << 4;
pub(crate) const HAS_INSTRUCTIONS: u8 = 1 << 5;

/// Header of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Threads, numbered from 0.
    pub(crate) threads: u16,
    /// When the addresses of loads are assumed to be known: traces don't record it.
    pub(crate) after: Dependence,
    /// Bytes of a cache line of the traced machine.
    pub(crate) line: Option<u32>,
    /// Bytes of a page of the traced machine.
    pub(crate) page: Option<u32>,
}

impl Header {
    /// One thread whose loads wait for nothing.
    #[must_use]
    pub(crate) const fn one_thread() -> Self {
        Self { threads: 1, after: Dependence::None, line: None, page: None }
    }
}

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Data were read.
    Load,
    /// Data were written.
    Store,
    /// Data were read and written by one instruction.
    Modify,
    /// An instruction was fetched.
    Fetch,
    /// Computation; the record has no address and no bytes.
    Compute,
    /// An address was announced.
    Announce,
    /// An address was announced by a prefetch instruction.
    Hint,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Kind; KINDS] = [
        Kind::Load,
        Kind::Store,
        Kind::Modify,
        Kind::Fetch,
        Kind::Compute,
        Kind::Announce,
        Kind::Hint,
    ];
}

/// A record of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Thread.
    pub(crate) thread: u16,
    /// Kind.
    pub(crate) kind: Kind,
    /// Address, below `1 << ADDRESS_BITS`.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) bytes: u16,
    /// Instructions without data of the thread since its previous record; for `Compute`, their
    /// number.
    pub(crate) instructions: u32,
}

impl Record {
    /// Its operations, one micro-operation per instruction.
    pub(crate) fn ops(self, after: Dependence) -> impl Iterator<Item = Op> {
        let Self { kind, address, bytes, instructions, .. } = self;
        let before = (instructions > 0).then_some(Op::Compute { uops: instructions });
        let load = Op::Load { address, bytes, after };
        let (first, second) = match kind {
            Kind::Load => (Some(load), None),
            Kind::Store => (Some(Op::Store { address, bytes }), None),
            Kind::Modify => (Some(load), Some(Op::Store { address, bytes })),
            Kind::Fetch => (Some(Op::Fetch { address, bytes, density: 512 }), None),
            Kind::Compute => (None, None),
            Kind::Announce => (Some(Op::Announce { address, hint: false }), None),
            Kind::Hint => (Some(Op::Announce { address, hint: true }), None),
        };
        [before, first, second].into_iter().flatten()
    }
}

/// The previous record of a thread and kind.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    address: u64,
    bytes: u16,
}

/// State of reader and writer: the previous record of every thread and kind.
#[derive(Debug, Clone)]
struct RecordHistory {
    thread: u16,
    last: Vec<[Last; KINDS]>,
    records: u64,
}

impl RecordHistory {
    /// Initial state for `threads` threads, at most [`THREADS_MAX`].
    fn nothing(threads: u16) -> Self {
        Self { thread: 0, last: vec![Default::default(); usize::from(threads)], records: 0 }
    }
}

/// Zig-zag encoding of signed numbers.
const fn zig_zag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

const fn zag_zig(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

pub(crate) const AFTERS: [Dependence; 3] =
    [Dependence::None, Dependence::Load, Dependence::Announcement];
