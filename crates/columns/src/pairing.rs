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

use std::ops::Range;
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::BooleanBuffer;
use workahead_operators::bucket::select::Answers;
use workahead_operators::memory::{Memory, Prefetching, ToL1};
use workahead_operators::place::{Intent, Place};
use workahead_operators::schedule::Pause;
use workahead_operators::walk::Row;

use crate::chunks::NO_ROW;
use crate::flags::OwnFlags;
use crate::gather;
use crate::groups::group;
use crate::join_type::Alone;
use crate::keys::Keys;
use crate::lookup::{Hit, Hits, Lookup};
use crate::{JoinError, JoinTable, ProbeMetrics, Strategy};

/// Hits looked up at a time: 16 KiB of them, which stay in L1 until they are expanded.
const HITS: usize = 1024;
/// How many hits ahead a group's rows are announced, and a key to be compared.
const GROUPS_AHEAD: usize = 8;
const KEYS_AHEAD: usize = 16;

/// Rows of both sides, side by side.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) probe: Vec<Row>,
    /// [`NO_ROW`] where there is none. Empty if the join emits no pairs.
    pub(crate) build: Vec<Row>,
    /// Of a table whose entries hold values, these and no rows.
    pub(crate) values: Vec<u64>,
}

impl Pairs {
    pub(crate) fn len(&self) -> usize {
        self.probe.len()
    }

    fn clear(&mut self) {
        self.probe.clear();
        self.build.clear();
        self.values.clear();
    }

    fn push(&mut self, probe: Row, build: Row) {
        self.probe.push(probe);
        self.build.push(build);
    }

    /// Adds a probe row and what it found, where it found: written always, kept if so.
    fn extend<T: Copy + Default>(
        (probe, build): (&mut Vec<Row>, &mut Vec<T>),
        rows: Range<Row>,
        answers: &Answers,
        of: impl Fn(u64) -> T,
    ) {
        let mut kept = probe.len();
        probe.resize(kept + rows.len(), 0);
        build.resize(kept + rows.len(), T::default());
        for (row, (found, value)) in rows.zip(answers.each()) {
            (probe[kept], build[kept]) = (row, of(value));
            kept += usize::from(found);
        }
        probe.truncate(kept);
        build.truncate(kept);
    }

    /// Moves all pairs of another to the end.
    fn append(&mut self, other: &mut Self) {
        self.probe.append(&mut other.probe);
        self.build.append(&mut other.build);
        self.values.append(&mut other.values);
    }

    /// Keeps the pairs for which something holds.
    pub(crate) fn retain(&mut self, mut holds: impl FnMut(usize) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            if holds(at) {
                self.probe[kept] = self.probe[at];
                self.build[kept] = self.build[at];
                kept += 1;
            }
        }
        self.probe.truncate(kept);
        self.build.truncate(kept);
    }
}

/// Pairs the rows of one batch after the other.
pub(crate) struct Pairing {
    pub(crate) batch: Option<RecordBatch>,
    lookup: Lookup,
    drained: bool,
    /// All pairs are known, and what follows from that.
    settled: bool,
    /// Everything is in `out`, or was.
    done: bool,
    keys: Keys,
    hits: Hits,
    /// The next hit to expand, and how many of its rows are done.
    next_hit: usize,
    rows_done: u32,
    /// Pairs on their way, and how many of them are merged.
    found: Pairs,
    merged: usize,
    /// The first probe row that was neither put out nor passed over.
    next_row: usize,
    /// Probe rows with a match, where that must be known.
    pub(crate) matched: OwnFlags,
    /// What comes out next.
    pub(crate) out: Pairs,
    pub(crate) metrics: ProbeMetrics,
}

impl Pairing {
    pub(crate) fn new() -> Self {
        Self {
            batch: None,
            lookup: Lookup::new(Strategy::Sequential, 0),
            drained: true,
            settled: true,
            done: true,
            keys: Keys::default(),
            hits: Hits::up_to(HITS),
            next_hit: 0,
            rows_done: 0,
            found: Pairs::default(),
            merged: 0,
            next_row: 0,
            matched: OwnFlags::default(),
            out: Pairs::default(),
            metrics: ProbeMetrics::default(),
        }
    }

