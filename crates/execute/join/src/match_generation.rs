//! Match generation: the output rows of a probe batch, as row numbers, resumable anywhere.
//!
//! ```text
//! keys ─► Lookup ─► hits ─┬─► expanded ──────────────────────────────────────────► out
//!          pauses when    │    pauses in the middle of one key's rows               ▲
//!          hits are full  └─► expanded ─► residual predicate ─► merged with ────────┤
//!                                         matches in order      unmatched rows      │
//!                              at the end of the batch: other unmatched rows ───────┘
//! ```
//!
//! The residual predicate is evaluated on bounded chunks of candidates, however many rows a key
//! has. Matches keep the order of the probe rows, so a probe row missing between two of them is
//! unmatched and is output in its place, even if its candidates spanned several chunks.

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

/// Hits that are worth being filtered and expanded. Together with those of another vector they are
/// 24 KiB, which stay in L1 until they are expanded.
const HITS_ENOUGH: usize = VECTOR / 2;
/// If fewer than one key in this many hits, only the keys of hits are compared: comparing a whole
/// vector avoids branches, but costs more.
const FEW_HIT: usize = 2;
/// Lookups of a batch whose cache lines are sampled: too few to cost anything.
const LINES_SAMPLED: usize = 64;
/// Keys and candidates of a step, about: some milliseconds, with an expensive filter some tens.
const STEP_ROWS: usize = 1 << 16;
/// Whether matches are still candidates for the residual predicate, or proven.
const UNPROVEN: bool = true;
const PROVEN: bool = false;

/// Result of a bounded step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There are matches for an output.
    Matches,
    /// More steps are needed.
    Working,
    /// The batch is finished, and all of its matches were taken.
    Done,
}

