//! Joins whose memory, files or caller fail at any step: they give the rows of nested loops or one
//! error, and leave nothing behind.

mod bloom_filter;
mod files;
mod memory;
mod stops;

use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use tempfile::TempDir;
use workahead_machine::pages::Pages;

use super::every_join::{CaseOptions, PLAIN, joined};
use super::inputs::{Input, JoinCase, JoinedRow, oracle};
use super::ordered::in_turns;
use super::spilled::{all, pulled, table};
use crate::join_type::SideOutput;
use crate::spill::{FileFault, FileFaults};
use crate::*;

/// A join, its inputs, and its rows by nested loops.
struct Case {
    sides: [Input; 2],
    options: CaseOptions,
    join: HashJoin,
    build: Vec<RecordBatch>,
    probe: Vec<RecordBatch>,
    expected: Vec<JoinedRow>,
}

impl Case {
    fn new(sides: [Input; 2], options: CaseOptions, ordered: bool) -> Self {
        let case = JoinCase {
            join_type: options.join_type,
            nulls_equal: options.nulls_equal && !options.null_aware,
            null_aware: options.null_aware,
            filtered: options.filtered,
        };
        let [left, right] = &sides;
        let expected = oracle(left, right, &case);
        // Small pages: hundreds of runs would spend most of their time on zeroing huge ones.
        let join = options.join(left, right).with_pages(Pages::Small);
        let join = if ordered { join.with_kept_order() } else { join };
        let (build, probe) = match options.build {
            Side::Left => (left.batches(), right.batches()),
            Side::Right => (right.batches(), left.batches()),
        };
        Self { sides, options, join, build, probe, expected }
    }

    /// The least memory that it needs, if nothing fails.
    fn least_bytes(&self) -> usize {
        let enough = |limit: &usize| {
            let joined = self.run(&Pool::of(*limit), &Arc::default(), StopCheck::default());
            assert!(matches!(joined, Ok(_) | Err(JoinError::LimitTooSmall { .. })), "{joined:?}");
            joined.is_ok()
        };
        (128 << 10..).step_by(16 << 10).find(enough).unwrap()
    }

    /// Joins with this memory and these files.
    ///
    /// # Panics
    /// If rows are wrong, or memory or a file is left.
    fn run(
        &self,
        pool: &Arc<impl MemoryPool + 'static>,
        faults: &Arc<FileFaults>,
        stop: StopCheck,
    ) -> Result<SpillMetrics, JoinError> {
        let folder = TempDir::new().unwrap();
        let directory = SpillDirectory::with_faults(folder.path(), faults).unwrap();
        let join = self.join.clone().with_memory(pool.clone());
        let join = join.with_spill(Arc::clone(&directory)).with_stop_check(stop);
        let joined = table(&join, self.build.clone()).and_then(|table| {
            let outputs = match (self.join.spec.is_ordered(), self.options.probers) {
                (true, _) => self.in_order(&table)?,
                (false, 1) => pulled(&table, &self.probe)?.0,
                (false, probers) => all(&table, &self.probe, probers)?.0,
            };
            Ok((outputs, table.spill_metrics()))
        });
        let schema = join.schema();
        drop(join);
        assert_eq!(pool.used(), 0, "all memory is given back");
        assert_eq!(Arc::strong_count(&directory), 1, "all files are closed");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "no file is left");
        let (outputs, spilled) = joined?;
        self.check(&concat_batches(&schema, &outputs).unwrap());
        Ok(spilled)
    }

    /// Each prober's rows, in the order of the probe side.
    fn in_order(&self, table: &Arc<JoinTable>) -> Result<Vec<RecordBatch>, JoinError> {
        let part = self.probe.len().div_ceil(self.options.probers).max(1);
        let mut inputs: Vec<_> = self.probe.chunks(part).map(<[RecordBatch]>::to_vec).collect();
        inputs.resize(self.options.probers, Vec::new());
        // The parts of the probe side follow each other, and so do the probers' outputs.
        Ok(in_turns(table, &inputs)?.concat())
    }

    fn check(&self, output: &RecordBatch) {
        let [left, right] = &self.sides;
        let mut rows = joined(output, &self.options, left, right);
        if self.join.spec.is_ordered() {
            let probed = |row: &JoinedRow| match self.options.build {
                Side::Left => row.1,
                Side::Right => row.0,
            };
            assert!(rows.iter().map(probed).is_sorted(), "the order is kept");
        }
        rows.sort_unstable();
        assert!(rows == self.expected, "{} rows of {}", rows.len(), self.expected.len());
    }
}

