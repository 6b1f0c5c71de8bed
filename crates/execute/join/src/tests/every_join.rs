//! Every join against nested loops: random key types, nulls, duplicates, batch sizes, both build
//! sides, every join type, null equality, filters, table layouts, colliding hashes.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, BooleanArray, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::take::take;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generate;

use super::InMemory;
use super::inputs::{Input, JoinCase, JoinedRow, oracle, wanted};
use super::kinds::{FAMILIES, SINGLES, VALUES};
use crate::*;

/// Accepts candidates by their row numbers.
#[derive(Debug)]
struct ByIds;

impl ResidualPredicate for ByIds {
    fn evaluate(&self, candidates: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let ids = |column| candidates.column(column).as_primitive::<UInt32Type>().values();
        Ok(ids(0).iter().zip(ids(1)).map(|(right, left)| wanted(*left, *right)).collect())
    }
}

pub(super) fn filter(left: &Input, right: &Input) -> Filter {
    let field = |name| Field::new(name, DataType::UInt32, false);
    Filter {
        columns: vec![(Side::Right, right.id_column()), (Side::Left, left.id_column())],
        schema: Arc::new(Schema::new(vec![field("right"), field("left")])),
        filter: Arc::new(ByIds),
    }
}

/// The options of a case.
#[derive(Debug, Clone)]
pub(super) struct CaseOptions {
    pub(super) join_type: JoinType,
    pub(super) build: Side,
    pub(super) nulls_equal: bool,
    pub(super) null_aware: bool,
    pub(super) filtered: bool,
    pub(super) layout: TableLayout,
    pub(super) batch_rows: usize,
    pub(super) probers: usize,
    /// Whether the table is built as if it didn't fit in cache.
    pub(super) scattered: bool,
    pub(super) hash_mask: u64,
}

impl CaseOptions {
    pub(super) fn join(&self, left: &Input, right: &Input) -> HashJoin {
        let on: Vec<_> = (0..left.kinds.len()).map(|key| (key, key)).collect();
        let nulls = if self.nulls_equal {
            NullEquality::NullEqualsNull
        } else {
            NullEquality::NullEqualsNothing
        };
        let (left_schema, right_schema) = (left.whole().schema(), right.whole().schema());
        let mut join = HashJoin::new(left_schema, right_schema, &on, self.join_type)
            .unwrap()
            .with_null_equality(nulls)
            .with_build_side(self.build)
            .with_table_layout(self.layout)
            .with_batch_rows(self.batch_rows)
            .with_probers(self.probers);
        if self.scattered {
            join = join.with_caches(Caches { l2_bytes: 0, ..Caches::ASSUMED });
        }
        join.spec.hash_mask = self.hash_mask;
        if self.null_aware {
            join = join.with_null_aware().unwrap();
        }
        if self.filtered {
            join = join.with_filter(filter(left, right)).unwrap();
        }
        join
    }
}

fn table(join: &HashJoin, batches: Vec<RecordBatch>) -> Arc<JoinTable> {
    let mut build = join.build();
    batches.into_iter().for_each(|batch| build.push(batch).unwrap());
    Arc::new(build.finish().unwrap())
}

