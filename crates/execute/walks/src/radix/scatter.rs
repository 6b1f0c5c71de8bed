//! Rows, sorted by partition: counted, then written a cache line at a time.
//!
//! ```text
//! row ─► partition p ─► lane p:  │ 8 keys │ 8 or 16 values │   128 bytes, in cache
//!                                    full?         full?
//!                                     ▼              ▼          one store of a whole line,
//! keys    │ 0 … │ 1 …… │ 2 … │ …    values  │ 0 … │ 1 …… │ …   past the caches
//! ```
//!
//! A row written straight to its partition touches a line, and often a page, that is long gone when
//! the next row of that partition comes. Lanes collect a line first, so memory sees one store where
//! it saw eight, and none of them reads (*software write-combining*: Intel's manuals; Wassenberg,
//! Sanders, *Engineering a Multi-core Radix Sort*, Euro-Par 2011; for joins Balkesen, Teubner,
//! Alonso, Özsu, ICDE 2013).
//!
//! * **Keys and values are columns**: 12 bytes a row where values are 32-bit rows, not 16; and the
//!   keys of a partition are the vector that lookups want.
//! * **Nothing lies between partitions**, though lines are stored whole: the first line of one also
//!   has the last rows of another. These are still in that one's lane, and are written at the end.

use bytemuck::Pod;
use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use super::stream::{Line, WORDS, past_caches};
use crate::bucket::Parts;
use crate::isa::Detected;
use crate::memory::{Memory, Prefetching, ToL1};
use crate::place::{Intent, Place};
use crate::with_isa;

/// Rows whose lanes are announced together: this number fits L1 beside all else.
const BLOCK: usize = 32;

/// What goes with a key: a row, or a value in its place.
pub trait Value: Pod + Send + Sync + Into<u64> + sealed::Sealed {
    /// How many make a line.
    const IN_LINE: usize;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

impl Value for u32 {
    const IN_LINE: usize = 2 * WORDS;
}

impl Value for u64 {
    const IN_LINE: usize = WORDS;
}

/// How many rows go to each partition.
#[derive(Debug, Clone)]
pub struct Histogram {
    rows: Vec<u32>,
}

impl Histogram {
    /// No rows yet in any of `partitions` partitions.
    #[must_use]
    pub fn of(partitions: usize) -> Self {
        Self { rows: vec![0; partitions] }
    }

    /// Counts keys.
    #[inline(always)]
    pub fn add(&mut self, keys: &[u64], partition: impl Fn(u64) -> usize) {
        for key in keys {
            self.rows[partition(*key)] += 1;
        }
    }
}

/// What a partition has of a line that is not full.
#[derive(Clone, Copy)]
struct Lane {
    keys: Line,
    values: Line,
}

/// Rows on their way to their partitions; of one thread.
pub struct Scatter<V> {
    keys: PageBuffer<Line>,
    values: PageBuffer<Line>,
    lanes: Vec<Lane>,
    /// Where the next row of each partition goes, and where its first went.
    next: Vec<u32>,
    starts: Vec<u32>,
    _values: std::marker::PhantomData<V>,
}

/// Rows by partition, those of each in the order they came.
pub struct Scattered<V> {
    keys: PageBuffer<Line>,
    values: PageBuffer<Line>,
    /// One more than there are partitions.
    starts: Vec<u32>,
    _values: std::marker::PhantomData<V>,
}

impl<V: Value> Scatter<V> {
    /// Bytes of a given number of rows.
    #[must_use]
    pub fn bytes_for(rows: usize) -> usize {
        (rows.div_ceil(WORDS) + rows.div_ceil(V::IN_LINE)) * size_of::<Line>()
    }

    /// Bytes in cache of each partition that is written to.
    pub(super) const LANE_BYTES: usize = size_of::<Lane>() + size_of::<u32>();

    /// Room for the rows that were counted.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    ///
    /// # Panics
    /// If they are 2³² or more.
    pub fn of(histogram: Histogram, pages: &Supply) -> Result<Self, AllocationError> {
        let mut starts = histogram.rows;
        let mut total = 0_u32;
        for start in &mut starts {
            let rows = std::mem::replace(start, total);
            total = total.checked_add(rows).expect("rows are counted in 32 bits");
        }
        let rows = total as usize;
        Ok(Self {
            keys: pages.any(rows.div_ceil(WORDS))?,
            values: pages.any(rows.div_ceil(V::IN_LINE))?,
            lanes: vec![Lane { keys: Line([0; WORDS]), values: Line([0; WORDS]) }; starts.len()],
            next: starts.clone(),
            starts: starts.into_iter().chain([total]).collect(),
            _values: std::marker::PhantomData,
        })
    }

