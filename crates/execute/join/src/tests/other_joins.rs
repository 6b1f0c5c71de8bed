//! One table for many joins: each has the rows of a join of its own.

use arrow_select::concat::concat_batches;

use super::kinds::{FAMILIES, VALUES, pool};
use super::*;

const PROBED: [JoinType; 5] =
    [JoinType::Inner, JoinType::Left, JoinType::LeftSemi, JoinType::LeftAnti, JoinType::LeftMark];

/// Rows with values of a type, by their positions, and a number.
fn side(kind: &str, values: &[usize]) -> RecordBatch {
    let rows = UInt32Array::from_iter_values(values.iter().map(|value| *value as u32));
    let keys = arrow_select::take::take(&pool(kind), &rows, None).unwrap();
    let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..values.len() as u32));
    RecordBatch::try_from_iter_with_nullable([("key", keys, true), ("id", ids, false)]).unwrap()
}

fn join(probe: &RecordBatch, build: &RecordBatch, how: JoinType) -> HashJoin {
    HashJoin::by_names(probe.schema(), build.schema(), &[("key", "key")], how)
        .unwrap()
        .with_build_side(Side::Right)
}

fn table(join: &HashJoin, build: &RecordBatch) -> JoinTable {
    let mut side = join.build();
    side.push(build.clone()).unwrap();
    side.finish().unwrap()
}

fn outputs(table: JoinTable, probe: &RecordBatch) -> RecordBatch {
    let (schema, mut prober) = (table.spec().schema(), Prober::new(Arc::new(table)));
    let mut all = Vec::new();
    prober.probe(probe.clone()).unwrap();
    all.extend(std::iter::from_fn(|| prober.next_output().unwrap()));
    assert!(prober.end().unwrap().is_none());
    all.extend(std::iter::from_fn(|| prober.next_output().unwrap()));
    concat_batches(&schema, &all).unwrap()
}

fn values() -> impl Generate<Value = Vec<usize>> {
    proptest::collection::vec(0..VALUES, 0..200)
}

/// Two types of a family: of the probe side and of the build side.
fn kinds() -> impl Generate<Value = (&'static str, &'static str)> {
    let of = |family: &'static [&'static str]| {
        (proptest::sample::select(family), proptest::sample::select(family))
    };
    proptest::sample::select(&FAMILIES[..]).prop_flat_map(of)
}

proptest! {
    #[test]
    fn a_table_serves_joins_of_other_types(
        (of_probe, of_build) in kinds(), probe in values(), build in values()
    ) {
        let (probe, build) = (side(of_probe, &probe), side(of_build, &build));
        let base = table(&join(&build, &build, JoinType::Left), &build);
        let memory = base.memory_bytes();
        for how in PROBED {
            let join = join(&probe, &build, how);
            match base.for_join(&join) {
                Ok(same) => prop_assert_eq!(
                    outputs(same, &probe),
                    outputs(table(&join, &build), &probe),
                    "{:?}", how
                ),
                // -1 and 2⁶⁴-1 have the same bits; integers of two widths are not rows of one form.
                Err(error) => {
                    prop_assert!(error.to_string().contains("cast"), "{error}");
                    prop_assert_ne!(of_probe, of_build);
                }
            }
        }
        prop_assert_eq!(base.memory_bytes(), memory, "what probers took is given back");
    }
}

#[test]
fn what_a_table_cannot_do_is_refused_with_a_remedy() {
    let build = side("i32", &[1, 2, 3]);
    let base = table(&join(&build, &build, JoinType::Left), &build);
    let refused = |join: &HashJoin| base.for_join(join).unwrap_err().to_string();
    assert!(refused(&join(&side("u64", &[1]), &build, JoinType::Left)).contains("cast"));
    assert!(refused(&join(&build, &build, JoinType::Full)).contains("build one"));
    assert!(refused(&join(&build, &side("i64", &[1]), JoinType::Left)).contains("other columns"));
    let inner = join(&build, &build, JoinType::Inner);
    let narrow = table(&inner, &build).for_join(&inner).unwrap_err().to_string();
    assert!(narrow.contains("build it for a left or right join"), "{narrow}");
    let other_side = inner.clone().with_build_side(Side::Left);
    assert!(refused(&other_side).contains("other columns"));
}

#[test]
fn many_threads_probe_views_of_one_table() {
    let build = side("utf8", &[1, 2, 3, 3]);
    let base = table(&join(&build, &build, JoinType::Left), &build);
    std::thread::scope(|scope| {
        for kind in ["utf8", "large utf8", "utf8 view", "d8 utf8"] {
            let base = &base;
            scope.spawn(move || {
                let probe = side(kind, &[3, 9, 1]);
                for _ in 0..50 {
                    let same = base.for_join(&join(&probe, &side("utf8", &[]), JoinType::Left));
                    assert_eq!(outputs(same.unwrap(), &probe).num_rows(), 4);
                }
            });
        }
    });
}
