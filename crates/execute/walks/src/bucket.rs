//! A hash table whose probe is one cache line: buckets of four keys and four values.
//!
//! ```text
//! home = ⌊hash · homes / 2⁶⁴⌋ ──►  ┌────┬────┬────┬────┬────┬────┬────┬────┐  64 bytes
//!                                  │ k0 │ k1 │ k2 │ k3 │ v0 │ v1 │ v2 │ v3 │
//! full? the next bucket in memory  └────┴────┴────┴────┴────┴────┴────┴────┘
//!
//! buckets   [ homes …………………………… | spill of the last homes | key zero's own chain ]
//! ```
//!
//! At half load a probe that hits reads 1.04 lines. Chained, salted and unchained tables read two
//! or more, and lose to this one by about two times wherever a table fits memory (Ross, *Efficient
//! Hash Probes on Modern Processors*, ICDE 2007; our own measurements in `benches/bucket.rs`).
//!
//! * **Empty slots hold zero**, so that fresh pages are an empty table and nothing is written
//!   twice. No key is lost: zero itself is stored as one, in a chain of buckets that only zeros
//!   live in.
//! * **Slots fill in order**, so the last slot tells whether a bucket is full.
//! * **Whether a full bucket has sent keys on** is kept in the order of its last two keys,
//!   ascending until it has (equal keys count as having): an exact answer for no space. A miss then
//!   ends after 1.06 lines; stopping only at buckets with room would cost 1.17.
//! * **The range of the hash is reduced by multiplication** (Lemire, *Fast Random Integer
//!   Generation in an Interval*, TOMACS 2019), so a table has the size that was requested and not
//!   the next power of two.
//! * **Equal keys** are several entries. The build compares each key with all it passes, so it
//!   knows whether any key repeats; if none does, a probe may stop at its first match ([`First`]).
//! * **Two ways to look up**: [`Probe`] is a walk, for every schedule; [`select`] is the same
//!   lookup as one loop over a vector without a branch on what it reads, where each key is held
//!   once.
//! * **An entry lies less than [`REACH`] buckets from its home.** A build that cannot keep this
//!   says so instead of degrading to a scan: the table is too full or a key repeats too often.

pub mod build;
mod compare;
pub mod group;
mod output;
pub mod partitions;
pub mod probe;
pub mod select;
#[cfg(test)]
mod tests;

pub use build::Build;
pub use compare::Compare;
pub use group::{Group, Grouping};
pub use output::{Batch, Output};
pub use partitions::Partitions;
pub use probe::{Every, First, Matches, Probe};

use bytemuck::{Pod, Zeroable};
use workahead_machine::pages::{AllocationError, PageBuffer, Pages, Supply};

use crate::hash::hash_u64;
use crate::memory::Direct;
use crate::schedule::Schedule;
use crate::walk::Rows;

/// Entries in a bucket.
pub const SLOTS: usize = 4;

/// Most buckets an entry may lie from its home, itself included. At three quarters of full, the
/// longest run of full buckets in 2³⁰ is a few dozen; and a key may repeat about a thousand times.
pub const REACH: usize = 256;

/// Most buckets of a table: positions of entries are counted in 32 bits.
const BUCKETS_MAX: usize = 1 << 30;

/// Buckets beside the homes: what the last of them spill into, and key zero's own chain.
const SPARE_BUCKETS: usize = 2 * REACH;

/// The content of an empty slot.
const EMPTY: u64 = 0;

/// One cache line: four keys and their values.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Bucket {
    keys: [u64; SLOTS],
    values: [u64; SLOTS],
}

const _: () = assert!(size_of::<Bucket>() == crate::place::LINE_BYTES);

/// Whether a bucket with these keys has sent any on to the next.
#[inline(always)]
fn has_spilled(keys: &[u64; SLOTS]) -> bool {
    // Full, and not ascending. An empty last slot wraps to the largest number.
    keys[3].wrapping_sub(1) < keys[2]
}

/// A table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The system has no memory for it.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// More buckets than positions can count.
    #[error("{entries} entries at {load} are more than a bucket table holds: partition them first")]
    TooLarge {
        /// Requested entries.
        entries: usize,
        /// Requested load.
        load: Load,
    },
    /// Entries found no bucket near enough to their home.
    #[error(
        "{refused} of {entries} entries found no room within {REACH} buckets: choose a lower load, \
         or a chained table where one key repeats more than {} times",
        REACH * SLOTS / 2
    )]
    Crowded {
        /// Entries that found no room.
        refused: usize,
        /// Entries offered.
        entries: usize,
    },
}

/// How full a table may get, in hundredths of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load(u8);

impl Load {
    /// Half full: what the figures of this table are taken at.
    pub const HALF: Self = Self(50);