    /// Adds rows that were counted: the value of each by its place.
    ///
    /// # Panics
    /// If there are more rows than were counted; or [`finish`](Self::finish) panics then.
    #[inline(always)]
    pub fn add(
        &mut self,
        keys: &[u64],
        partition: impl Fn(u64) -> usize,
        value: impl Fn(usize) -> V,
    ) {
        let Self { lanes, next, .. } = self;
        let (mut memory, mut partitions) = (Prefetching::<ToL1>::default(), [0_u32; BLOCK]);
        past_caches(&mut self.keys, &mut self.values, |to_keys, to_values| {
            for (at, key) in keys.iter().enumerate() {
                if at % BLOCK == 0 {
                    // A store that misses L1 holds up those behind it.
                    for (to, key) in partitions.iter_mut().zip(&keys[at..]) {
                        *to = partition(*key) as u32;
                        memory.fetch(Place::of(&lanes[*to as usize]), Intent::Write);
                    }
                }
                let partition = partitions[at % BLOCK] as usize;
                let (lane, next) = (&mut lanes[partition], &mut next[partition]);
                let to = *next as usize;
                *next += 1;
                lane.keys.0[to % WORDS] = *key;
                of_line_mut::<V>(&mut lane.values)[to % V::IN_LINE] = value(at);
                if to % WORDS == WORDS - 1 {
                    to_keys.store(to / WORDS, &lane.keys);
                    if to % V::IN_LINE == V::IN_LINE - 1 {
                        to_values.store(to / V::IN_LINE, &lane.values);
                    }
                }
            }
        });
    }

    /// Writes what is left in the lanes.
    ///
    /// # Panics
    /// If a partition has not the rows that were counted.
    #[must_use]
    pub fn finish(mut self) -> Scattered<V> {
        for (partition, lane) in self.lanes.iter().enumerate() {
            let (start, end) = (self.starts[partition] as usize, self.next[partition] as usize);
            let counted = self.starts[partition + 1] as usize;
            assert_eq!(end, counted, "partition {partition} has other rows than were counted");
            let rest = start.max(end / WORDS * WORDS)..end;
            for at in rest {
                self.keys[at / WORDS].0[at % WORDS] = lane.keys.0[at % WORDS];
            }
            let rest = start.max(end / V::IN_LINE * V::IN_LINE)..end;
            for at in rest {
                let value = of_line::<V>(&lane.values)[at % V::IN_LINE];
                of_line_mut::<V>(&mut self.values[at / V::IN_LINE])[at % V::IN_LINE] = value;
            }
        }
        let Self { keys, values, starts, .. } = self;
        Scattered { keys, values, starts, _values: std::marker::PhantomData }
    }
}

/// Rows by the part of a table that their keys call home: the value of each by its place.
///
/// # Errors
/// When memory cannot be allocated.
///
/// # Panics
/// If they are 2³² or more.
pub fn scattered<V: Value>(
    parts: Parts,
    keys: &[u64],
    value: impl Fn(usize) -> V,
    pages: &Supply,
) -> Result<Scattered<V>, AllocationError> {
    with_isa!(Detected::best(), isa => {
        let _inside = isa;
        let mut histogram = Histogram::of(parts.count());
        histogram.add(keys, #[inline(always)] |key| parts.part(key));
        let mut scatter = Scatter::of(histogram, pages)?;
        scatter.add(keys, #[inline(always)] |key| parts.part(key), value);
        Ok(scatter.finish())
    })
}

impl<V: Value> Scattered<V> {
    /// All keys, by partition.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &bytemuck::cast_slice(&self.keys)[..self.len()]
    }

    /// The value of each key.
    #[must_use]
    pub fn values(&self) -> &[V] {
        &bytemuck::cast_slice(&self.values)[..self.len()]
    }

    /// Rows of all partitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts[self.starts.len() - 1] as usize
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values of one partition.
    #[must_use]
    pub fn partition(&self, partition: usize) -> (&[u64], &[V]) {
        let rows = self.starts[partition] as usize..self.starts[partition + 1] as usize;
        (&self.keys()[rows.clone()], &self.values()[rows])
    }
}

#[inline(always)]
fn of_line<V: Value>(line: &Line) -> &[V] {
    bytemuck::cast_slice(&line.0)
}

#[inline(always)]
fn of_line_mut<V: Value>(line: &mut Line) -> &mut [V] {
    bytemuck::cast_slice_mut(&mut line.0)
}