fn probed(table: &Arc<JoinTable>, batches: &[RecordBatch], probers: usize) -> Vec<RecordBatch> {
    let (next, outputs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = |_| InMemory {
        batches,
        next: &next,
        outputs: &outputs,
        fail_at: usize::MAX,
        counts_only: false,
    };
    let (_, metrics) = run(table, (0..probers).map(worker).collect()).unwrap();
    let outputs = outputs.into_inner().unwrap();
    let rows: usize = outputs.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(metrics.output_rows, rows as u64);
    outputs
}

fn counted(table: &Arc<JoinTable>, batches: &[RecordBatch]) -> u64 {
    let mut prober = Prober::new(table.clone());
    let rows: u64 = batches.iter().map(|batch| prober.count(batch).unwrap()).sum();
    rows + prober.end().unwrap().map_or(0, |final_phase| final_phase.count().unwrap())
}

/// The rows of an output, with their columns checked against the inputs.
pub(super) fn joined(
    output: &RecordBatch,
    options: &CaseOptions,
    left: &Input,
    right: &Input,
) -> Vec<JoinedRow> {
    let rows = output.num_rows();
    let mut at = 0;
    let mut ids = |side, input: &Input| {
        if !options.join_type.outputs(side) {
            return vec![None; rows];
        }
        let columns = input.id_column() + 1;
        let ids = output.column(at + columns - 1).as_primitive::<UInt32Type>();
        let whole = input.whole();
        for column in 0..columns {
            let expected = take(whole.column(column), ids, None).unwrap();
            let found = output.column(at + column);
            assert_eq!(found.data_type(), expected.data_type());
            // Dictionaries may be rewritten; their values are checked by other tests.
            if !matches!(expected.data_type(), DataType::Dictionary(..)) {
                assert_eq!(found, &expected, "column {}", at + column);
            }
        }
        at += columns;
        ids.iter().collect::<Vec<_>>()
    };
    let (lefts, rights) = (ids(Side::Left, left), ids(Side::Right, right));
    let marks = options.join_type.is_mark().then(|| output.column(at).as_boolean().clone());
    let mark = |row: usize| marks.as_ref().map(|marks| marks.value(row));
    (0..rows).map(|row| (lefts[row], rights[row], mark(row))).collect()
}

fn check(left: &Input, right: &Input, options: &CaseOptions) -> Result<(), TestCaseError> {
    let case = JoinCase {
        join_type: options.join_type,
        nulls_equal: options.nulls_equal && !options.null_aware,
        null_aware: options.null_aware,
        filtered: options.filtered,
    };
    let expected = oracle(left, right, &case);
    let join = options.join(left, right);
    let (build, probe) = match options.build {
        Side::Left => (left.batches(), right.batches()),
        Side::Right => (right.batches(), left.batches()),
    };
    let outputs = probed(&table(&join, build.clone()), &probe, options.probers);
    let sizes = 1..=options.batch_rows;
    prop_assert!(outputs.iter().all(|output| sizes.contains(&output.num_rows())));
    prop_assert!(outputs.iter().all(|output| output.schema() == join.schema()));
    let mut found: Vec<_> =
        outputs.iter().flat_map(|output| joined(output, options, left, right)).collect();
    if options.probers == 1 {
        let row = |joined: &JoinedRow| match options.build {
            Side::Left => joined.1,
            Side::Right => joined.0,
        };
        let probed: Vec<_> = found.iter().filter_map(row).collect();
        prop_assert!(probed.is_sorted(), "{:?}", probed);
    }
    found.sort_unstable();
    prop_assert_eq!(&found, &expected);
    prop_assert_eq!(counted(&table(&join, build.clone()), &probe), expected.len() as u64);

    let none = join.with_projection(Vec::new()).unwrap();
    let outputs = probed(&table(&none, build), &probe, options.probers);
    let rows: usize = outputs.iter().map(RecordBatch::num_rows).sum();
    prop_assert_eq!(rows, expected.len());
    prop_assert!(outputs.iter().all(|output| output.num_columns() == 0));
    Ok(())
}

/// Key types of both sides for one key column.
fn kinds() -> impl Generate<Value = [&'static str; 2]> {
    let pair = (0..FAMILIES.len(), any::<[prop::sample::Index; 2]>()).prop_map(|(family, of)| {
        let family = FAMILIES[family];
        of.map(|index| family[index.index(family.len())])
    });
    prop_oneof![
        8 => pair,
        1 => prop::sample::select(&SINGLES[..]).prop_map(|kind| [kind; 2]),
    ]
}

fn rows(keys: usize, rows: usize, values: usize) -> impl Generate<Value = Vec<Vec<Option<usize>>>> {
    let (hot, null) =
        (prop::sample::select(&[0_u32, 1, 30][..]), prop_oneof![Just(1e-6), 0.01..0.5_f64]);
    (hot, null).prop_flat_map(move |(hot, null)| {
        let value = prop_oneof![10 => 0..values, hot => Just(values / 2)];
        let value = prop::option::weighted(1.0 - null, value);
        prop::collection::vec(prop::collection::vec(value, keys), 0..rows)
    })
}

pub(super) fn inputs() -> impl Generate<Value = [Input; 2]> {
    inputs_of(90, 130)
}

/// The same with at most this many rows.
pub(super) fn inputs_of(left_rows: usize, right_rows: usize) -> impl Generate<Value = [Input; 2]> {
    let keys = prop_oneof![4 => Just(1_usize), 3 => Just(2), 1 => Just(3), 1 => Just(5)];
    let values = prop_oneof![Just(VALUES), Just(3)];
    let batches = || prop::sample::select(&[1_usize, 2, 7, 49, 50, 51, 100, 8192][..]);
    keys.prop_flat_map(|keys| prop::collection::vec(kinds(), keys))
        .prop_flat_map(move |kinds| {
            let (keys, values) = (kinds.len(), values.clone());
            (
                Just(kinds),
                values.prop_flat_map(move |values| {
                    (rows(keys, left_rows, values), rows(keys, right_rows, values))
                }),
                batches(),
                batches(),
            )
        })
        .prop_map(|(kinds, (left, right), left_batch, right_batch)| {
            let input = |side: usize, rows, batch_rows| {
                let kinds = kinds.iter().map(|kinds| kinds[side]).collect();
                Input { kinds, rows, batch_rows, pad: 0 }
            };
            [input(0, left, left_batch), input(1, right, right_batch)]
        })
}

pub(super) fn options() -> impl Generate<Value = CaseOptions> {
    let join = (prop::sample::select(&JoinType::ALL[..]), any::<[bool; 4]>(), 0..4_u8);
    let layout = prop::sample::select(&TableLayout::ALL[..]);
    let batch_rows = prop::sample::select(&[1_usize, 2, 7, 49, 50, 51, 100, 8192][..]);
    let hash_mask = prop::sample::select(&[u64::MAX, u64::MAX, 3, 0][..]);
    (join, layout, batch_rows, 1..4_usize, hash_mask).prop_map(
        |((join_type, flags, aware), layout, batch_rows, probers, hash_mask)| {
            let [left, nulls_equal, filtered, scattered] = flags;
            CaseOptions {
                join_type,
                build: if left { Side::Left } else { Side::Right },
                nulls_equal,
                null_aware: aware == 0,
                filtered,
                layout,
                batch_rows,
                probers,
                scattered,
                hash_mask,
            }
        },
    )
}

/// Removes options that can't be combined.
pub(super) fn possible(mut options: CaseOptions, keys: usize) -> CaseOptions {
    let anti = matches!(options.join_type, JoinType::LeftAnti | JoinType::RightAnti);
    options.null_aware &= anti && keys == 1;
    options.filtered &= !options.null_aware;
    options
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn is_what_nested_loops_give([left, right] in inputs(), options in options()) {
        let options = possible(options, left.kinds.len());
        check(&left, &right, &options)?;
    }
}

/// Found by the random test: rows whose value the other side's type lacks, beside rows that are
/// null.
#[test]
fn nulls_beside_unmatchable_keys_are_still_keys() {
    let input = |kind, rows: Vec<Vec<Option<usize>>>, batch_rows| Input {
        kinds: vec!["f16", kind],
        rows,
        batch_rows,
        pad: 0,
    };
    let left = input("u64", vec![vec![Some(2), None]], 1);
    let mut rows = vec![vec![None, None]];
    rows.extend(vec![vec![None, Some(0)]; 12]);
    rows.extend(vec![vec![None, None]; 20]);
    rows.push(vec![Some(2), None]);
    for build in [Side::Left, Side::Right] {
        for layout in TableLayout::ALL {
            for batch_rows in [1, 7, 49] {
                let right = input("d8 i64", rows.clone(), batch_rows);
                let options = CaseOptions {
                    join_type: JoinType::Full,
                    build,
                    nulls_equal: true,
                    null_aware: false,
                    filtered: false,
                    layout,
                    batch_rows: 2,
                    probers: 2,
                    scattered: batch_rows == 7,
                    hash_mask: u64::MAX,
                };
                check(&left, &right, &options)
                    .unwrap_or_else(|error| panic!("{options:?}: {error}"));
            }
        }
    }
}

/// Every family with every join type at least once, deterministically.
#[test]
fn every_kind_in_every_join() {
    let families = FAMILIES.iter().copied().chain(SINGLES.iter().map(std::slice::from_ref));
    let mut turn = 0;
    for family in families {
        for (left, right) in family.iter().flat_map(|l| family.iter().map(move |r| (l, r))) {
            let input = |kind: &&'static str, rows: usize, step: usize| Input {
                kinds: vec![kind],
                rows: (0..rows)
                    .map(|row| vec![(row % 7 != 3).then_some(row * step % VALUES)])
                    .collect(),
                batch_rows: 8,
                pad: 0,
            };
            let (left, right) = (input(left, 21, 3), input(right, 34, 1));
            for join_type in JoinType::ALL {
                turn += 1;
                let options = CaseOptions {
                    join_type,
                    build: if turn % 2 == 0 { Side::Left } else { Side::Right },
                    nulls_equal: turn % 3 == 0,
                    null_aware: turn % 5 == 0,
                    filtered: turn % 4 == 0,
                    layout: TableLayout::ALL[turn % TableLayout::ALL.len()],
                    batch_rows: 5,
                    probers: 1,
                    scattered: turn % 13 < 6,
                    hash_mask: if turn % 11 == 0 { 1 } else { u64::MAX },
                };
                let options = possible(options, 1);
                check(&left, &right, &options)
                    .unwrap_or_else(|error| panic!("{options:?}: {error}"));
            }
        }
    }
}

