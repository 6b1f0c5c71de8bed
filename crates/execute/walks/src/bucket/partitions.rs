//! A radix-partitioned build that stays in cache, on any number of threads: rows are partitioned by
//! their keys' home buckets, then each partition of the table is filled on its own.
//!
//! ```text
//! keys ─► count ─► partition ─► │  rows 0 │  rows 1 │  rows 2 │ …   one pass, sequential streams
//!                                    ▼         ▼         ▼
//! buckets                       │ 256 KiB │ 256 KiB │ 256 KiB │ …   filled in L2, by any thread
//! overflow                           └─────────┴────── rows without room in their partition are
//!                                                      added one by one at the end
//! ```
//!
//! The table that comes out is the one that [`Table::grouped`] makes, but for the order in buckets.
//! Beyond L2 a build row by row misses once for every row, and pays for the page table as well;
//! here memory is only streamed through. (Shatdal, Kant, Naughton, *Cache Conscious Algorithms for
//! Relational Query Processing*, VLDB 1994; Balkesen et al., ICDE 2013. Partitioned is the *build*
//! only: probes of a table with one line per lookup overlap their misses well enough.)

use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use super::group::{COUNT_ONE, Group, Offer, meet};
use super::{Bucket, Compare, Load, REACH, SPARE_BUCKETS, Table, TableError, home, stored};
use crate::isa::Detected;
use crate::memory::Direct;
use crate::walk::Row;
use crate::with_isa;

/// Most partitions: as many streams as can be written at a time.
const PARTITIONS_MAX: usize = 2048;

/// How a table is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions {
    homes: u32,
    /// log2 of the buckets of a partition.
    shift: u32,
}

/// A row on its way.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Pair {
    key: u64,
    value: u64,
}

/// How many rows go to each partition.
#[derive(Debug, Clone)]
pub struct Counts {
    partitions: Partitions,
    rows: Vec<u32>,
}

/// Rows sorted by partition, in the order they came; of one thread.
pub struct PartitionedRows {
    partitions: Partitions,
    pairs: PageBuffer<Pair>,
    /// By partition: where the next row goes, in the end where the next partition starts.
    ends: Vec<u32>,
}

impl Partitions {
    /// Cuts a table for a given number of entries into partitions of about a given number of bytes.
    ///
    /// # Errors
    /// When there can be no such table.
    pub fn of(entries: usize, load: Load, partition_bytes: usize) -> Result<Self, TableError> {
        let too_large = TableError::TooLarge { entries, load };
        let homes = Table::homes_for(entries, load).ok_or(too_large)?;
        let least = (homes + SPARE_BUCKETS).div_ceil(PARTITIONS_MAX);
        let buckets = (partition_bytes / size_of::<Bucket>()).max(least).max(REACH);
        // A power of two, rounded down unless the partitions were too many.
        let shift = buckets.ilog2() + u32::from(buckets == least && !least.is_power_of_two());
        Ok(Self { homes: homes as u32, shift })
    }

