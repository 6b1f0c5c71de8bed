//! Joins in less memory than they need: correct, within the limit, and leaving nothing behind.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use arrow_array::{Int64Array, RecordBatch};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::every_join::{CaseOptions, inputs_of, joined, options, possible};
use super::inputs::{Input, JoinCase, oracle};
use super::{InMemory, Rows, join_of, matches, numbered};
use crate::*;

pub(super) fn directory(limit: Option<u64>) -> Arc<SpillDirectory> {
    SpillDirectory::new(std::env::temp_dir(), limit).unwrap()
}

pub(super) fn table(
    join: &HashJoin,
    batches: Vec<RecordBatch>,
) -> Result<Arc<JoinTable>, JoinError> {
    let mut build = join.build();
    batches.into_iter().try_for_each(|batch| build.push(batch))?;
    build.finish().map(Arc::new)
}

/// The output, and the metrics.
pub(super) fn all(
    table: &Arc<JoinTable>,
    probe: &[RecordBatch],
    probers: usize,
) -> Result<(Vec<RecordBatch>, ProbeMetrics), JoinError> {
    let (next, outputs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = |_| InMemory {
        batches: probe,
        next: &next,
        outputs: &outputs,
        fail_at: usize::MAX,
        counts_only: false,
    };
    let (_, metrics) = run(table, (0..probers).map(worker).collect())?;
    Ok((outputs.into_inner().unwrap(), metrics))
}

/// The same with [`Outputs`] on one thread, with pending input in between.
pub(super) fn pulled(
    table: &Arc<JoinTable>,
    probe: &[RecordBatch],
) -> Result<(Vec<RecordBatch>, ProbeMetrics), JoinError> {
    let (mut outputs, mut given) = (Outputs::new(table), Vec::new());
    let (mut batches, mut waits) = (probe.iter().cloned(), false);
    loop {
        let input = || {
            waits = !waits;
            Ok::<_, JoinError>(if waits { Poll::Pending } else { Poll::Ready(batches.next()) })
        };
        match outputs.advance(input)? {
            Progress::Output(output) => given.push(output),
            Progress::Working => {}
            Progress::Done => return Ok((given, outputs.metrics())),
        }
    }
}

fn counted(table: &Arc<JoinTable>, probe: &[RecordBatch]) -> Result<u64, JoinError> {
    let mut prober = Prober::new(table.clone());
    let mut rows = 0;
    for batch in probe {
        rows += prober.count(batch)?;
    }
    Ok(rows + prober.end()?.map_or(Ok(0), FinalPhase::count)?)
}

/// Joins within a limit; `None` if it is too small.
fn check(
    [left, right]: [&Input; 2],
    options: &CaseOptions,
    limit: usize,
) -> Result<Option<SpillMetrics>, TestCaseError> {
    let case = JoinCase {
        join_type: options.join_type,
        nulls_equal: options.nulls_equal && !options.null_aware,
        null_aware: options.null_aware,
        filtered: options.filtered,
    };
    let pool = Pool::of(limit);
    let join = options.join(left, right).with_memory(pool.clone()).with_spill(directory(None));
    let join = join.with_probers(options.probers);
    let (build, probe) = match options.build {
        Side::Left => (left.batches(), right.batches()),
        Side::Right => (right.batches(), left.batches()),
    };
    let result = table(&join, build.clone()).and_then(|table| {
        let (outputs, metrics) = all(&table, &probe, options.probers)?;
        Ok((outputs, metrics, table.spill_metrics()))
    });
    prop_assert_eq!(pool.used(), 0, "everything is given back");
    let (outputs, metrics, spilled) = match result {
        Err(JoinError::LimitTooSmall { .. }) => return Ok(None),
        other => other.unwrap(),
    };
    let sizes = 1..=options.batch_rows;
    prop_assert!(outputs.iter().all(|output| sizes.contains(&output.num_rows())));
    prop_assert!(outputs.iter().all(|output| output.schema() == join.schema()));
    let output = concat_batches(&join.schema(), &outputs).unwrap();
    let mut found = joined(&output, options, left, right);
    found.sort_unstable();
    let expected = oracle(left, right, &case);
    prop_assert_eq!(&found, &expected, "{:?}", spilled);
    prop_assert_eq!(metrics.output_rows, expected.len() as u64);
    prop_assert_eq!(metrics.probe_rows, probe.iter().map(|b| b.num_rows() as u64).sum::<u64>());
    let pulled = table(&join, build.clone()).and_then(|table| pulled(&table, &probe));
    if !matches!(pulled, Err(JoinError::LimitTooSmall { .. })) {
        let (outputs, metrics) = pulled.unwrap();
        let output = concat_batches(&join.schema(), &outputs).unwrap();
        let mut found = joined(&output, options, left, right);
        found.sort_unstable();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(metrics.output_rows, expected.len() as u64);
    }
    let recounted = table(&join, build).and_then(|table| counted(&table, &probe));
    if !matches!(recounted, Err(JoinError::LimitTooSmall { .. })) {
        prop_assert_eq!(recounted.unwrap(), expected.len() as u64);
    }
    prop_assert_eq!(pool.used(), 0);
    Ok(Some(spilled))
}

#[test]
fn little_memory_gives_the_output_of_nested_loops() {
    // Each is a join of up to 1200 by 1200 rows of 200 bytes, in files.
    let cases = ProptestConfig::default().cases / 6;
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let [joined, spilled, levels, chunks] = [const { AtomicU64::new(0) }; 4];
    let memory = (200_usize << 10..340 << 10, prop::sample::select(&[1_usize, 7, 50][..]));
    runner
        .run(
            &(inputs_of(1200, 1200), options(), memory),
            |([mut left, mut right], options, memory)| {
                for side in [&mut left, &mut right] {
                    (side.pad, side.batch_rows) = (200, side.batch_rows.min(50));
                }
                let options =
                    CaseOptions { batch_rows: memory.1, ..possible(options, left.kinds.len()) };
                let limit = memory.0 + (options.probers - 1) * (120 << 10);
                if let Some(metrics) = check([&left, &right], &options, limit)? {
                    joined.fetch_add(1, Ordering::Relaxed);
                    spilled.fetch_add(u64::from(metrics.files > 0), Ordering::Relaxed);
                    levels.fetch_max(metrics.levels, Ordering::Relaxed);
                    chunks.fetch_add(metrics.chunks, Ordering::Relaxed);
                }
                Ok(())
            },
        )
        .unwrap();
    let seen = [joined, spilled, levels, chunks].map(AtomicU64::into_inner);
    let [joined, spilled, levels, chunks] = seen;
    let enough = joined > u64::from(cases) / 3 && spilled > u64::from(cases) / 8;
    assert!(enough && levels > 1 && chunks > 0, "{seen:?}");
}

/// 30,000 rows; some keys repeat, and if `hot`, a third of the rows have one key.
pub(super) fn large(hot: bool) -> [Rows; 2] {
    let key = move |row: i128| if hot && row % 3 == 0 { 7 } else { row * 7919 % 20_011 };
    let left = numbered((0..30_000).map(key), 500);
    let right = numbered((0..9000).map(|row| if row < 3 { 7 } else { row * 13 % 30_000 }), 300);
    [left, right]
}

pub(super) fn limited(sides: &[Rows; 2], limit: usize) -> (HashJoin, Arc<Pool>) {
    let pool = Pool::of(limit);
    let join = join_of(&sides[0], &sides[1]).with_batch_rows(200).with_probers(2);
    (join.with_memory(pool.clone()).with_spill(directory(None)), pool)
}

#[test]
fn partitions_are_partitioned_again_and_a_hot_key_is_joined_in_chunks() {
    for hot in [false, true] {
        let sides = large(hot);
        let expected = super::oracle(&sides[0], &sides[1]);
        let (join, pool) = limited(&sides, 600 << 10);
        let joined = table(&join, sides[0].batches()).unwrap();
        assert!(joined.spills());
        let (outputs, metrics) = all(&joined, &sides[1].batches(), 2).unwrap();
        assert!(matches(&outputs, &sides[0], &sides[1]) == expected);
        let spilled = joined.spill_metrics();
        assert_eq!(spilled.chunks > 0, hot, "{spilled:?}");
        assert!(spilled.levels > 1 && spilled.bytes > 100_000, "{spilled:?}");
        assert!(spilled.files > spilled.partitions && spilled.partitions > 4, "{spilled:?}");
        assert!(joined.peak_memory_bytes() <= 600 << 10);
        assert!(metrics.matched_rows > 1000 && metrics.matched_rows < 9000);
        drop(joined);
        assert_eq!(pool.used(), 0);
    }
}

/// Runs the final phase as shares that take turns. `None` if the limit is too small.
fn by_turns(sides: &[Rows; 2], limit: usize, parts: usize) -> Option<Vec<RecordBatch>> {
    let (join, pool) = limited(sides, limit);
    let result = table(&join.with_probers(1), sides[0].batches()).and_then(|table| {
        let (mut prober, mut outputs) = (Prober::new(table.clone()), Vec::new());
        for batch in sides[1].batches() {
            prober.probe(batch)?;
            outputs.extend(std::iter::from_fn(|| prober.next_output().transpose()).flatten());
        }
        let final_phase = prober.end()?.expect("it spills");
        outputs.extend(std::iter::from_fn(|| prober.next_output().transpose()).flatten());
        drop((prober, table));
        let mut parts: VecDeque<_> = final_phase.split(parts).into();
        while let Some(mut part) = parts.pop_front() {
            match part.advance()? {
                Progress::Done => continue,
                Progress::Output(output) => outputs.push(output),
                Progress::Working => {}
            }
            parts.push_back(part);
        }
        Ok(outputs)
    });
    assert_eq!(pool.used(), 0);
    match result {
        Err(JoinError::LimitTooSmall { .. }) => None,
        outputs => Some(outputs.unwrap()),
    }
}

#[test]
fn with_too_small_shares_fewer_threads_do_the_work() {
    let sides = large(false);
    let expected = super::oracle(&sides[0], &sides[1]);
    let step = 10 << 10;
    let enough = |limit: &usize| by_turns(&sides, *limit, 1).is_some();
    let least = (100 << 10..).step_by(step).find(enough).unwrap();
    for limit in (least..least + 10 * step).step_by(step) {
        for parts in [2, 3] {
            let outputs = by_turns(&sides, limit, parts);
            let outputs = outputs.unwrap_or_else(|| panic!("{parts} parts of {limit} bytes"));
            assert!(matches(&outputs, &sides[0], &sides[1]) == expected);
        }
    }
}

/// The first of two probers takes all batches but the last few; `None` if memory is too small.
fn late(sides: &[Rows; 2], limit: usize, few: usize) -> Option<Vec<RecordBatch>> {
    let (join, pool) = limited(sides, limit);
    let run = || -> Result<Vec<RecordBatch>, JoinError> {
        let table = table(&join, sides[0].batches())?;
        table.expect_probers(2);
        let probers = [Prober::new(table.clone()), Prober::new(table.clone())];
        let (batches, mut outputs) = (sides[1].batches(), Vec::new());
        let (before, after) = batches.split_at(batches.len() - few);
        let mut ended = Vec::new();
        for (mut prober, batches) in probers.into_iter().zip([before, after]) {
            for batch in batches {
                prober.probe(batch.clone())?;
                outputs.extend(std::iter::from_fn(|| prober.next_output().transpose()).flatten());
            }
            ended.push(prober);
        }
        for mut prober in ended {
            let final_phase = prober.end()?;
            outputs.extend(std::iter::from_fn(|| prober.next_output().transpose()).flatten());
            drop(prober);
            if let Some(mut final_phase) = final_phase {
                while let Some(output) = final_phase.next_output()? {
                    outputs.push(output);
                }
            }
        }
        Ok(outputs)
    };
    let found = run();
    assert_eq!(pool.used(), 0);
    match found {
        Err(JoinError::LimitTooSmall { .. }) => None,
        outputs => Some(outputs.unwrap()),
    }
}

#[test]
fn a_late_prober_finds_memory() {
    let sides = large(false);
    let expected = super::oracle(&sides[0], &sides[1]);
    let step = 4 << 10;
    let least = (100 << 10..).step_by(step).find(|limit| late(&sides, *limit, 0).is_some());
    let least = least.unwrap();
    for limit in (least..least + 40 * step).step_by(step) {
        let outputs = late(&sides, limit, 3).unwrap_or_else(|| panic!("{limit} bytes"));
        assert!(matches(&outputs, &sides[0], &sides[1]) == expected);
    }
}

/// Which limit suffices depends on the rows, not on timing.
#[test]
fn concurrent_probers_find_memory() {
    let sides = large(false);
    let batches = sides.each_ref().map(Rows::batches);
    let enough = |limit: &usize| {
        let (join, pool) = limited(&sides, *limit);
        let joined = table(&join.with_probers(4), batches[0].clone())
            .and_then(|table| all(&table, &batches[1], 4));
        assert_eq!(pool.used(), 0);
        match joined {
            Err(JoinError::LimitTooSmall { .. }) => false,
            other => other.is_ok_and(|(_, metrics)| metrics.output_rows > 1000),
        }
    };
    let step = 4 << 10;
    let least = (600 << 10..).step_by(step).find(enough).unwrap();
    for limit in (least..least + 8 * step).step_by(step) {
        assert!((0..8).all(|_| enough(&limit)), "{least} bytes were enough, {limit} are not");
    }
}

#[test]
fn all_memory_is_returned_when_dropped_at_any_point() {
    let sides = large(true);
    let (join, pool) = limited(&sides, 600 << 10);
    // Stops after a number of calls; true if it reached the end.
    let run = |calls: usize| -> Result<bool, JoinError> {
        let mut left = calls;
        let mut stops = || {
            left = left.saturating_sub(1);
            left == 0
        };
        let mut build = join.build();
        for batch in sides[0].batches() {
            build.push(batch)?;
            if stops() {
                return Ok(false);
            }
        }
        let mut prober = Prober::new(Arc::new(build.finish()?));
        for batch in sides[1].batches() {
            prober.probe(batch)?;
            while prober.next_output()?.is_some() {
                if stops() {
                    return Ok(false);
                }
            }
        }
        let mut final_phase = prober.end()?.expect("it spills");
        drop(prober);
        loop {
            match final_phase.advance()? {
                Progress::Done => return Ok(true),
                _ if stops() => return Ok(false),
                _ => {}
            }
        }
    };
    let mut calls = 1;
    while !run(calls).unwrap() {
        assert_eq!(pool.used(), 0, "after {calls} calls");
        calls += 1 + calls / 9;
    }
    assert!(calls > 300, "{calls}");
    assert_eq!(pool.used(), 0);
}

#[test]
fn a_limit_without_a_directory_and_one_below_a_batch_are_errors() {
    let sides = large(false);
    let pool = Pool::of(300 << 10);
    let join = join_of(&sides[0], &sides[1]).with_memory(pool.clone());
    let error = table(&join, sides[0].batches()).unwrap_err();
    assert!(matches!(error, JoinError::Limit(_)), "{error}");
    assert!(error.to_string().contains("or allow spilling"), "{error}");
    let (join, small) = limited(&sides, 20 << 10);
    let error = table(&join, sides[0].batches()).unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("the memory limit of 20480 bytes is too small"), "{said}");
    assert!(said.contains("; raise the limit to ") && !said.contains('\n'), "{said}");
    assert_eq!(pool.used() + small.used(), 0);
}

