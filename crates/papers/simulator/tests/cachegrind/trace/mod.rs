//! Traces of addresses: a compact file, read and written in bounded memory.
//!
//! ```text
//!   header   89 57 41 54 0D 0A 1A 0A   magic: what a transfer as text would change
//!            u16 version  u16 threads  u8 after  u8 line shift  u8 page shift  u8 zero
//!   record   tag [thread] [Δ address] [bytes] [instructions]     integers are LEB128
//!            tag: kind in bits 0 to 2; which of thread (3), bytes (4), instructions (5) follow
//!   end      07  number of records  u32 CRC-32 of every byte before it
//! ```
//!
//! Numbers of fixed size are little-endian. A thread that does not follow is the one of the record
//! before, bytes those of the thread's last record of the kind, instructions none. Addresses are
//! differences to that same record, zig-zag. The line and page of the machine that was traced are
//! notes; a shift of 0 says nothing. The end is what tells a whole file from a part of one.

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

use workahead_simulator::op::{After, Op};

/// What a file begins with.
pub(crate) const MAGIC: [u8; 8] = *b"\x89WAT\r\n\x1a\n";
/// What this reads and writes.
pub(crate) const VERSION: u16 = 1;
/// Threads of a trace: state is kept for each, so there must be an end of them.
pub(crate) const THREADS_MAX: u16 = 1024;
/// Bits of an address: what processors translate, and no sum of address and length overflows.
pub(crate) const ADDRESS_BITS: u32 = 56;
/// Instructions of a record: times stay far below what a tick counter holds.
pub(crate) const INSTRUCTIONS_MAX: u32 = 1 << 24;
/// Kinds, and with them the addresses remembered of a thread.
pub(crate) const KINDS: usize = 7;
/// The tag of the end.
pub(crate) const END: u8 = 7;
pub(crate) const HAS_THREAD: u8 = 1 << 3;
pub(crate) const HAS_BYTES: u8 = 1 << 4;
pub(crate) const HAS_INSTRUCTIONS: u8 = 1 << 5;

/// What is known of a whole trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Threads, numbered from 0.
    pub(crate) threads: u16,
    /// When the addresses of loads are taken to be known: traces say nothing of it.
    pub(crate) after: After,
    /// Bytes of a cache line of the machine that was traced.
    pub(crate) line: Option<u32>,
    /// Bytes of a page of it.
    pub(crate) page: Option<u32>,
}

impl Header {
    /// Of one thread whose loads wait for nothing.
    #[must_use]
    pub(crate) const fn one_thread() -> Self {
        Self { threads: 1, after: After::Nothing, line: None, page: None }
    }
}

/// What was done.
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
    /// Nothing that touches memory; such a record has no address and no bytes.
    Compute,
    /// An address was said to be used soon.
    Announce,
    /// The same, by a prefetch instruction.
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

/// One thing that a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Who.
    pub(crate) thread: u16,
    /// What.
    pub(crate) kind: Kind,
    /// Where: below `1 << ADDRESS_BITS`.
    pub(crate) address: u64,
    /// How much.
    pub(crate) bytes: u16,
    /// Instructions without data of the thread since its record before; of `Compute`, how many
    /// there were.
    pub(crate) instructions: u32,
}

impl Record {
    /// The operations of it, one micro-operation an instruction.
    pub(crate) fn ops(self, after: After) -> impl Iterator<Item = Op> {
        let Self { kind, address, bytes, instructions, .. } = self;
        let before = (instructions > 0).then_some(Op::Compute { uops: instructions });
        let load = Op::Load { address, bytes, after };
        let (first, second) = match kind {
            Kind::Load => (Some(load), None),
            Kind::Store => (Some(Op::Store { address, bytes }), None),
            Kind::Modify => (Some(load), Some(Op::Store { address, bytes })),
            Kind::Fetch => (Some(Op::Fetch { address, bytes }), None),
            Kind::Compute => (None, None),
            Kind::Announce => (Some(Op::Announce { address, hint: false }), None),
            Kind::Hint => (Some(Op::Announce { address, hint: true }), None),
        };
        [before, first, second].into_iter().flatten()
    }
}

/// What the next record of a thread and kind is told apart from.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    address: u64,
    bytes: u16,
}

/// The state of both ends: what was said of every thread and kind.
#[derive(Debug, Clone)]
struct Said {
    thread: u16,
    last: Vec<[Last; KINDS]>,
    records: u64,
}

impl Said {
    /// Of so many threads, at most [`THREADS_MAX`].
    fn nothing(threads: u16) -> Self {
        Self { thread: 0, last: vec![Default::default(); usize::from(threads)], records: 0 }
    }
}

/// Small numbers of either sign as small numbers.
const fn zig_zag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

const fn zag_zig(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

pub(crate) const AFTERS: [After; 3] = [After::Nothing, After::Load, After::Announcement];
