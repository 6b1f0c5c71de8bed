//! Joins that spill and keep the order of their probe side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::every_join::{CaseOptions, inputs_of, joined, options, possible};
use super::inputs::{Input, JoinCase, JoinedRow, oracle};
use super::matches;
use super::spilled::{directory, large, limited, table};
use crate::*;

/// The output of one of several probers that take turns with the others, batch by batch.
pub(super) fn in_turns(
    table: &Arc<JoinTable>,
    inputs: &[Vec<RecordBatch>],
) -> Result<Vec<Vec<RecordBatch>>, JoinError> {
    table.expect_probers(inputs.len());
    let mut outputs = vec![Vec::new(); inputs.len()];
    let mut probers: Vec<_> = inputs.iter().map(|_| Prober::new(table.clone())).collect();
    let longest = inputs.iter().map(Vec::len).max().unwrap_or(0);
    for turn in 0..longest {
        for ((prober, input), outputs) in probers.iter_mut().zip(inputs).zip(&mut outputs) {
            let Some(batch) = input.get(turn) else { continue };
            prober.probe(batch.clone())?;
            while let Some(output) = prober.next_output()? {
                outputs.push(output);
            }
        }
    }
    let mut phases = Vec::new();
    for (prober, outputs) in probers.iter_mut().zip(&mut outputs) {
        let phase = prober.end()?;
        while let Some(output) = prober.next_output()? {
            outputs.push(output);
        }
        phases.push(phase);
    }
    drop(probers);
    // Phases in progress hold memory beside each other.
    let mut open = true;
    while open {
        open = false;
        for (phase, outputs) in phases.iter_mut().zip(&mut outputs) {
            let Some(running) = phase else { continue };
            open = true;
            match running.advance()? {
                Progress::Output(output) => outputs.push(output),
                Progress::Working => {}
                Progress::Done => *phase = None,
            }
        }
    }
    Ok(outputs)
}

/// Joins within a limit; `None` if it is too small, otherwise whether rows were spilled.
fn check(
    [left, right]: [&Input; 2],
    options: &CaseOptions,
    limit: usize,
) -> Result<Option<bool>, TestCaseError> {
    let case = JoinCase {
        join_type: options.join_type,
        nulls_equal: options.nulls_equal && !options.null_aware,
        null_aware: options.null_aware,
        filtered: options.filtered,
    };
    let pool = Pool::of(limit);
    let join = options.join(left, right).with_memory(pool.clone()).with_spill(directory(None));
    let join = join.with_probers(options.probers).with_kept_order();
    if !join.spec.is_ordered() {
        return Ok(None);
    }
    let (build, probe) = match options.build {
        Side::Left => (left, right.batches()),
        Side::Right => (right, left.batches()),
    };
    let part = probe.len().div_ceil(options.probers).max(1);
    let mut inputs: Vec<_> = probe.chunks(part).map(<[RecordBatch]>::to_vec).collect();
    inputs.resize(options.probers, Vec::new());
    let result = table(&join, build.batches())
        .and_then(|table| Ok((in_turns(&table, &inputs)?, table.spills())));
    prop_assert_eq!(pool.used(), 0, "everything is given back");
    let (outputs, spilled) = match result {
        Err(JoinError::LimitTooSmall { .. }) => return Ok(None),
        other => other.unwrap(),
    };
    let mut all: Vec<JoinedRow> = Vec::new();
    for outputs in outputs {
        prop_assert!(outputs.iter().all(|output| output.schema() == join.schema()));
        let output = concat_batches(&join.schema(), &outputs).unwrap();
        let rows = joined(&output, options, left, right);
        let of_probe = |row: &JoinedRow| match options.build {
            Side::Left => row.1,
            Side::Right => row.0,
        };
        prop_assert!(rows.iter().map(of_probe).is_sorted(), "{:?}", options);
        all.extend(rows);
    }
    all.sort_unstable();
    prop_assert_eq!(all, oracle(left, right, &case));
    Ok(Some(spilled))
}

#[test]
fn little_memory_keeps_the_order() {
    let cases = ProptestConfig::default().cases / 6;
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let [joined, spilled] = [const { AtomicU64::new(0) }; 2];
    let memory = (250_usize << 10..400 << 10, prop::sample::select(&[1_usize, 7, 50][..]));
    runner
        .run(
            &(inputs_of(1200, 1200), options(), memory),
            |([mut left, mut right], options, memory)| {
                for side in [&mut left, &mut right] {
                    (side.pad, side.batch_rows) = (200, side.batch_rows.min(50));
                }
                let options =
                    CaseOptions { batch_rows: memory.1, ..possible(options, left.kinds.len()) };
                let limit = memory.0 + (options.probers - 1) * (150 << 10);
                if let Some(spills) = check([&left, &right], &options, limit)? {
                    joined.fetch_add(1, Ordering::Relaxed);
                    spilled.fetch_add(u64::from(spills), Ordering::Relaxed);
                }
                Ok(())
            },
        )
        .unwrap();
    let [joined, spilled] = [joined, spilled].map(AtomicU64::into_inner);
    assert!(joined > u64::from(cases) / 4 && spilled > u64::from(cases) / 10, "{joined} {spilled}");
}

#[test]
fn many_runs_are_merged_within_the_limit() {
    for (hot, limit) in [(false, 700 << 10), (true, 700 << 10), (true, 1100 << 10)] {
        let sides = large(hot);
        let expected = super::oracle(&sides[0], &sides[1]);
        let (join, pool) = limited(&sides, limit);
        let join = join.with_probers(1).with_kept_order();
        let table = table(&join, sides[0].batches()).unwrap();
        assert!(table.spills());
        let outputs = in_turns(&table, &[sides[1].batches()]).unwrap().remove(0);
        assert!(table.peak_memory_bytes() <= limit);
        let ids =
            |output: &RecordBatch| output.column(3).as_primitive::<UInt32Type>().values().to_vec();
        assert!(outputs.iter().flat_map(ids).is_sorted());
        assert!(matches(&outputs, &sides[0], &sides[1]) == expected);
        drop((outputs, table));
        assert_eq!(pool.used(), 0);
    }
}
