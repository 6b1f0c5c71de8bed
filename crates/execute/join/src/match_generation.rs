//! The rows of a probe batch, paired: what comes out of it, as row numbers, resumable anywhere.
//!
//! ```text
//! keys ─► Lookup ─► hits ─┬─► expanded ───────────────────────────────────────► out
//!          pauses when    │    pauses in the middle of one key's rows            ▲
//!          hits are full  └─► expanded ─► sieved: compared, filtered ─► merged ──┤
//!                                          survivors           with the rows     │
//!                                          in their order      between them      │
//!                              at the batch's end: rows alone ───────────────────┘
//! ```
//!
//! The filter sees a chunk of pairs at a time, however many a key has. A probe row without a
//! survivor is known by its absence from them: where hits keep the probe's order, it is put in its
//! place between two others, though its pairs may have spanned several chunks.

mod expand;
mod matches;
mod residual_predicate;
mod unmatched;
mod vector;

use std::time::Instant;

use arrow_array::RecordBatch;

use crate::bloom_filter::ProberBloomFilter;
use crate::duplicates::duplicate_list;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;
use crate::keys::NormalizedKeys;
use crate::lookup::{Hit, Lookup, VECTOR};
use crate::match_bitmap::MatchBitmap;
use crate::{JoinError, ProbeMetrics, TouchedLines};

pub(crate) use matches::Matches;

/// Hits that are worth being filtered and expanded. With those of another vector they are 24 KiB,
/// which stay in L1 until they are expanded.
const HITS_ENOUGH: usize = VECTOR / 2;
/// Where fewer than one key of this many hits, only the hits are compared: comparing a whole vector
/// spares branches, and costs more than they do.
const FEW_HIT: usize = 2;
/// Lookups of a batch whose lines are sampled: few, so that it costs nothing.
const LINES_SAMPLED: usize = 64;
/// Whether pairs are looked at before they come out.
const UNPROVEN: bool = true;
const PROVEN: bool = false;

/// Pairs the rows of one batch after the other.
pub(crate) struct MatchGenerator {
    pub(crate) batch: Option<RecordBatch>,
    lookup: Lookup,
    drained: bool,
    /// All pairs are known, and what follows from that.
    matches_complete: bool,
    /// Everything is in `out`, or was.
    done: bool,
    keys: NormalizedKeys,
    bloom_filter: ProberBloomFilter,
    hits: Vec<Hit>,
    /// Whether few keys of the batch before hit, and the rows that had matched before this one.
    few_hit: bool,
    matched_before: u64,
    /// The next hit to expand, and how many of its rows are done.
    next_hit: usize,
    rows_done: u32,
    /// Pairs on their way, and how many of them are merged.
    found: Matches,
    merged: usize,
    /// The first probe row that was neither put out nor passed over.
    next_row: usize,
    /// Probe rows with a match, where that must be known.
    pub(crate) matched: MatchBitmap,
    /// What comes out next.
    pub(crate) out: Matches,
    pub(crate) metrics: ProbeMetrics,
}

impl MatchGenerator {
    pub(crate) fn new() -> Self {
        Self {
            batch: None,
            lookup: Lookup::default(),
            drained: true,
            matches_complete: true,
            done: true,
            keys: NormalizedKeys::default(),
            bloom_filter: ProberBloomFilter::default(),
            hits: Vec::with_capacity(HITS_ENOUGH + VECTOR),
            few_hit: false,
            matched_before: 0,
            next_hit: 0,
            rows_done: 0,
            found: Matches::default(),
            merged: 0,
            next_row: 0,
            matched: MatchBitmap::default(),
            out: Matches::default(),
            metrics: ProbeMetrics::default(),
        }
    }

    /// Starts a batch.
    pub(crate) fn start(
        &mut self,
        table: &InMemoryBuildSide,
        batch: RecordBatch,
    ) -> Result<(), JoinError> {
        assert!(self.batch.is_none(), "the batch before has output left");
        assert!(u32::try_from(batch.num_rows()).is_ok(), "a batch has at most 2³² rows");
        let start = Instant::now();
        // Of the batch before, whose keys are still here.
        let hits = (self.metrics.matched_rows - self.matched_before) as usize;
        self.few_hit = hits * FEW_HIT < self.keys.values().len();
        self.matched_before = self.metrics.matched_rows;
        let side = table.build_side().other();
        table.spec.keys(side).read(&table.data.encoding, &batch, &mut self.keys)?;
        self.bloom_filter.sift(table, &mut self.keys, &mut self.metrics);
        let sampled = self.keys.values().iter().take(LINES_SAMPLED);
        let lines = sampled.map(|word| table.data.table.line(*word));
        self.metrics.lines = self.metrics.lines.plus(TouchedLines::of(lines));
        self.lookup.start(self.keys.values().len());
        (self.drained, self.matches_complete, self.done) = (false, false, false);
        self.hits.clear();
        self.found.clear();
        (self.next_hit, self.rows_done, self.merged, self.next_row) = (0, 0, 0, 0);
        if self.tracks_probe_rows(table) {
            self.matched.reset(batch.num_rows());
        }
        self.metrics.lookup_time += start.elapsed();
        self.batch = Some(batch);
        Ok(())
    }

