//! A record in memory: key, position, and a payload that makes it as large as is wanted.
//!
//! | payload | record | lines |
//! |---|---|---|
//! | `[u32; 6]` | 32 bytes | half a line |
//! | `[u32; 14]` | 64 bytes | one, the paper's and the usual |
//! | `[u32; 30]` | 128 bytes | two |
//! | `[u32; 62]` | 256 bytes | four |
//!
//! A join copies whole records, so it asks for all their lines, a reference each: a helper loads
//! one line a reference, and admission counts lines (Zhou et al., VLDB 2005, §4.1).

use std::fmt::Debug;

use bytemuck::{Pod, Zeroable};

use crate::place::{LINE_BYTES, Lines, Place, References};

/// A row of a table: a join key, the row's own position, and payload; one line altogether, unless
/// the payload is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Record<P: Payload = OneLine> {
    /// Nothing but the record's alignment: one of a line or less lies in one line.
    align: [P::Align; 0],
    /// Join key.
    pub key: u32,
    /// Position in its table: what a checker needs to know a record again after it was copied.
    pub row: u32,
    /// Everything else the query carries along.
    pub payload: P,
}

const _: () = assert!(size_of::<Record>() == 64 && align_of::<Record>() == 64);

// SAFETY: two integers and a payload that is `Pod` itself; zeros are a value of each.
unsafe impl<P: Payload> Zeroable for Record<P> {}
// SAFETY: as above, and every `Payload` is asserted to leave no padding.
unsafe impl<P: Payload> Pod for Record<P> {}

impl<P: Payload> Record<P> {
    /// The record for a side without a match in an outer join: no record has this `row`.
    pub const NULL: Self = Self { align: [], key: 0, row: u32::MAX, payload: P::ZEROS };

    /// A record whose payload is one word, repeated.
    #[must_use]
    pub fn new(key: u32, row: u32, word: u32) -> Self {
        Self { align: [], key, row, payload: P::filled(word) }
    }
}

/// A joined row: twice a record, 128 bytes in Zhou et al., §6.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct JoinedRecord<P: Payload = OneLine> {
    /// From the probe (outer, left) side.
    pub probe: Record<P>,
    /// From the build (inner, right) side.
    pub build: Record<P>,
}

const _: () = assert!(size_of::<JoinedRecord>() == 128);

// SAFETY: two records, of which zeros are values.
unsafe impl<P: Payload> Zeroable for JoinedRecord<P> {}
// SAFETY: as above; two records are asserted to fill whole lines, with no padding.
unsafe impl<P: Payload> Pod for JoinedRecord<P> {}

/// The content of a record beside key and position: one of the four that are asserted to leave no
/// padding.
pub trait Payload: sealed::Sealed + Pod + Eq + Debug + Send + Sync {
    /// Of the record's alignment.
    type Align: Copy + Eq + Debug + Send + Sync;
    /// The references by which a walk asks for a record, or for a place of one line.
    type Asks: References + From<Place>;
    /// No word that is not zero.
    const ZEROS: Self;
    /// [`Record::NULL`], in memory.
    const NULL: &'static Record<Self>;
    /// One word, repeated.
    fn filled(word: u32) -> Self;
    /// Size of a record.
    const RECORD_BYTES: usize = size_of::<Record<Self>>();
    /// Lines of a record, of which it may share the only one with another.
    const RECORD_LINES: usize = Self::RECORD_BYTES.div_ceil(LINE_BYTES);
}

mod sealed {
    pub trait Sealed {}
}

/// The payload of a record of one line.
pub type OneLine = [u32; 14];

/// The alignment of half a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(32))]
pub struct HalfLine;

/// The alignment of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub struct Line;

macro_rules! payload {
    ($words:literal, $align:ty, $asks:ty) => {
        const _: () = {
            let bytes = 8 + 4 * $words;
            assert!(size_of::<Record<[u32; $words]>>() == bytes);
            assert!(size_of::<JoinedRecord<[u32; $words]>>() == 2 * bytes);
            assert!(bytes % align_of::<$align>() == 0 && 2 * bytes % LINE_BYTES == 0);
            assert!(<$asks as References>::MOST == bytes.div_ceil(LINE_BYTES));
        };

        impl sealed::Sealed for [u32; $words] {}
        impl Payload for [u32; $words] {
            type Align = $align;
            type Asks = $asks;
            const ZEROS: Self = [0; $words];
            const NULL: &'static Record<Self> = &Record::NULL;
            #[inline(always)]
            fn filled(word: u32) -> Self {
                [word; $words]
            }
        }
    };
}

payload!(6, HalfLine, Place);
payload!(14, Line, Place);
payload!(30, Line, Lines<2>);
payload!(62, Line, Lines<4>);
