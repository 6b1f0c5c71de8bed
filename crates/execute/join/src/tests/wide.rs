//! Keys and values of up to a megabyte beside short ones: joined as nested loops do, in batches
//! that are bounded by their bytes.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;

use super::InMemory;
use crate::row_bytes::run_bytes;
use crate::*;

/// Bytes of keys and documents, by turns.
const WIDTHS: [usize; 7] = [0, 3, 70_000, 12, 100, 1_000_000, 5_000];

/// Output rows by the ids of both sides, and the mark.
type JoinedRow = (Option<u32>, Option<u32>, Option<bool>);

/// A text of a width, different for each number and width.
fn wide(number: usize, width: usize) -> String {
    let mut text = format!("{number:03}").repeat(width.div_ceil(3));
    text.truncate(width);
    text
}

/// All keys, by their numbers.
static KEYS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..23).map(|number| wide(number, WIDTHS[number % WIDTHS.len()])).collect());

/// The numbers of the keys of one side; a key without a number is null.
#[derive(Debug, Clone)]
struct Input(Vec<Option<usize>>);

impl Input {
    fn new(rows: usize, step: usize) -> Self {
        let key = |row: usize| (row % 9 != 4).then_some(row * step % KEYS.len());
        Self((0..rows).map(key).collect())
    }

    /// Whether the keys of two rows are equal: all keys of no bytes are.
    fn equal(&self, row: usize, other: &Self, other_row: usize) -> bool {
        let keys = self.0[row].zip(other.0[other_row]);
        keys.is_some_and(|(own, other)| KEYS[own] == KEYS[other])
    }

    /// Bytes of a row's document, if it has one.
    fn document_width(row: usize) -> Option<usize> {
        (row % 8 != 3).then(|| WIDTHS[(row * 5 + 2) % WIDTHS.len()])
    }

