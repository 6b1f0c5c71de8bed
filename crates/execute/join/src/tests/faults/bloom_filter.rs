//! Bloom filters of build sides of which a part is spilled: they hold the keys of the other part
//! only. (In duckdb/duckdb#25702 such a filter dropped rows.)

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, UInt32Array};

use super::super::spilled::directory;
use super::super::{Rows, numbered};
use super::memory::Refusing;
use super::*;

/// Rows of each side; the first half of the probe side has a match.
const ROWS: u32 = 16_000;

/// Those whose output shows each probe row, and whether it has a match.
const TYPES: [JoinType; 5] = [
    JoinType::Inner,
    JoinType::Right,
    JoinType::RightSemi,
    JoinType::RightAnti,
    JoinType::RightMark,
];

fn sides() -> [Rows; 2] {
    let keys = |apart: i128| (0..i128::from(ROWS)).map(move |row| row * apart);
    [numbered(keys(1009), 500), numbered(keys(2018), 300)]
}

/// The probe rows of an output, and whether each has a match.
fn probed(join_type: JoinType, output: &RecordBatch) -> Vec<(u32, bool)> {
    let columns = output.num_columns() - usize::from(join_type.is_mark());
    let ids = |column| -> &UInt32Array { output.column(column).as_primitive::<UInt32Type>() };
    let matched = |row: usize| match join_type {
        JoinType::RightSemi => true,
        JoinType::RightAnti => false,
        JoinType::RightMark => output.column(columns).as_boolean().value(row),
        _ => ids(1).is_valid(row),
    };
    (0..output.num_rows()).map(|row| (ids(columns - 1).value(row), matched(row))).collect()
}

fn expected(join_type: JoinType) -> Vec<(u32, bool)> {
    let rows = (0..ROWS).map(|row| (row, row < ROWS / 2));
    let is_output = |(_, matched): &(u32, bool)| match join_type {
        JoinType::Inner | JoinType::RightSemi => *matched,
        JoinType::RightAnti => !matched,
        _ => true,
    };
    rows.filter(is_output).collect()
}

/// Figures of a test beside the rows.
struct JoinFigures {
    /// Build rows in memory.
    in_memory: usize,
    levels: u64,
    /// Keys that were tested by a filter, and requests for memory before the first.
    tested: u64,
    requests: usize,
}

fn joins(
    join_type: JoinType,
    limit: usize,
    refuses: impl Fn(usize) -> bool + Send + Sync + 'static,
) -> Result<JoinFigures, JoinError> {
    let sides = sides();
    let [left, right] = sides.each_ref().map(Rows::batches);
    let schemas = (left[0].schema(), right[0].schema());
    let join = HashJoin::by_names(schemas.0, schemas.1, &[("key", "key")], join_type).unwrap();
    let pool = Arc::new(Refusing::new(limit, refuses));
    let join = join.with_table_layout(TableLayout::Bloom).with_pages(Pages::Small);
    let join = join.with_memory(pool.clone()).with_spill(directory(None)).with_batch_rows(200);
    let table = table(&join, left)?;
    let (in_memory, requests) = (table.rows(), pool.requests());
    let (outputs, metrics) = all(&table, &right, 1)?;
    let mut rows: Vec<_> = outputs.iter().flat_map(|output| probed(join_type, output)).collect();
    rows.sort_unstable();
    assert!(rows == expected(join_type), "{join_type} {limit}: {} rows", rows.len());
    let (levels, tested) = (table.spill_metrics().levels, metrics.bloom_tested_rows);
    Ok(JoinFigures { in_memory, levels, tested, requests })
}

#[test]
fn a_filter_of_the_rows_in_memory_drops_no_row_of_a_spilled_partition() {
    for join_type in TYPES {
        let (mut partial, mut levels) = (0, 0);
        for limit in (300 << 10..1000 << 10).step_by(100 << 10) {
            let joined = joins(join_type, limit, |_| false).unwrap();
            let spilled = (1..ROWS as usize).contains(&joined.in_memory);
            partial += usize::from(spilled && joined.tested > 0);
            levels = levels.max(joined.levels);
        }
        assert!(partial > 1 && levels > 1, "{join_type}: {partial} {levels}");
    }
}

#[test]
fn a_filter_that_is_refused_memory_drops_no_row() {
    for join_type in TYPES {
        let limit = 600 << 10;
        let whole = joins(join_type, limit, |_| false).unwrap();
        let without = (whole.requests..whole.requests + 8).filter(|refused| {
            let refused = *refused;
            let joined = joins(join_type, limit, move |request| request == refused);
            joined.unwrap().tested < whole.tested
        });
        assert!(without.count() > 0, "{join_type}: the filter asks for memory");
    }
}