/// Generates the matches of one batch after the other.
pub(crate) struct MatchGenerator {
    pub(crate) batch: Option<RecordBatch>,
    lookup: Lookup,
    drained: bool,
    /// All matches are known, and what follows from them.
    matches_complete: bool,
    /// Everything is or was in `out`.
    done: bool,
    keys: NormalizedKeys,
    bloom_filter: ProberBloomFilter,
    hits: Vec<Hit>,
    /// Whether few keys of the previous batch hit, and the matched rows before the current one.
    few_hit: bool,
    matched_before: u64,
    /// The next hit to expand, and how many of its rows are done.
    next_hit: usize,
    rows_done: u32,
    /// Matches not yet in `out`, and how many of them are merged.
    pending: Matches,
    merged: usize,
    /// The first probe row that was neither output nor passed over.
    next_row: usize,
    /// Probe rows with a match, if that is tracked.
    pub(crate) matched: MatchBitmap,
    /// The next output.
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
            pending: Matches::default(),
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
        assert!(self.batch.is_none(), "the previous batch still has output");
        assert!(u32::try_from(batch.num_rows()).is_ok(), "a batch has at most 2³² rows");
        let start = Instant::now();
        // Hits of the previous batch, whose keys are still here.
        let hits = (self.metrics.matched_rows - self.matched_before) as usize;
        self.few_hit = hits * FEW_HIT < self.keys.values().len();
        self.matched_before = self.metrics.matched_rows;
        let side = table.build_side().other();
        self.keys.may_mask(table.data.hash_table.buckets().is_none());
        table.spec.keys(side).read(&table.data.encoding, &batch, &mut self.keys)?;
        self.bloom_filter.apply(table, &mut self.keys, &mut self.metrics);
        let sampled = self.keys.values().iter().take(LINES_SAMPLED);
        let lines = sampled.map(|key| table.data.hash_table.line(*key));
        self.metrics.lines = self.metrics.lines.plus(TouchedLines::of(lines));
        self.lookup.start(self.keys.values().len());
        (self.drained, self.matches_complete, self.done) = (false, false, false);
        self.hits.clear();
        self.out.clear();
        self.pending.clear();
        (self.next_hit, self.rows_done, self.merged, self.next_row) = (0, 0, 0, 0);
        if self.tracks_probe_rows(table) {
            self.matched.reset(batch.num_rows());
        }
        self.metrics.lookup_time += start.elapsed();
        self.batch = Some(batch);
        Ok(())
    }

    /// Whether unmatched probe rows are output between matches.
    fn interleaves_unmatched(table: &InMemoryBuildSide) -> bool {
        table.output_rules.matches && table.output_rules.probe == SideOutput::Unmatched
    }

    /// Whether a bitmap tracks which probe rows have a match.
    fn tracks_probe_rows(&self, table: &InMemoryBuildSide) -> bool {
        table.has_residual_predicate()
            || (table.output_rules.probe != SideOutput::Never
                && !Self::interleaves_unmatched(table))
    }

    /// Adds up to an output batch to `out`, from which the caller takes it.
    pub(crate) fn fill(&mut self, table: &InMemoryBuildSide) -> Result<Step, JoinError> {
        if !self.out.run.is_empty() {
            // The rest of a run, to which nothing can be added.
            return Ok(Step::Matches);
        }
        let room = table.spec.batch_rows;
        // The rest of a filtered chunk is not worth evaluating another one.
        let enough = if table.has_residual_predicate() { room.div_ceil(2) } else { room };
        let mut work = 0;
        while !self.done && self.out.len() < enough {
            if work >= STEP_ROWS {
                return Ok(Step::Working);
            }
            let start = Instant::now();
            if Self::interleaves_unmatched(table) && self.merged < self.pending.len() {
                self.merge(room);
            } else if self.next_hit < self.hits.len() {
                work += self.generate(table)?;
            } else if !self.drained {
                let before = self.lookup.position();
                if !self.match_vector(table) && !self.generate_vector(table, room) {
                    self.look_up(table);
                }
                work += self.lookup.position() - before;
                self.metrics.lookup_time += start.elapsed();
                continue;
            } else {
                self.output_unmatched(table, room);
            }
            self.metrics.gather_time += start.elapsed();
        }
        if self.out.len() > 0 {
            return Ok(Step::Matches);
        }
        self.batch = None;
        self.keys.release_borrowed();
        Ok(Step::Done)
    }

    /// Counts output rows of the batch without gathering them: a step of them if they must be
    /// generated, else all.
    pub(crate) fn count(&mut self, table: &InMemoryBuildSide) -> Result<u64, JoinError> {
        let mut rows = 0;
        if table.has_residual_predicate() || table.spec.null_aware {
            if self.fill(table)? == Step::Matches {
                rows = self.out.len() as u64;
                self.out.clear();
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
                self.look_up(table);
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
            self.keys.release_borrowed();
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

    /// Looks up more keys, and records matches that hits prove.
    fn look_up(&mut self, table: &InMemoryBuildSide) {
        self.hits.clear();
        self.next_hit = 0;
        // The steps that follow have a fixed cost: with few hits, several lookups precede one of
        // them.
        self.drained = false;
        let end = self.lookup.position() + STEP_ROWS;
        while !self.drained && self.hits.len() < HITS_ENOUGH && self.lookup.position() < end {
            self.lookup.hits(&table.data.hash_table, &self.keys, &mut self.hits);
            self.drained = self.lookup.is_drained();
        }
        if table.data.store.is_some() && !table.data.collides {
            self.verify(table);
        }
        if !table.has_residual_predicate() {
            self.metrics.matched_rows += self.hits.len() as u64;
            if let Some(bitmap) = &table.match_bitmap {
                self.hits.iter().for_each(|hit| bitmap.set(table.bit(hit.value)));
            }
            if self.tracks_probe_rows(table) {
                let Self { hits, keys, matched, .. } = self;
                hits.iter().for_each(|hit| matched.set(keys.row(hit.key) as usize));
            }
        }
    }

    /// Generates the matches of hits. Returns the number of candidates.
    fn generate(&mut self, table: &InMemoryBuildSide) -> Result<usize, JoinError> {
        let (outputs_matches, has_residual_predicate) =
            (table.output_rules.matches, table.has_residual_predicate());
        if !outputs_matches && !has_residual_predicate {
            self.next_hit = self.hits.len();
            return Ok(0);
        }
        let room = table.spec.batch_rows;
        if !has_residual_predicate && !Self::interleaves_unmatched(table) {
            let mut out = std::mem::take(&mut self.out);
            self.expand::<PROVEN>(table, &mut out, room);
            self.out = out;
            return Ok(0);
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        self.merged = 0;
        let mut candidates = 0;
        let room = if Self::interleaves_unmatched(table) { room } else { room - self.out.len() };
        if has_residual_predicate {
            self.expand::<UNPROVEN>(table, &mut pending, room);
            candidates = pending.len();
            self.apply_residual_predicate(table, &mut pending)?;
        } else {
            self.expand::<PROVEN>(table, &mut pending, room);
        }
        if !outputs_matches {
            pending.clear();
        } else if !Self::interleaves_unmatched(table) {
            self.out.append(&mut pending);
        }
        self.pending = pending;
        Ok(candidates)
    }
}
