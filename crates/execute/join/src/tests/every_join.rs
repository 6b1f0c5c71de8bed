//! Every join against nested loops: random types of keys, nulls, duplicates, batch sizes, both
//! build sides, every type of join, null equality, filters, designs, hashes that collide.

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
use super::inputs::{Input, Joined, Question, oracle, wanted};
use super::kinds::{ALONE, FAMILIES, VALUES};
use crate::*;

/// Wants pairs by the numbers of their rows.
#[derive(Debug)]
struct ByIds;

impl ResidualPredicate for ByIds {
    fn evaluate(&self, pairs: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let ids = |column| pairs.column(column).as_primitive::<UInt32Type>().values();
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

/// How a case is joined.
#[derive(Debug, Clone)]
pub(super) struct How {
    pub(super) join_type: JoinType,
    pub(super) build: Side,
    pub(super) nulls_equal: bool,
    pub(super) null_aware: bool,
    pub(super) filtered: bool,
    pub(super) design: TableLayout,
    pub(super) batch_rows: usize,
    pub(super) probers: usize,
    /// Whether the table is built as one that does not fit the cache.
    pub(super) scattered: bool,
    pub(super) hash_mask: u64,
}

impl How {
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
            .with_table_layout(self.design)
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

/// The rows of an output, its columns checked against those of the inputs.
pub(super) fn joined(output: &RecordBatch, how: &How, left: &Input, right: &Input) -> Vec<Joined> {
    let rows = output.num_rows();
    let mut at = 0;
    let mut ids = |side, input: &Input| {
        if !how.join_type.outputs(side) {
            return vec![None; rows];
        }
        let columns = input.id_column() + 1;
        let ids = output.column(at + columns - 1).as_primitive::<UInt32Type>();
        let whole = input.whole();
        for column in 0..columns {
            let expected = take(whole.column(column), ids, None).unwrap();
            let found = output.column(at + column);
            assert_eq!(found.data_type(), expected.data_type());
            // Dictionaries may be rewritten; what they show is checked by the other tests.
            if !matches!(expected.data_type(), DataType::Dictionary(..)) {
                assert_eq!(found, &expected, "column {}", at + column);
            }
        }
        at += columns;
        ids.iter().collect::<Vec<_>>()
    };
    let (lefts, rights) = (ids(Side::Left, left), ids(Side::Right, right));
    let marks = how.join_type.is_mark().then(|| output.column(at).as_boolean().clone());
    let mark = |row: usize| marks.as_ref().map(|marks| marks.value(row));
    (0..rows).map(|row| (lefts[row], rights[row], mark(row))).collect()
}

fn check(left: &Input, right: &Input, how: &How) -> Result<(), TestCaseError> {
    let question = Question {
        join_type: how.join_type,
        nulls_equal: how.nulls_equal && !how.null_aware,
        null_aware: how.null_aware,
        filtered: how.filtered,
    };
    let expected = oracle(left, right, &question);
    let join = how.join(left, right);
    let (build, probe) = match how.build {
        Side::Left => (left.batches(), right.batches()),
        Side::Right => (right.batches(), left.batches()),
    };
    let outputs = probed(&table(&join, build.clone()), &probe, how.probers);
    let sizes = 1..=how.batch_rows;
    prop_assert!(outputs.iter().all(|output| sizes.contains(&output.num_rows())));
    prop_assert!(outputs.iter().all(|output| output.schema() == join.schema()));
    let mut found: Vec<_> =
        outputs.iter().flat_map(|output| joined(output, how, left, right)).collect();
    if how.probers == 1 {
        let row = |joined: &Joined| match how.build {
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
    let outputs = probed(&table(&none, build), &probe, how.probers);
    let rows: usize = outputs.iter().map(RecordBatch::num_rows).sum();
    prop_assert_eq!(rows, expected.len());
    prop_assert!(outputs.iter().all(|output| output.num_columns() == 0));
    Ok(())
}

/// Kinds of one key, of both sides.
fn kinds() -> impl Generate<Value = [&'static str; 2]> {
    let pair = (0..FAMILIES.len(), any::<[prop::sample::Index; 2]>()).prop_map(|(family, of)| {
        let family = FAMILIES[family];
        of.map(|index| family[index.index(family.len())])
    });
    prop_oneof![
        8 => pair,
        1 => prop::sample::select(&ALONE[..]).prop_map(|kind| [kind; 2]),
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

/// With at most so many rows.
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

pub(super) fn hows() -> impl Generate<Value = How> {
    let join = (prop::sample::select(&JoinType::ALL[..]), any::<[bool; 4]>(), 0..4_u8);
    let design = prop::sample::select(&TableLayout::ALL[..]);
    let batch_rows = prop::sample::select(&[1_usize, 2, 7, 49, 50, 51, 100, 8192][..]);
    let hash_mask = prop::sample::select(&[u64::MAX, u64::MAX, 3, 0][..]);
    (join, design, batch_rows, 1..4_usize, hash_mask).prop_map(
        |((join_type, flags, aware), design, batch_rows, probers, hash_mask)| {
            let [left, nulls_equal, filtered, scattered] = flags;
            How {
                join_type,
                build: if left { Side::Left } else { Side::Right },
                nulls_equal,
                null_aware: aware == 0,
                filtered,
                design,
                batch_rows,
                probers,
                scattered,
                hash_mask,
            }
        },
    )
}

/// Without what does not go together.
pub(super) fn possible(mut how: How, keys: usize) -> How {
    let anti = matches!(how.join_type, JoinType::LeftAnti | JoinType::RightAnti);
    how.null_aware &= anti && keys == 1;
    how.filtered &= !how.null_aware;
    how
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn is_what_nested_loops_give([left, right] in inputs(), how in hows()) {
        let how = possible(how, left.kinds.len());
        check(&left, &right, &how)?;
    }
}

/// Found by chance: rows whose number the other side has not beside rows that are null there.
#[test]
fn a_null_beside_what_can_not_match_is_still_a_key() {
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
        for design in TableLayout::ALL {
            for batch_rows in [1, 7, 49] {
                let right = input("d8 i64", rows.clone(), batch_rows);
                let how = How {
                    join_type: JoinType::Full,
                    build,
                    nulls_equal: true,
                    null_aware: false,
                    filtered: false,
                    design,
                    batch_rows: 2,
                    probers: 2,
                    scattered: batch_rows == 7,
                    hash_mask: u64::MAX,
                };
                check(&left, &right, &how).unwrap_or_else(|error| panic!("{how:?}: {error}"));
            }
        }
    }
}

/// Every family with every type of join at least once, whatever chance does.
#[test]
fn every_kind_in_every_join() {
    let families = FAMILIES.iter().copied().chain(ALONE.iter().map(std::slice::from_ref));
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
                let how = How {
                    join_type,
                    build: if turn % 2 == 0 { Side::Left } else { Side::Right },
                    nulls_equal: turn % 3 == 0,
                    null_aware: turn % 5 == 0,
                    filtered: turn % 4 == 0,
                    design: TableLayout::ALL[turn % TableLayout::ALL.len()],
                    batch_rows: 5,
                    probers: 1,
                    scattered: turn % 13 < 6,
                    hash_mask: if turn % 11 == 0 { 1 } else { u64::MAX },
                };
                let how = possible(how, 1);
                check(&left, &right, &how).unwrap_or_else(|error| panic!("{how:?}: {error}"));
            }
        }
    }
}

/// `NOT IN` with and without nulls and rows on either side.
#[test]
fn null_aware_joins_know_what_is_unknown() {
    let sides: [&[Option<usize>]; 5] =
        [&[], &[None], &[Some(1), Some(2), Some(1)], &[Some(2), None, Some(4)], &[Some(0)]];
    // Numbers the other side's type has not are no nulls.
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
                let designs = TableLayout::ALL.map(|design| (u64::MAX, design));
                for (hash_mask, design) in designs.into_iter().chain([(0, TableLayout::Auto)]) {
                    let how = How { join_type, build, hash_mask, design, ..PLAIN };
                    let how = How { null_aware: true, ..how };
                    check(&left, &right, &how).unwrap_or_else(|error| panic!("{how:?}: {error}"));
                }
            }
        }
    }
}