    fn whole(&self) -> RecordBatch {
        let keys = self.0.iter().map(|number| number.map(|number| &KEYS[number]));
        let keys: StringArray = keys.collect();
        let rows = 0..self.0.len();
        let document = |row| Self::document_width(row).map(|width| wide(row, width));
        let documents: StringArray = rows.clone().map(document).collect();
        let ids = UInt32Array::from_iter_values(rows.map(|row| row as u32));
        let columns: [(&str, ArrayRef, bool); 3] = [
            ("key", Arc::new(keys), true),
            ("document", Arc::new(documents), true),
            ("id", Arc::new(ids), false),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn batches(&self, rows: usize) -> Vec<RecordBatch> {
        let (whole, all) = (self.whole(), self.0.len());
        let starts = (0..all).step_by(rows);
        starts.map(|start| whole.slice(start, rows.min(all - start))).collect()
    }
}

/// Accepts by the documents' lengths.
#[derive(Debug)]
struct ByDocuments;

fn wanted(left: usize, right: usize) -> bool {
    !(left + right).is_multiple_of(3)
}

impl ResidualPredicate for ByDocuments {
    fn evaluate(&self, rows: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let [left, right] = [0, 1].map(|column| rows.column(column).as_string::<i32>());
        let length = |texts: &StringArray, row| {
            if texts.is_null(row) { 0 } else { texts.value(row).len() }
        };
        let rows = 0..rows.num_rows();
        Ok(rows.map(|row| Some(wanted(length(left, row), length(right, row)))).collect())
    }
}

fn oracle(left: &Input, right: &Input, join_type: JoinType, filtered: bool) -> Vec<JoinedRow> {
    let length = |row| Input::document_width(row).unwrap_or_default();
    let is_match =
        |l: usize, r: usize| left.equal(l, right, r) && (!filtered || wanted(length(l), length(r)));
    let (lefts, rights) = (0..left.0.len(), 0..right.0.len());
    let of_left = |l: usize| rights.clone().any(|r| is_match(l, r));
    let of_right = |r: usize| lefts.clone().any(|l| is_match(l, r));
    let (l_only, r_only) =
        (|l: usize| (Some(l as u32), None, None), |r: usize| (None, Some(r as u32), None));
    let matches = lefts.clone().flat_map(|l| rights.clone().map(move |r| (l, r)));
    let matches = matches.filter(|(l, r)| is_match(*l, *r));
    let matches = || matches.clone().map(|(l, r)| (Some(l as u32), Some(r as u32), None));
    let lefts_without = || lefts.clone().filter(|l| !of_left(*l)).map(l_only);
    let rights_without = || rights.clone().filter(|r| !of_right(*r)).map(r_only);
    let mut joined: Vec<JoinedRow> = match join_type {
        JoinType::Inner => matches().collect(),
        JoinType::Left => matches().chain(lefts_without()).collect(),
        JoinType::Right => matches().chain(rights_without()).collect(),
        JoinType::Full => matches().chain(lefts_without()).chain(rights_without()).collect(),
        JoinType::LeftSemi => lefts.clone().filter(|l| of_left(*l)).map(l_only).collect(),
        JoinType::RightSemi => rights.clone().filter(|r| of_right(*r)).map(r_only).collect(),
        JoinType::LeftAnti => lefts_without().collect(),
        JoinType::RightAnti => rights_without().collect(),
        JoinType::LeftMark => lefts.map(|l| (Some(l as u32), None, Some(of_left(l)))).collect(),
        JoinType::RightMark => rights.map(|r| (None, Some(r as u32), Some(of_right(r)))).collect(),
    };
    joined.sort_unstable();
    joined
}

/// The rows of an output, whose other columns are compared with those of the inputs.
fn rows_of(output: &RecordBatch, join_type: JoinType, sides: &[RecordBatch; 2]) -> Vec<JoinedRow> {
    let (rows, mut at) = (output.num_rows(), 0);
    let mut ids = |side: Side, whole: &RecordBatch| {
        if !join_type.outputs(side) {
            return vec![None; rows];
        }
        let ids = output.column(at + 2).as_primitive::<UInt32Type>();
        for column in 0..2 {
            let expected = take(whole.column(column), ids, None).unwrap();
            assert!(output.column(at + column) == &expected, "column {}", at + column);
        }
        at += 3;
        ids.iter().collect()
    };
    let lefts: Vec<_> = ids(Side::Left, &sides[0]);
    let rights: Vec<_> = ids(Side::Right, &sides[1]);
    let mark = |row| join_type.is_mark().then(|| output.column(at).as_boolean().value(row));
    (0..rows).map(|row| (lefts[row], rights[row], mark(row))).collect()
}

fn bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| run_bytes(column, 0..column.len())).sum()
}

fn filter() -> Filter {
    let field = |name| Field::new(name, DataType::Utf8, true);
    Filter {
        columns: vec![(Side::Left, 1), (Side::Right, 1)],
        schema: Arc::new(Schema::new(vec![field("left"), field("right")])),
        filter: Arc::new(ByDocuments),
    }
}