    /// Whether probe rows without a match are put between others.
    fn interleaves_unmatched(table: &InMemoryBuildSide) -> bool {
        table.output_rules.matches && table.output_rules.probe == SideOutput::Unmatched
    }

    /// Whether it must be known of each probe row if it has a match.
    fn tracks_probe_rows(&self, table: &InMemoryBuildSide) -> bool {
        table.has_residual_predicate()
            || (table.output_rules.probe != SideOutput::Never
                && !Self::interleaves_unmatched(table))
    }

    /// Fills `out` up to a whole output batch. False when the probe batch is finished and there is
    /// nothing.
    pub(crate) fn fill(&mut self, table: &InMemoryBuildSide) -> Result<bool, JoinError> {
        self.out.clear();
        let room = table.spec.batch_rows;
        // What is left of a chunk that was sieved is not worth another one.
        let enough = if table.has_residual_predicate() { room.div_ceil(2) } else { room };
        while !self.done && self.out.len() < enough {
            let start = Instant::now();
            if Self::interleaves_unmatched(table) && self.merged < self.found.len() {
                self.merge(room);
            } else if self.next_hit < self.hits.len() {
                self.pair(table)?;
            } else if !self.drained {
                if !self.match_vector(table) && !self.generate_vector(table, room) {
                    self.drive(table);
                }
                self.metrics.lookup_time += start.elapsed();
                continue;
            } else {
                self.alone(table, room);
            }
            self.metrics.gather_time += start.elapsed();
        }
        if self.out.len() == 0 {
            self.batch = None;
            self.keys.give_back();
        }
        Ok(self.out.len() > 0)
    }

    /// Counts what comes out of the batch, without making it.
    pub(crate) fn count(&mut self, table: &InMemoryBuildSide) -> Result<u64, JoinError> {
        let mut rows = 0;
        if table.has_residual_predicate() || table.spec.null_aware {
            while self.fill(table)? {
                rows += self.out.len() as u64;
            }
        } else {
            let start = Instant::now();
            let mut matched = 0;
            while !self.drained {
                if let Some(hits) = self.count_vector(table) {
                    matched += hits;
                    rows += if table.output_rules.matches { hits } else { 0 };
                    continue;
                }
                self.drive(table);
                let found = &self.hits;
                matched += found.len() as u64;
                if table.data.payload.is_some() {
                    rows += found.len() as u64;
                } else if table.output_rules.matches {
                    rows +=
                        found.iter().map(|hit| u64::from(duplicate_list(hit.value).0)).sum::<u64>();
                }
            }
            let all = self.batch.take().map_or(0, |batch| batch.num_rows() as u64);
            self.keys.give_back();
            rows += match table.output_rules.probe {
                SideOutput::Never | SideOutput::Tracked => 0,
                SideOutput::Matched => matched,
                SideOutput::Unmatched => all - matched,
                SideOutput::Marked => all,
            };
            self.metrics.lookup_time += start.elapsed();
        }
        self.metrics.output_rows += rows;
        Ok(rows)
    }

    /// Looks further keys up, and notes what a hit proves.
    fn drive(&mut self, table: &InMemoryBuildSide) {
        self.hits.clear();
        self.next_hit = 0;
        // What follows has its price for each round: where few keys hit, several rounds make one.
        self.drained = false;
        while !self.drained && self.hits.len() < HITS_ENOUGH {
            self.lookup.hits(&table.data.table, self.keys.values(), &mut self.hits);
            self.drained = self.lookup.is_drained();
        }
        if table.data.store.is_some() && !table.data.collides {
            self.verify(table);
        }
        if !table.has_residual_predicate() {
            self.metrics.matched_rows += self.hits.len() as u64;
            if let Some(flags) = &table.match_bitmap {
                self.hits.iter().for_each(|hit| flags.set(table.bit(hit.value)));
            }
            if self.tracks_probe_rows(table) {
                let Self { hits, keys, matched, .. } = self;
                hits.iter().for_each(|hit| matched.set(keys.row(hit.word) as usize));
            }
        }
    }

    /// Pairs the rows of hits.
    fn pair(&mut self, table: &InMemoryBuildSide) -> Result<(), JoinError> {
        let (pairs, has_residual_predicate) =
            (table.output_rules.matches, table.has_residual_predicate());
        if !pairs && !has_residual_predicate {
            self.next_hit = self.hits.len();
            return Ok(());
        }
        let room = table.spec.batch_rows;
        if !has_residual_predicate && !Self::interleaves_unmatched(table) {
            let mut out = std::mem::take(&mut self.out);
            self.expand::<PROVEN>(table, &mut out, room);
            self.out = out;
            return Ok(());
        }
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.merged = 0;
        let room = if Self::interleaves_unmatched(table) { room } else { room - self.out.len() };
        if has_residual_predicate {
            self.expand::<UNPROVEN>(table, &mut found, room);
            self.apply_residual_predicate(table, &mut found)?;
        } else {
            self.expand::<PROVEN>(table, &mut found, room);
        }
        if !pairs {
            found.clear();
        } else if !Self::interleaves_unmatched(table) {
            self.out.append(&mut found);
        }
        self.found = found;
        Ok(())
    }
}