    /// Starts a batch.
    pub(crate) fn start(&mut self, table: &JoinTable, batch: RecordBatch) -> Result<(), JoinError> {
        assert!(self.batch.is_none(), "the batch before has output left");
        assert!(u32::try_from(batch.num_rows()).is_ok(), "a batch has at most 2³² rows");
        let start = Instant::now();
        let side = table.build_side().other();
        table.join.check(side, batch.schema_ref())?;
        table.join.keys(side).read(&table.inside.mapping, &batch, &mut self.keys)?;
        let lookup = std::mem::replace(&mut self.lookup, Lookup::new(Strategy::Sequential, 0));
        self.lookup = lookup.again(table.choice.strategy, self.keys.words().len());
        (self.drained, self.settled, self.done) = (false, false, false);
        self.hits.found.clear();
        self.found.clear();
        (self.next_hit, self.rows_done, self.merged, self.next_row) = (0, 0, 0, 0);
        if self.flags_rows(table) {
            self.matched.reset(batch.num_rows());
        }
        self.metrics.probe_rows += batch.num_rows() as u64;
        if table.join.null_aware {
            let nulls = table.join.keys(side).nulls(&batch).is_some();
            table.see(batch.num_rows(), nulls);
        }
        self.metrics.lookup_time += start.elapsed();
        self.batch = Some(batch);
        Ok(())
    }

    /// Whether probe rows without a match are put between others.
    fn merges(table: &JoinTable) -> bool {
        let emits = table.emits;
        let outer = emits.pairs && emits.probe == Alone::Unmatched;
        outer && table.choice.strategy.keeps_order()
    }

    /// Whether it must be known of each probe row if it has a match.
    fn flags_rows(&self, table: &JoinTable) -> bool {
        table.sieves() || (table.emits.probe != Alone::Never && !Self::merges(table))
    }

