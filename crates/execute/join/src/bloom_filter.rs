//! An adaptive Bloom filter in front of the hash table: used while it pays.
//!
//! ```text
//!            few hits, and enough probes                  most survive
//! no filter ─────────────────────────────► every batch ────────────────► some batches skip it
//!                                          is filtered                           │
//!                                              ▲─────────────────────────────────┘
//! ```
//!
//! The share of probes that hit is only known from probing, so the first batches go without a
//! filter. It is built once the misses so far could have paid for a good part of it: as in the
//! ski-rental problem, little more than its cost is lost whatever follows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use workahead_machine::pages::Pages;
use workahead_walks::bloom::{Bits, Filter, Survivors};
use workahead_walks::bucket::Table;

use crate::in_memory_build_side::InMemoryBuildSide;
use crate::keys::NormalizedKeys;
use crate::{JoinSpec, MemoryPool, ProbeMetrics, Reservation, TableLayout};

/// Highest percentage of hits for which a filter pays: with a table beyond the last-level cache,
/// and with a nearer one, where a lookup costs less (`benches/designs.rs` of `walks`: break-even at
/// 40 and at 20 to 25).
const FAR_HITS_MAX: usize = 30;
const NEAR_HITS_MAX: usize = 15;
/// How many more percent of the keys may survive before batches skip the filter: false positives,
/// and some tolerance.
const SURVIVORS_TOLERANCE: usize = 10;
/// Batches that then skip it.
const BATCHES_SKIPPED: u32 = 16;
/// A filter costs about as much as missing lookups of this part of the table's keys.
const COST: usize = 4;
/// With fewer keys, the share of hits is not significant.
const TESTED_MIN: usize = 1 << 15;

/// The filter shared by all probers of a table, and their statistics.
pub(crate) struct SharedBloomFilter {
    filter: OnceLock<(Filter, Reservation)>,
    /// A prober builds it, or there is no memory for it.
    claimed: AtomicBool,
    /// Keys looked up without it, and those that hit.
    tested: AtomicUsize,
    hits: AtomicUsize,
    keys: usize,
    bits: Bits,
    /// In percent.
    hits_max: usize,
    forced: bool,
}

/// A prober's use of the filter.
#[derive(Default)]
pub(crate) struct ProberBloomFilter {
    survivors: Survivors,
    /// Batches still to skip.
    skip: u32,
    /// The previous batch, if it skipped the filter.
    before: Option<SkippedBatch>,
}

/// A batch that was looked up without the filter.
struct SkippedBatch {
    keys: usize,
    /// The prober's matched rows before it.
    matched_before: u64,
}

impl ProberBloomFilter {
    /// Drops keys of a batch that are not in the table, if that pays.
    pub(crate) fn apply(
        &mut self,
        table: &InMemoryBuildSide,
        keys: &mut NormalizedKeys,
        metrics: &mut ProbeMetrics,
    ) {
        let (Some(bloom_filter), Some(buckets)) =
            (&table.bloom_filter, table.data.hash_table.buckets())
        else {
            return;
        };
        if let Some(SkippedBatch { keys, matched_before }) = self.before.take() {
            bloom_filter.record(keys, (metrics.matched_rows - matched_before) as usize);
        }
        let tested = keys.values().len();
        match bloom_filter.filter(buckets, &table.memory) {
            Some(filter) if self.skip == 0 => {
                metrics.bloom_tested_rows += tested as u64;
                keys.apply_bloom_filter(filter, &mut self.survivors);
                let most = tested * (bloom_filter.hits_max + SURVIVORS_TOLERANCE);
                if !bloom_filter.forced && keys.values().len() * 100 > most {
                    self.skip = BATCHES_SKIPPED;
                }
            }
            _ => {
                self.skip = self.skip.saturating_sub(1);
                let matched_before = metrics.matched_rows;
                self.before = Some(SkippedBatch { keys: tested, matched_before });
            }
        }
    }
}

impl SharedBloomFilter {
    /// `None` if there is never a filter: a residual predicate decides what matches, or another
    /// layout was requested.
    pub(crate) fn of(spec: &JoinSpec, table: &Table) -> Option<Self> {
        let caches = spec.caches;
        let hits_max = Self::hits_max(spec, table.bytes())?;
        let near = Filter::bytes_for(table.len(), Bits::Sixteen) <= caches.l2_bytes / 2;
        Some(Self {
            filter: OnceLock::new(),
            claimed: AtomicBool::new(false),
            tested: AtomicUsize::new(0),
            hits: AtomicUsize::new(0),
            keys: table.len(),
            bits: if near { Bits::Sixteen } else { Bits::Eight },
            hits_max,
            forced: spec.table_layout == TableLayout::Bloom,
        })
    }

    /// The highest percentage of hits for which a filter pays in front of a table of this size;
    /// `None` if there is never one.
    pub(crate) fn hits_max(spec: &JoinSpec, table_bytes: usize) -> Option<usize> {
        match spec.table_layout {
            TableLayout::Auto if spec.filter.is_some() => return None,
            TableLayout::Auto | TableLayout::Bloom => {}
            TableLayout::Buckets | TableLayout::Dense => return None,
        }
        let far = table_bytes > spec.caches.llc_bytes;
        Some(if far { FAR_HITS_MAX } else { NEAR_HITS_MAX })
    }

    /// Records keys that were looked up without the filter.
    fn record(&self, tested: usize, hits: usize) {
        self.tested.fetch_add(tested, Ordering::Relaxed);
        self.hits.fetch_add(hits, Ordering::Relaxed);
    }

    /// Whether the statistics call for a filter.
    fn is_due(&self) -> bool {
        let [tested, hits] = [&self.tested, &self.hits].map(|count| count.load(Ordering::Relaxed));
        let missed = tested.saturating_sub(hits);
        self.forced
            || (tested >= TESTED_MIN
                && missed >= self.keys / COST
                && hits <= tested / 100 * self.hits_max)
    }

    /// The filter, built now if it is due; other probers don't wait for it.
    fn filter(&self, table: &Table, memory: &Reservation) -> Option<&Filter> {
        let built = self.filter.get();
        if built.is_none() && self.is_due() && !self.claimed.swap(true, Ordering::Relaxed) {
            self.build(table, memory.pool());
        }
        self.filter.get().map(|(filter, _)| filter)
    }

    fn build(&self, table: &Table, pool: &Arc<dyn MemoryPool>) {
        let mut memory = Reservation::new(pool.clone());
        if memory.grow(Filter::bytes_for(self.keys, self.bits)).is_err() {
            return;
        }
        if let Ok(mut filter) = Filter::for_keys(self.keys, self.bits, Pages::Huge) {
            filter.insert(table.keys());
            let built = self.filter.set((filter, memory));
            debug_assert!(built.is_ok(), "only one prober builds it");
        }
    }
}