/// A key that the other side's type has not, beside nulls that are equal: they have no place in the
/// ranges by which keys are packed.
#[test]
fn impossible_keys_stand_beside_nulls() {
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
            let how = How { join_type, build, nulls_equal: true, ..PLAIN };
            check(&left, &right, &how).unwrap_or_else(|error| panic!("{how:?}: {error}"));
        }
    }
}

/// The least a case says.
pub(super) const PLAIN: How = How {
    join_type: JoinType::Inner,
    build: Side::Left,
    nulls_equal: false,
    null_aware: false,
    filtered: false,
    design: TableLayout::Auto,
    batch_rows: 8192,
    probers: 1,
    scattered: false,
    hash_mask: u64::MAX,
};

#[test]
fn a_hot_key_is_resumed_in_batches_of_three() {
    let input =
        Input { kinds: vec!["i32"], rows: vec![vec![Some(4)]; 1000], batch_rows: 400, pad: 0 };
    let how = How { batch_rows: 3, ..PLAIN };
    let table_of = |how: &How| table(&how.join(&input, &input), input.batches());
    let mut prober = Prober::new(table_of(&how));
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
    let expected = (0..1000).flat_map(|r| (0..1000).map(move |l| (r, l)));
    assert!(rows.into_iter().eq(expected), "every pair once, in order of the probe side");
    for join_type in JoinType::ALL {
        let how = How { join_type, filtered: true, batch_rows: 64, ..PLAIN };
        check(&input, &input, &how).unwrap();
    }
}