/// `NOT IN` with and without nulls and rows on either side.
#[test]
fn null_aware_joins_treat_nulls_as_unknown() {
    let sides: [&[Option<usize>]; 5] =
        [&[], &[None], &[Some(1), Some(2), Some(1)], &[Some(2), None, Some(4)], &[Some(0)]];
    // Numbers that the other side's type lacks are not nulls.
    for kinds in [["i64", "i32"], ["i64", "u64"], ["u64", "i8"], ["utf8", "d8 utf8"]] {
        for (left, right) in sides.iter().flat_map(|l| sides.iter().map(move |r| (l, r))) {
            let input = |side: usize, values: &[Option<usize>]| Input {
                kinds: vec![kinds[side]],
                rows: values.iter().map(|value| vec![*value]).collect(),
                batch_rows: 2,
                pad: 0,
            };
            let (left, right) = (input(0, left), input(1, right));
            for (join_type, build) in [JoinType::LeftAnti, JoinType::RightAnti]
                .into_iter()
                .flat_map(|join_type| [Side::Left, Side::Right].map(|side| (join_type, side)))
            {
                let layouts = TableLayout::ALL.map(|layout| (u64::MAX, layout));
                for (hash_mask, layout) in layouts.into_iter().chain([(0, TableLayout::Auto)]) {
                    let options = CaseOptions { join_type, build, hash_mask, layout, ..PLAIN };
                    let options = CaseOptions { null_aware: true, ..options };
                    check(&left, &right, &options)
                        .unwrap_or_else(|error| panic!("{options:?}: {error}"));
                }
            }
        }
    }
}