/// Joins of every type: some by several probers, some in the order of the probe side, with and
/// without a filter, null-aware. Each has a hot key. And hardly more memory than they need.
static CASES: LazyLock<Vec<(Case, usize)>> = LazyLock::new(|| {
    let limited = |case: Case| {
        let least = case.least_bytes();
        // The need of several threads depends on how they share the work.
        let limit = if case.options.probers > 1 { least + least / 4 } else { least };
        (case, limit)
    };
    cases().into_iter().map(limited).collect()
});

fn cases() -> Vec<Case> {
    let of_type = |join_type| {
        let anti = matches!(join_type, JoinType::LeftAnti | JoinType::RightAnti);
        let sides = [Side::Left, Side::Right].map(|build| [(build, false), (build, anti)]);
        sides.map(|ways| ways.map(|(build, null_aware)| (join_type, build, null_aware)))
    };
    let mut ways = JoinType::ALL.into_iter().flat_map(of_type).flatten().collect::<Vec<_>>();
    ways.dedup();
    let mut cases = Vec::new();
    for (turn, (join_type, build, null_aware)) in ways.into_iter().enumerate() {
        let ordered = join_type.output_rules(build).build == SideOutput::Never;
        let options = CaseOptions {
            join_type,
            build,
            null_aware,
            nulls_equal: turn % 4 == 1,
            filtered: turn % 3 == 0 && !null_aware,
            layout: [TableLayout::Bloom, TableLayout::Auto][turn / 3 % 2],
            batch_rows: [50, 7][turn % 2],
            probers: [1, 3][turn / 2 % 2],
            ..PLAIN
        };
        let keys = if null_aware { 1 } else { 2 };
        // So that not all of them fit into what the probers need.
        let rows = if options.probers == 1 { 300 } else { 700 };
        let mut sides = [side(turn as u64, keys, rows, 50), side(turn as u64 + 100, keys, 150, 3)];
        if build == Side::Right {
            sides.reverse();
        }
        if null_aware {
            // With a null key on the other side, there is no row at all.
            let other = usize::from(join_type == JoinType::LeftAnti);
            sides[other].rows.retain(|row| !row.contains(&None));
            // Without this, each has a match.
            sides[other].rows.retain(|row| row[0] < Some(7));
        }
        cases.push(Case::new(sides, options, ordered));
    }
    cases
}

/// How many cases a property is tried with, unless `PROPTEST_CASES` says otherwise.
fn tries(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_set = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_set { default.cases } else { usual };
    ProptestConfig { cases, failure_persistence: None, ..default }
}

/// Some of the steps of one of several joins, from the first to the last: all of them if there are
/// as many `tries`. Each join has others.
fn steps(all: usize, tries: usize, join: usize) -> impl Iterator<Item = usize> {
    let apart = (all / tries.max(1)).max(1);
    (join * 7 % apart..all).step_by(apart)
}

/// Numbers without a pattern.
fn scrambled(seed: u64, at: u64) -> u64 {
    let mixed = (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 24
}

/// Rows of two keys, or of one, about 300 bytes wide; a share of them with the same key.
fn side(seed: u64, keys: usize, rows: usize, hot_percent: u64) -> Input {
    let value = |row: u64, key: u64| {
        let random = scrambled(seed + key, row);
        let hot = scrambled(seed + 7, row) % 100 < hot_percent;
        (!random.is_multiple_of(19)).then_some(if hot { 4 } else { random as usize / 19 % 10 })
    };
    let row = |row| (0..keys as u64).map(|key| value(row, key)).collect();
    let rows = (0..rows as u64).map(row).collect();
    Input { kinds: vec!["i64", "utf8"][..keys].to_vec(), rows, batch_rows: 40, pad: 200 }
}