    /// Fills `out` up to a whole output batch. False when the probe batch is finished and there is
    /// nothing.
    pub(crate) fn fill(&mut self, table: &JoinTable) -> Result<bool, JoinError> {
        self.out.clear();
        let room = table.join.batch_rows;
        // What is left of a chunk that was sieved is not worth another one.
        let enough = if table.sieves() { room.div_ceil(2) } else { room };
        while !self.done && self.out.len() < enough {
            let start = Instant::now();
            if Self::merges(table) && self.merged < self.found.len() {
                self.merge(room);
            } else if self.next_hit < self.hits.found.len() {
                self.pair(table)?;
            } else if !self.drained {
                if !self.pair_vector(table, room) {
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
        }
        Ok(self.out.len() > 0)
    }

    /// Counts what comes out of the batch, without making it.
    pub(crate) fn count(&mut self, table: &JoinTable) -> Result<u64, JoinError> {
        let mut rows = 0;
        if table.sieves() || table.join.null_aware {
            while self.fill(table)? {
                rows += self.out.len() as u64;
            }
        } else {
            let start = Instant::now();
            let mut matched = 0;
            while !self.drained {
                if let Some(hits) = self.count_vector(table) {
                    (matched, rows) = (matched + hits, rows + hits);
                    continue;
                }
                self.drive(table);
                let found = &self.hits.found;
                matched += found.len() as u64;
                if table.inside.inline.is_some() {
                    rows += found.len() as u64;
                } else if table.emits.pairs {
                    rows += found.iter().map(|hit| u64::from(group(hit.value).0)).sum::<u64>();
                }
            }
            let all = self.batch.take().map_or(0, |batch| batch.num_rows() as u64);
            rows += match table.emits.probe {
                Alone::Never => 0,
                Alone::Matched => matched,
                Alone::Unmatched => all - matched,
                Alone::Marked => all,
            };
            self.metrics.lookup_time += start.elapsed();
        }
        self.metrics.output_rows += rows;
        Ok(rows)
    }

    /// Looks further keys up, and notes what a hit proves.
    fn drive(&mut self, table: &JoinTable) {
        self.hits.found.clear();
        self.next_hit = 0;
        let pause = self.lookup.drive(&table.inside.table, self.keys.words(), &mut self.hits);
        self.drained = pause == Pause::Drained;
        if table.inside.store.is_some() && !table.inside.collides {
            self.verify(table);
        }
        if !table.sieves() {
            self.metrics.matched_rows += self.hits.found.len() as u64;
            if let Some(flags) = &table.flags {
                self.hits.found.iter().for_each(|hit| flags.set(table.bit(hit.value)));
            }
            if self.flags_rows(table) {
                let Self { hits, keys, matched, .. } = self;
                hits.found.iter().for_each(|hit| matched.set(keys.row(hit.word) as usize));
            }
        }
    }

    /// How many of the next keys are found, where that is all there is to count.
    fn count_vector(&mut self, table: &JoinTable) -> Option<u64> {
        let unique = table.inside.groups.is_empty() && table.inside.store.is_none();
        if !unique || !table.emits.pairs || table.flags.is_some() {
            return None;
        }
        let (words, most) = (self.keys.words(), table.join.batch_rows);
        let (_, answers) = self.lookup.vector(&table.inside.table, words, most)?;
        let hits = answers.hits() as u64;
        self.metrics.matched_rows += hits;
        self.drained = self.lookup.is_drained();
        Some(hits)
    }

    /// Pairs the next rows without hits between: where every key has at most one build row, what a
    /// vector of lookups gives is all there is to know. False where it is not so.
    fn pair_vector(&mut self, table: &JoinTable, room: usize) -> bool {
        let unique = table.inside.groups.is_empty() && table.inside.store.is_none();
        if !unique || !table.emits.pairs || table.sieves() || self.keys.rows().is_some() {
            return false;
        }
        let (words, most) = (self.keys.words(), room - self.out.len());
        let Some((first, answers)) = self.lookup.vector(&table.inside.table, words, most) else {
            return false;
        };
        let hits = answers.hits();
        self.metrics.matched_rows += hits as u64;
        let inline = table.inside.inline.is_some();
        if let Some(flags) = &table.flags {
            let hits = answers.each().filter(|(found, _)| *found);
            hits.for_each(|(_, value)| flags.set(table.bit(value)));
        }
        let rows = first..first + answers.values().len() as Row;
        self.next_row = rows.end as usize;
        if hits == rows.len() && inline {
            self.out.probe.extend(rows);
            self.out.values.extend_from_slice(answers.values());
        } else if hits == rows.len() {
            self.out.probe.extend(rows);
            self.out.build.extend(answers.values().iter().map(|value| *value as Row));
        } else if table.emits.probe == Alone::Unmatched {
            self.out.probe.extend(rows);
            let row = |(found, value)| if found { value as Row } else { NO_ROW };
            self.out.build.extend(answers.each().map(row));
        } else if inline {
            Pairs::extend((&mut self.out.probe, &mut self.out.values), rows, answers, |v| v);
        } else {
            let row = |value| value as Row;
            Pairs::extend((&mut self.out.probe, &mut self.out.build), rows, answers, row);
        }
        self.drained = self.lookup.is_drained();
        true
    }

    /// Drops hits whose hash is all that is equal. One row of the key is asked: the others have it
    /// too.
    fn verify(&mut self, table: &JoinTable) {
        let Some(store) = &table.inside.store else { return };
        let groups = &table.inside.groups;
        let first = |hit: &Hit| match group(hit.value) {
            (_, None) => hit.value as Row,
            (_, Some(start)) => groups[start],
        };
        let found = &mut self.hits.found;
        let mut memory = Prefetching::<ToL1>::default();
        let mut kept = 0;
        for at in 0..found.len() {
            if let Some(ahead) = found.get(at + 2 * KEYS_AHEAD)
                && let (_, Some(start)) = group(ahead.value)
            {
                memory.fetch(Place::of(&groups[start]), Intent::Read);
            }
            if let Some(ahead) = found.get(at + KEYS_AHEAD) {
                store.fetch(first(ahead));
            }
            let hit = found[at];
            if store.equals(first(&hit), &self.keys.parts, hit.word as usize) {
                found[kept] = hit;
                kept += 1;
            }
        }
        found.truncate(kept);
    }

    /// Pairs the rows of hits.
    fn pair(&mut self, table: &JoinTable) -> Result<(), JoinError> {
        let (pairs, sieves) = (table.emits.pairs, table.sieves());
        if !pairs && !sieves {
            self.next_hit = self.hits.found.len();
            return Ok(());
        }
        let room = table.join.batch_rows;
        if !sieves && !Self::merges(table) {
            let mut out = std::mem::take(&mut self.out);
            self.expand(table, &mut out, room);
            self.out = out;
            return Ok(());
        }
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        self.merged = 0;
        let room = if Self::merges(table) { room } else { room - self.out.len() };
        self.expand(table, &mut found, room);
        if sieves {
            self.sieve(table, &mut found)?;
        }
        if !pairs {
            found.clear();
        } else if !Self::merges(table) {
            self.out.append(&mut found);
        }
        self.found = found;
        Ok(())
    }

    /// Pairs the rows of hits until there are none left or `to` has so many. Where each pair must
    /// be compared, the probe's are words yet, not rows.
    fn expand(&mut self, table: &JoinTable, to: &mut Pairs, room: usize) {
        let (groups, inline) = (&table.inside.groups, table.inside.inline.is_some());
        let as_words = table.inside.collides;
        // One match is enough for a row that comes out alone, unless build rows need theirs.
        let once = table.sieves() && !table.emits.pairs && table.flags.is_none();
        let mut memory = Prefetching::<ToL1>::default();
        while let Some(hit) = self.hits.found.get(self.next_hit) {
            let left = room - to.len();
            if left == 0 {
                return;
            }
            if !groups.is_empty()
                && let Some(ahead) = self.hits.found.get(self.next_hit + GROUPS_AHEAD)
                && let (_, Some(start)) = group(ahead.value)
            {
                memory.fetch(Place::of(&groups[start]), Intent::Read);
            }
            let probe_row = self.keys.row(hit.word);
            let (rows, start) = if inline { (1, None) } else { group(hit.value) };
            if once && self.matched.get(probe_row as usize) {
                (self.rows_done, self.next_hit) = (0, self.next_hit + 1);
                continue;
            }
            let probe_row = if as_words { hit.word } else { probe_row };
            let Some(start) = start else {
                if inline {
                    to.probe.push(probe_row);
                    to.values.push(hit.value);
                } else {
                    to.push(probe_row, hit.value as Row);
                }
                self.next_hit += 1;
                continue;
            };
            let more = (rows - self.rows_done).min(left as u32);
            let start = start + self.rows_done as usize;
            to.build.extend_from_slice(&groups[start..start + more as usize]);
            to.probe.resize(to.build.len(), probe_row);
            self.rows_done += more;
            if self.rows_done == rows {
                self.rows_done = 0;
                self.next_hit += 1;
            }
        }
    }

    /// Drops pairs that do not match, and notes the rows that do.
    fn sieve(&mut self, table: &JoinTable, found: &mut Pairs) -> Result<(), JoinError> {
        if let Some(store) = &table.inside.store
            && table.inside.collides
        {
            let mut kept = 0;
            for at in 0..found.len() {
                let (word, row) = (found.probe[at], found.build[at]);
                if store.equals(row, &self.keys.parts, word as usize) {
                    (found.probe[kept], found.build[kept]) = (self.keys.row(word), row);
                    kept += 1;
                }
            }
            found.probe.truncate(kept);
            found.build.truncate(kept);
        }
        if let (Some(filter), Some(batch)) = (&table.join.filter, &self.batch)
            && found.len() > 0
        {
            let wanted = gather::wanted(table, filter, batch, found)?;
            if wanted.null_count() > 0 {
                found.retain(|at| wanted.is_valid(at) && wanted.value(at));
            } else {
                found.retain(|at| wanted.value(at));
            }
        }
        found.probe.iter().for_each(|row| self.matched.set(*row as usize));
        if let Some(flags) = &table.flags {
            found.build.iter().for_each(|row| flags.set(*row as usize));
        }
        Ok(())
    }

    /// Puts out pairs, and the rows between them alone.
    fn merge(&mut self, room: usize) {
        while self.merged < self.found.len() && self.out.len() < room {
            let row = self.found.probe[self.merged];
            if self.next_row < row as usize {
                self.out.push(self.next_row as Row, NO_ROW);
                self.next_row += 1;
                continue;
            }
            self.out.push(row, self.found.build[self.merged]);
            self.next_row = row as usize + 1;
            self.merged += 1;
        }
    }

    /// Puts out the rows that come out alone, when all pairs are known.
    fn alone(&mut self, table: &JoinTable, room: usize) {
        let (emits, rows) = (table.emits, self.batch.as_ref().map_or(0, RecordBatch::num_rows));
        if !self.settled {
            self.settled = true;
            self.settle(table, rows);
        }
        let merges = Self::merges(table);
        while self.next_row < rows && self.out.len() < room {
            let row = self.next_row;
            let comes_out = match emits.probe {
                Alone::Never => break,
                Alone::Matched => self.matched.get(row),
                Alone::Unmatched => merges || !self.matched.get(row),
                Alone::Marked => true,
            };
            if comes_out {
                self.out.probe.push(row as Row);
                if emits.pairs {
                    self.out.build.push(NO_ROW);
                }
            }
            self.next_row += 1;
        }
        self.done = self.next_row == rows || emits.probe == Alone::Never;
    }

    /// What follows when all pairs are known.
    fn settle(&mut self, table: &JoinTable, rows: usize) {
        if table.sieves() {
            self.metrics.matched_rows += self.matched.count() as u64;
        }
        if !table.join.null_aware || table.emits.probe != Alone::Unmatched {
            return;
        }
        if table.rows.saw_null {
            // Whether a row equals that null is not known of any.
            self.next_row = rows;
        } else if table.rows.seen > 0
            && let Some(batch) = &self.batch
        {
            let nulls = table.join.keys(table.build_side().other()).nulls(batch);
            let unknown = nulls.map(|nulls| !nulls.inner());
            let unknown = unknown.iter().flat_map(BooleanBuffer::set_indices);
            unknown.for_each(|row| self.matched.set(row));
        }
    }
}