#[test]
fn a_full_directory_is_an_error_whenever_it_fills() {
    let sides = large(true);
    let (join, pool) = limited(&sides, 600 << 10);
    let mut limit = 1000;
    loop {
        let directory = directory(Some(limit));
        let join = join.clone().with_spill(directory.clone());
        let result =
            table(&join, sides[0].batches()).and_then(|table| all(&table, &sides[1].batches(), 2));
        assert_eq!(pool.used(), 0);
        match result {
            Ok(_) => break,
            Err(error) => {
                assert!(matches!(error, JoinError::Spill(SpillError::Limit { .. })), "{error}");
            }
        }
        limit += limit / 2;
    }
    assert!(limit > 100_000, "{limit}");
}

/// Slices of one large batch are not charged repeatedly.
#[test]
fn slices_of_one_batch_are_charged_once() {
    let rows = 200_000_i64;
    let keys = Int64Array::from_iter_values(0..rows);
    let whole = RecordBatch::try_from_iter([("key", Arc::new(keys) as _)]).unwrap();
    let pool = Pool::of(16 << 20);
    let (left, right) = (whole.schema(), whole.schema());
    let join = HashJoin::new(left, right, &[(0, 0)], JoinType::Inner).unwrap();
    let join = join.with_memory(pool.clone());
    let mut build = join.build();
    for start in (0..rows as usize).step_by(1000) {
        build.push(whole.slice(start, 1000)).unwrap();
    }
    assert!((1_600_000..1_700_000).contains(&pool.used()), "{}", pool.used());
    let table = build.finish().unwrap();
    assert!(table.memory_bytes() >= table.table_bytes() + table.payload_bytes());
}

#[test]
fn long_batches_need_little_more_memory_than_short_ones() {
    let keys = |rows: i128| (0..rows).map(|row| row * 7919 % 30_011);
    let sides = |rows| [numbered(keys(100_000), rows), numbered(keys(150_000), rows)];
    let [short, long] = [1000, 100_000].map(|rows| {
        let sides = sides(rows);
        let batches = sides.each_ref().map(Rows::batches);
        let fits = |limit: &usize, threads: usize| {
            let (join, _) = limited(&sides, *limit);
            let table = table(&join.with_probers(threads), batches[0].clone());
            table.and_then(|table| all(&table, &batches[1], threads)).ok()
        };
        [1, 3].map(|threads| {
            let mut limits = (500 << 10..).step_by(250 << 10);
            let least = limits.find(|limit| fits(limit, threads).is_some()).unwrap();
            let (_, metrics) = fits(&least, threads).unwrap();
            (least, metrics.output_rows, metrics.probe_rows)
        })
    });
    for (short, long) in short.into_iter().zip(long) {
        assert_eq!((short.1, short.2), (long.1, long.2));
        assert!(long.0 <= 2 * short.0, "{short:?} {long:?}");
    }
}