fn run_with(
    join: &HashJoin,
    build: Vec<RecordBatch>,
    probe: &[RecordBatch],
) -> Result<(Vec<RecordBatch>, SpillMetrics), JoinError> {
    let mut side = join.build();
    build.into_iter().try_for_each(|batch| side.push(batch))?;
    let table = Arc::new(side.finish()?);
    let (next, outputs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = |_| InMemory {
        batches: probe,
        next: &next,
        outputs: &outputs,
        fail_at: usize::MAX,
        counts_only: false,
    };
    run(&table, (0..2).map(worker).collect())?;
    Ok((outputs.into_inner().unwrap(), table.spill_metrics()))
}

fn joined_within(
    sides: &[Input; 2],
    (join_type, build_side, filtered): (JoinType, Side, bool),
    limit: Option<usize>,
) -> Result<SpillMetrics, JoinError> {
    let schema: SchemaRef = sides[0].whole().schema();
    let pool = limit.map_or(Pool::unlimited(), Pool::of);
    let mut join = HashJoin::new(schema.clone(), schema, &[(0, 0)], join_type)
        .unwrap()
        .with_build_side(build_side)
        .with_memory(pool.clone())
        .with_probers(2);
    if filtered {
        join = join.with_filter(filter()).unwrap();
    }
    if limit.is_some() {
        join = join.with_spill(SpillDirectory::new(std::env::temp_dir(), None).unwrap());
    }
    let [left, right] = sides.each_ref().map(|side| side.batches(33));
    let (build, probe) = if build_side == Side::Left { (left, right) } else { (right, left) };
    let joined = run_with(&join, build, &probe);
    assert_eq!(pool.used(), 0, "everything is given back");
    let (outputs, spilled) = joined?;
    let whole = sides.each_ref().map(Input::whole);
    let rows = outputs.iter().flat_map(|output| rows_of(output, join_type, &whole));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    assert_eq!(rows, oracle(&sides[0], &sides[1], join_type, filtered), "{join_type} {limit:?}");
    let most = limit.map_or(256 << 20, |limit| limit / 16 / 2).max(64 << 10);
    let short = outputs.iter().filter(|output| output.num_rows() > 1);
    // Small outputs are coalesced up to that, and one more.
    assert!(short.clone().all(|output| bytes(output) <= most * 2), "{join_type} {limit:?}");
    Ok(spilled)
}

/// Joins within a limit, or within the one that the error names: which suffices.
fn joined_or_named(sides: &[Input; 2], case: (JoinType, Side, bool), limit: usize) -> u64 {
    match joined_within(sides, case, Some(limit)) {
        Err(JoinError::LimitTooSmall { limit: named, enough, .. }) => {
            assert_eq!(named, limit);
            let joined = joined_within(sides, case, Some(enough));
            joined.unwrap_or_else(|error| panic!("{case:?}, {limit}: {error}")).files
        }
        joined => joined.unwrap().files,
    }
}

#[test]
fn wide_rows_are_joined_as_the_oracle_does() {
    let sides = [Input::new(40, 5), Input::new(60, 3)];
    let mut spilled = 0;
    for join_type in JoinType::ALL {
        for build_side in [Side::Left, Side::Right] {
            joined_within(&sides, (join_type, build_side, true), None).unwrap();
            let limited = [(2 << 30, false), (40 << 20, true), (9 << 20, false), (1 << 20, true)];
            for (limit, filtered) in limited {
                spilled += joined_or_named(&sides, (join_type, build_side, filtered), limit);
            }
        }
    }
    assert!(spilled > 0);
}

/// More text in a column than offsets of 32 bits can number, on the build side and in the output,
/// half of it of rows without a match: takes 1.4 GB of memory.
#[test]
fn columns_of_more_than_2_gib_are_joined() {
    const BATCHES: usize = 22;
    let texts: StringArray = (0..100).map(|row| Some(wide(row, 1_000_000))).collect();
    let texts: ArrayRef = Arc::new(texts);
    let batch = |at: usize| {
        let ids = UInt32Array::from_iter_values((0..100).map(|row| (at * 100 + row) as u32));
        let columns = [("document", texts.clone()), ("id", Arc::new(ids) as ArrayRef)];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<_> = (0..BATCHES).map(batch).collect();
    let schema = batches[0].schema();
    let expected = texts.as_string::<i32>();
    let on = [("id", "id")];
    let join = HashJoin::by_names(schema.clone(), schema, &on, JoinType::Full).unwrap();
    let mut build = join.build();
    batches.iter().for_each(|batch| build.push(batch.clone()).unwrap());
    let mut outputs = Outputs::new(&Arc::new(build.finish().unwrap()));
    let mut probe = batches[..BATCHES / 2].iter().cloned();
    let mut next = || Ok::<_, JoinError>(std::task::Poll::Ready(probe.next()));
    let mut rows = [0; 2];
    loop {
        let output = match outputs.advance(&mut next).unwrap() {
            Progress::Output(output) => output,
            Progress::Working => continue,
            Progress::Done => break,
        };
        for (side, rows) in rows.iter_mut().enumerate() {
            let ids = output.column(2 * side + 1).as_primitive::<UInt32Type>();
            for (id, found) in ids.iter().zip(output.column(2 * side).as_string::<i32>()) {
                assert_eq!(found.is_some(), id.is_some());
                let Some(id) = id else { continue };
                assert!(found == Some(expected.value(id as usize % 100)), "{id}");
                *rows += 1;
            }
        }
    }
    assert_eq!(rows, [BATCHES * 100, BATCHES / 2 * 100]);
}