    fn buckets(self) -> usize {
        self.homes as usize + SPARE_BUCKETS
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> usize {
        self.buckets().div_ceil(1 << self.shift)
    }

    /// Bytes of a given number of rows on their way to their partitions.
    #[must_use]
    pub fn row_bytes(rows: usize) -> usize {
        rows * size_of::<Pair>()
    }

    /// Where a key is at home.
    #[inline(always)]
    #[must_use]
    pub fn partition(self, key: u64) -> usize {
        (home(self.homes, key) >> self.shift) as usize
    }

    /// None counted yet.
    #[must_use]
    pub fn counts(self) -> Counts {
        Counts { partitions: self, rows: vec![0; self.count()] }
    }

    /// The table of all rows: as [`Table::grouped`] makes it, where the rows of the first thread
    /// come first. And the rows whose key was there, each with the key's first row.
    ///
    /// # Errors
    /// As [`Table::grouped`].
    pub fn group(
        self,
        rows: &[PartitionedRows],
        threads: usize,
        pages: &Supply,
    ) -> Result<(Table, Vec<(Row, Row)>), TableError> {
        let mut table = self.empty(pages)?;
        let count = |value: &mut u64, row: u64, repeats: &mut Vec<(Row, Row)>| {
            repeats.push((row as Row, Group::of(*value).first_row()));
            *value += COUNT_ONE;
        };
        let done = self.fill(&mut table, rows, (threads, pages), count)?;
        Ok((table, done.into_iter().flatten().collect()))
    }

    /// The table of all rows, if none has a key that another has.
    ///
    /// # Errors
    /// As [`Table::grouped`].
    pub fn unique(
        self,
        rows: &[PartitionedRows],
        threads: usize,
        pages: &Supply,
    ) -> Result<Option<Table>, TableError> {
        let mut table = self.empty(pages)?;
        let note = |_: &mut u64, _, repeats: &mut bool| *repeats = true;
        let done = self.fill(&mut table, rows, (threads, pages), note)?;
        Ok((!done.contains(&true)).then_some(table))
    }

    /// Buckets with anything in them if they are from a pool.
    fn empty(self, pages: &Supply) -> Result<Table, AllocationError> {
        let buckets = pages.any(self.buckets())?;
        Ok(Table { buckets, homes: self.homes, entries: 0, repeats: false })
    }

    /// Fills every partition, and gives what the threads noted of repeated keys.
    fn fill<N: Default + Send>(
        self,
        table: &mut Table,
        rows: &[PartitionedRows],
        (threads, pages): (usize, &Supply),
        again: impl Fn(&mut u64, u64, &mut N) + Copy + Sync,
    ) -> Result<Vec<N>, TableError> {
        let partitions = Mutex::new(table.buckets.chunks_mut(1 << self.shift).enumerate());
        let next = || partitions.lock().unwrap_or_else(PoisonError::into_inner).next();
        let (next, clear) = (&next, pages.is_pooled());
        let work = || {
            let mut done = ThreadWork::<N>::default();
            while let Some((partition, buckets)) = next() {
                if clear {
                    buckets.fill(Bucket::zeroed());
                }
                let first = (partition << self.shift) as u32;
                for partitioned in rows {
                    let pairs = partitioned.partition(partition);
                    with_isa!(Detected::best(), isa =>
                        done.fill((self.homes, first), buckets, pairs, isa, again));
                }
            }
            done
        };
        let done: Vec<ThreadWork<N>> = std::thread::scope(|scope| {
            let others = (1..threads).map_while(|_| {
                // A thread that does not start is one less.
                std::thread::Builder::new().spawn_scoped(scope, work).ok()
            });
            let others: Vec<_> = others.collect();
            let own = work();
            let others = others.into_iter().map(|thread| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(own).chain(others).collect()
        });
        let mut last = ThreadWork::<N>::default();
        let mut noted = Vec::with_capacity(threads + 1);
        let mut over = Vec::new();
        for thread in done {
            table.entries += thread.entries;
            noted.push(thread.noted);
            over.extend(thread.over);
        }
        let everywhere = &mut table.buckets[..];
        with_isa!(Detected::best(), isa =>
            last.fill((self.homes, 0), everywhere, &over, isa, again));
        table.entries += last.entries;
        noted.push(last.noted);
        match last.over.len() {
            0 => Ok(noted),
            refused => Err(TableError::Crowded { refused, entries: table.entries + refused }),
        }
    }
}

impl Counts {
    /// Counts some rows.
    pub fn add(&mut self, keys: &[u64]) {
        for key in keys {
            self.rows[self.partitions.partition(*key)] += 1;
        }
    }

    /// Room for the rows that were counted.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    ///
    /// # Panics
    /// If they are 2³² or more.
    pub fn allocate(self, pages: &Supply) -> Result<PartitionedRows, AllocationError> {
        let mut ends = self.rows;
        let mut total = 0_u32;
        for end in &mut ends {
            let rows = std::mem::replace(end, total);
            total = total.checked_add(rows).expect("rows are counted in 32 bits");
        }
        let pairs = pages.any(total as usize)?;
        Ok(PartitionedRows { partitions: self.partitions, pairs, ends })
    }
}

impl PartitionedRows {
    /// Adds rows that were counted: the value of each by its place.
    ///
    /// # Panics
    /// If more are added than were counted.
    #[inline]
    pub fn add(&mut self, keys: &[u64], value: impl Fn(usize) -> u64) {
        for (at, key) in keys.iter().enumerate() {
            let next = &mut self.ends[self.partitions.partition(*key)];
            self.pairs[*next as usize] = Pair { key: *key, value: value(at) };
            *next += 1;
        }
    }

    fn partition(&self, partition: usize) -> &[Pair] {
        let start = partition.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.pairs[start as usize..self.ends[partition] as usize]
    }
}

/// The work of one thread.
#[derive(Default)]
struct ThreadWork<N> {
    entries: usize,
    /// Rows that found no room in their partition, in their order.
    over: Vec<Pair>,
    noted: N,
}

impl<N> ThreadWork<N> {
    /// Puts rows into buckets of which the first is `first` of the table.
    #[inline(always)]
    fn fill<I: Compare>(
        &mut self,
        (homes, first): (u32, u32),
        buckets: &mut [Bucket],
        pairs: &[Pair],
        isa: I,
        again: impl Fn(&mut u64, u64, &mut N),
    ) {
        for pair in pairs {
            let start = (home(homes, pair.key) - first) as usize;
            let reach = (start + REACH).min(buckets.len());
            let mut met = Offer::Full;
            for bucket in &mut buckets[start..reach] {
                met = meet(bucket, isa, (stored(pair.key), pair.value), &mut Direct);
                match met {
                    Offer::Put => self.entries += 1,
                    Offer::Held(slot) => {
                        again(&mut bucket.values[slot], pair.value, &mut self.noted)
                    }
                    Offer::Full => continue,
                }
                break;
            }
            if matches!(met, Offer::Full) {
                self.over.push(*pair);
            }
        }
    }
}

#[cfg(test)]
mod tests;