/// Keys that the other side's type lacks, beside nulls that are equal: neither has a place in the
/// ranges by which keys are packed.
#[test]
fn unmatchable_keys_are_packed_beside_nulls() {
    let input = |kinds: [&'static str; 2], rows: &[[Option<usize>; 2]]| Input {
        kinds: kinds.to_vec(),
        rows: rows.iter().map(|row| row.to_vec()).collect(),
        batch_rows: 50,
        pad: 0,
    };
    let all = (0..VALUES).map(|value| [Some(8), Some(value)]);
    let left: Vec<_> = all.clone().chain([[None, Some(6)], [Some(8), None]]).collect();
    let right: Vec<_> = [[None, Some(0)], [None, None]].into_iter().chain(all).collect();
    let left = input(["interval mdn", "u64"], &left);
    let right = input(["interval mdn", "d8 i64"], &right);
    for join_type in JoinType::ALL {
        for build in [Side::Left, Side::Right] {
            let options = CaseOptions { join_type, build, nulls_equal: true, ..PLAIN };
            check(&left, &right, &options).unwrap_or_else(|error| panic!("{options:?}: {error}"));
        }
    }
}

/// The default options.
pub(super) const PLAIN: CaseOptions = CaseOptions {
    join_type: JoinType::Inner,
    build: Side::Left,
    nulls_equal: false,
    null_aware: false,
    filtered: false,
    layout: TableLayout::Auto,
    batch_rows: 8192,
    probers: 1,
    scattered: false,
    hash_mask: u64::MAX,
};

#[test]
fn a_hot_key_is_resumed_in_batches_of_three() {
    let input =
        Input { kinds: vec!["i32"], rows: vec![vec![Some(4)]; 400], batch_rows: 160, pad: 0 };
    let options = CaseOptions { batch_rows: 3, ..PLAIN };
    let table_of = |options: &CaseOptions| table(&options.join(&input, &input), input.batches());
    let mut prober = Prober::new(table_of(&options));
    let mut rows = Vec::new();
    for batch in input.batches() {
        prober.probe(batch).unwrap();
        while let Some(output) = prober.next_output().unwrap() {
            assert!(output.num_rows() <= 3);
            let ids = |column| output.column(column).as_primitive::<UInt32Type>().clone();
            let (left, right): (UInt32Array, UInt32Array) = (ids(1), ids(3));
            rows.extend(right.values().iter().zip(left.values()).map(|(r, l)| (*r, *l)));
        }
    }
    prober.end().unwrap();
    assert!(prober.next_output().unwrap().is_none());
    let expected = (0..400).flat_map(|r| (0..400).map(move |l| (r, l)));
    assert!(rows.into_iter().eq(expected), "every pair once, in order of the probe side");
    for join_type in JoinType::ALL {
        let options = CaseOptions { join_type, filtered: true, batch_rows: 64, ..PLAIN };
        check(&input, &input, &options).unwrap();
    }
}