    /// From 1 to 90 hundredths; `None` outside.
    #[must_use]
    pub const fn percent(hundredths: u8) -> Option<Self> {
        if 1 <= hundredths && hundredths <= 90 { Some(Self(hundredths)) } else { None }
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} % load", self.0)
    }
}

/// A bucket table from 64-bit keys to 64-bit values.
///
/// ```
/// use workahead_machine::pages::Pages;
/// use workahead_walks::bucket::{Load, Table};
/// let table = Table::of(&[7, 0, 7], &[70, 0, 71], Load::HALF, Pages::Huge)?;
/// assert_eq!(table.len(), 3);
/// assert!(table.repeats(), "seven is there twice");
/// # Ok::<(), workahead_walks::bucket::TableError>(())
/// ```
pub struct Table {
    buckets: PageBuffer<Bucket>,
    /// Buckets that keys other than zero call home.
    homes: u32,
    entries: usize,
    repeats: bool,
}

impl Table {
    /// An empty table with room for a given number of entries.
    ///
    /// # Errors
    /// When memory cannot be allocated, or the entries are more than a table can count.
    pub fn for_entries(
        entries: usize,
        load: Load,
        pages: impl Into<Supply>,
    ) -> Result<Self, TableError> {
        let too_large = TableError::TooLarge { entries, load };
        let homes = Self::homes_for(entries, load).ok_or(too_large)?;
        let buckets = pages.into().zeroed(homes + SPARE_BUCKETS)?;
        Ok(Self { buckets, homes: homes as u32, entries: 0, repeats: false })
    }

    /// Buckets that the keys of a given number of entries call home; `None` beyond what a table can
    /// count.
    fn homes_for(entries: usize, load: Load) -> Option<usize> {
        let homes = entries.checked_mul(100)?.div_ceil(SLOTS * usize::from(load.0)).max(1);
        (homes + SPARE_BUCKETS <= BUCKETS_MAX).then_some(homes)
    }

    /// Bytes of a table with room for a given number of entries; `None` where there can be no such
    /// table.
    #[must_use]
    pub fn bytes_for(entries: usize, load: Load) -> Option<usize> {
        Some((Self::homes_for(entries, load)? + SPARE_BUCKETS) * size_of::<Bucket>())
    }

    /// A table of pairs, built by the schedule that is best for it on most machines.
    ///
    /// # Errors
    /// As [`Table::for_entries`] and [`Build::finish`].
    ///
    /// # Panics
    /// If keys and values differ in number, or are 2³² or more.
    pub fn of(keys: &[u64], values: &[u64], load: Load, pages: Pages) -> Result<Self, TableError> {
        Self::for_entries(keys.len(), load, pages)?.extended(keys, values)
    }

    /// The table with more pairs in it.
    ///
    /// # Errors
    /// As [`Build::finish`]; the table is then lost.
    ///
    /// # Panics
    /// As [`Table::of`].
    pub fn extended(self, keys: &[u64], values: &[u64]) -> Result<Self, TableError> {
        /// Beyond the latency of a miss at the speed of this loop; wider gains nothing.
        const DISTANCE: usize = 32;
        let mut build = Build::new(self, keys, values);
        let mut rows = Rows::range(0..keys.len() as u32);
        let mut schedule = crate::schedule::Distance::new(DISTANCE);
        let mut memory = crate::memory::Prefetching::<crate::memory::ToL1>::default();
        schedule.drive(&mut build, &mut rows, &mut memory, &mut ());
        build.finish()
    }

    /// Entries held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of the buckets: all the memory of the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buckets.bytes()
    }

    /// The buckets themselves: what a measurement of the machine's limit reads at random, so that
    /// the limit is that of the very pages the table lies on.
    #[must_use]
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The line that a lookup of a key touches first, by its number in the table.
    #[must_use]
    pub fn line(&self, key: u64) -> usize {
        home(self.homes, key) as usize
    }

    /// Whether any key is held more than once.
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// All values of a key, one after the other: for tests and small uses.
    #[must_use]
    pub fn values_of(&self, key: u64) -> Vec<u64> {
        let probe = Probe::<_, Every>::new(self, crate::isa::Portable, std::slice::from_ref(&key));
        let mut found = Vec::new();
        let mut schedule = crate::schedule::InTurn::new();
        schedule.drive(&mut { probe }, &mut Rows::range(0..1), &mut Direct, &mut found);
        found.into_iter().map(|(_, value)| value).collect()
    }
}

/// Where a key's entries start.
#[inline(always)]
fn home(homes: u32, key: u64) -> u32 {
    if key == EMPTY {
        // Past the reach of the last home.
        return homes + REACH as u32;
    }
    ((u128::from(hash_u64(key)) * u128::from(homes)) >> 64) as u32
}

/// The stored form of a key: itself, but for zero, which is the only key in its chain.
#[inline(always)]
fn stored(key: u64) -> u64 {
    key + u64::from(key == EMPTY)
}
