//! One part of a table at a time, in the same few buckets: what a join by partitions looks up in.
//!
//! ```text
//! the table that is never made   │ part 0 │ part 1 │ part 2 │ part 3 │ …
//! window                                           │ buckets of a part │ reach │   stays in L2
//! ```
//!
//! A window is filled from the rows of a part, asked for the keys of that part, and filled anew.
//! Its buckets are those of [`Parts`], but that what is sent on past the part's end stays within
//! reach of it. A key that comes again is found by going over to chains: entries then name the last
//! row of their key, and that the one before.

use bytemuck::Zeroable;
use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use super::group::{Met, meet};
use super::select::{Within, look_up_in};
use super::{Bucket, Compare, Parts, REACH, TableError, home, stored};
use crate::answers::{Answers, BLOCK};
use crate::isa::Detected;
use crate::memory::{Direct, Prefetching, ToL1};
use crate::walk::{Row, Sink};
use crate::with_isa;

/// Keys looked up at a time: their answers stay in L1.
const VECTOR: usize = 1024;

/// The last of a chain.
const NONE: u32 = u32::MAX;

/// A part of a table.
pub struct Window {
    parts: Parts,
    buckets: PageBuffer<Bucket>,
    /// The place of the first bucket in the whole table.
    first: u32,
    /// Values of repeated keys, and where the next value of each is; empty if none repeats.
    chains: Vec<(u64, u32)>,
    answers: Answers,
}

/// Why a part was not filled.
enum Unfilled {
    /// A key came again.
    Repeats,
    /// Rows found no room.
    Crowded,
}

impl Window {
    /// Of no part yet.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    pub fn of(parts: Parts, pages: &Supply) -> Result<Self, AllocationError> {
        let buckets = pages.any(parts.part_buckets() + REACH)?;
        Ok(Self { parts, buckets, first: 0, chains: Vec::new(), answers: Answers::default() })
    }

    /// Forgets all keys, and holds those of a part.
    ///
    /// # Errors
    /// When keys find no room within reach.
    ///
    /// # Panics
    /// If a key is not of the part, or there are 2³² − 1 rows or more.
    pub fn fill<'r, V: Copy + Into<u64> + 'r>(
        &mut self,
        part: usize,
        rows: impl Iterator<Item = (&'r [u64], &'r [V])> + Clone,
    ) -> Result<(), TableError> {
        self.first = (part * self.parts.part_buckets()) as u32;
        let run = || rows.clone().map(|(keys, values)| keys.iter().zip(values));
        with_isa!(Detected::best(), isa => {
            self.chains.clear();
            let filled = match self.put_unique(isa, run().flatten()) {
                Err(Unfilled::Repeats) => self.put(isa, run().flatten()),
                filled => filled,
            };
            filled.map_err(|_| {
                let entries = rows.clone().map(|(keys, _)| keys.len()).sum();
                TableError::Crowded { refused: 1, entries }
            })
        })
    }

    /// Entries are values.
    #[inline(always)]
    fn put_unique<'r, V: Copy + Into<u64> + 'r>(
        &mut self,
        isa: impl Compare,
        rows: impl Iterator<Item = (&'r u64, &'r V)>,
    ) -> Result<(), Unfilled> {
        self.buckets.fill(Bucket::zeroed());
        for (key, value) in rows {
            if self.meet(isa, *key, (*value).into())?.is_some() {
                return Err(Unfilled::Repeats);
            }
        }
        Ok(())
    }

    /// Entries are the heads of chains.
    #[inline(always)]
    fn put<'r, V: Copy + Into<u64> + 'r>(
        &mut self,
        isa: impl Compare,
        rows: impl Iterator<Item = (&'r u64, &'r V)>,
    ) -> Result<(), Unfilled> {
        self.buckets.fill(Bucket::zeroed());
        for (key, value) in rows {
            let own = u32::try_from(self.chains.len()).ok().filter(|own| *own != NONE);
            let own = own.expect("rows of a part are counted in 32 bits");
            let before = match self.meet(isa, *key, own.into())? {
                Some(head) => std::mem::replace(head, own.into()) as u32,
                None => NONE,
            };
            self.chains.push(((*value).into(), before));
        }
        Ok(())
    }

    /// Puts an entry into the first bucket with room, or gives what the key's own has.
    #[inline(always)]
    fn meet(
        &mut self,
        isa: impl Compare,
        key: u64,
        value: u64,
    ) -> Result<Option<&mut u64>, Unfilled> {
        let start = (home(self.parts.homes(), key) - self.first) as usize;
        for at in start..start + REACH {
            let bucket = &mut self.buckets[at];
            match meet(bucket, isa, (stored(key), value), &mut Direct) {
                Met::Put => return Ok(None),
                Met::Held(slot) => return Ok(Some(&mut self.buckets[at].values[slot])),
                Met::Full => {}
            }
        }
        Err(Unfilled::Crowded)
    }

    /// Looks up keys of the part that it holds; each has a row.
    ///
    /// # Panics
    /// If a key is not of the part, or keys and rows differ in number.
    pub fn probe<S: Sink<u64>>(&mut self, keys: &[u64], rows: &[Row], sink: &mut S) {
        assert_eq!(keys.len(), rows.len(), "every key needs a row");
        let Self { parts, buckets, first, chains, answers } = self;
        let (homes, first, last) = (parts.homes(), *first, buckets.len() as u32 - 1);
        let within = Within::new(
            buckets,
            #[inline(always)]
            |key| home(homes, key).wrapping_sub(first).min(last - 1),
        );
        let memory = &mut Prefetching::<ToL1>::default();
        with_isa!(Detected::best(), isa => {
            for (keys, rows) in keys.chunks(VECTOR).zip(rows.chunks(VECTOR)) {
                look_up_in(within, isa, keys, memory, answers);
                if chains.is_empty() {
                    each(answers, rows, |row, value| sink.emit(row, value));
                } else {
                    each(answers, rows, |row, head| {
                        let mut at = head as u32;
                        while let Some((value, next)) = chains.get(at as usize) {
                            sink.emit(row, *value);
                            at = *next;
                        }
                    });
                }
            }
        });
    }
}

/// The rows that were found, with what.
#[inline(always)]
fn each(answers: &Answers, rows: &[Row], mut found: impl FnMut(Row, u64)) {
    for (block, bits) in answers.found().iter().enumerate() {
        let values = &answers.values()[block * BLOCK..];
        let rows = &rows[block * BLOCK..];
        if *bits == u64::MAX {
            let whole = rows[..BLOCK].iter().zip(&values[..BLOCK]);
            whole.for_each(|(row, value)| found(*row, *value));
            continue;
        }
        let mut bits = *bits;
        while bits != 0 {
            let at = bits.trailing_zeros() as usize;
            found(rows[at], values[at]);
            bits &= bits - 1;
        }
    }
}
