//! Edge cases: empty inputs, promises about order, projections, and rejected joins.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UnionArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, UnionFields};

use crate::*;

fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    let columns = columns.iter().map(|(name, array)| (*name, array.clone(), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn numbers(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn joined(join: &HashJoin, build: &[RecordBatch], probe: &[RecordBatch]) -> Vec<RecordBatch> {
    let mut side = join.build();
    build.iter().for_each(|batch| side.push(batch.clone()).unwrap());
    let mut prober = Prober::new(Arc::new(side.finish().unwrap()));
    let mut outputs = Vec::new();
    for batch in probe {
        prober.probe(batch.clone()).unwrap();
        outputs.extend(std::iter::from_fn(|| prober.next_output().unwrap()));
    }
    let final_phase = prober.end().unwrap();
    outputs.extend(std::iter::from_fn(|| prober.next_output().unwrap()));
    if let Some(mut final_phase) = final_phase {
        outputs.extend(std::iter::from_fn(|| final_phase.next_output().unwrap()));
    }
    outputs
}

fn rows(outputs: &[RecordBatch]) -> usize {
    outputs.iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn inputs_without_rows_or_batches_have_a_result() {
    let some = batch(&[("k", numbers([Some(1), None, Some(2)])), ("t", texts(&["a", "b", "c"]))]);
    let none = some.slice(0, 0);
    let keys: [&[(usize, usize)]; 4] = [&[(0, 0)], &[(0, 0), (0, 0)], &[(1, 1)], &[(0, 0), (1, 1)]];
    for (on, build_side) in keys.iter().flat_map(|on| [(on, Side::Left), (on, Side::Right)]) {
        for join_type in JoinType::ALL {
            let join = HashJoin::new(some.schema(), some.schema(), on, join_type).unwrap();
            let join = join.with_build_side(build_side);
            for empty in [&[], std::slice::from_ref(&none)] {
                let output_rules = join_type.output_rules(build_side);
                let all = [join_type::SideOutput::Unmatched, join_type::SideOutput::Marked];
                let expected = |unmatched| if all.contains(&unmatched) { 3 } else { 0 };
                let outputs = joined(&join, empty, std::slice::from_ref(&some));
                assert_eq!(
                    rows(&outputs),
                    expected(output_rules.probe),
                    "{join_type} {build_side:?}"
                );
                let outputs = joined(&join, std::slice::from_ref(&some), empty);
                assert_eq!(
                    rows(&outputs),
                    expected(output_rules.build),
                    "{join_type} {build_side:?}"
                );
                assert!(joined(&join, empty, empty).is_empty());
            }
        }
    }
}

#[test]
fn unmatched_rows_keep_their_place() {
    let left = batch(&[("k", numbers((0..200).map(|k| Some(k * 2 % 100))))]);
    let right = batch(&[("k", numbers((0..300).map(|k| (k % 7 > 0).then_some(k % 120))))]);
    let join = HashJoin::by_names(left.schema(), right.schema(), &[("k", "k")], JoinType::Right);
    let join = join.unwrap();
    for layout in TableLayout::ALL {
        for batch_rows in [1, 3, 8192] {
            let join = join.clone().with_table_layout(layout).with_batch_rows(batch_rows);
            let outputs = joined(&join, std::slice::from_ref(&left), std::slice::from_ref(&right));
            let keys = |output: &RecordBatch| {
                output.column(1).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
            };
            let mut found: Vec<_> = outputs.iter().flat_map(keys).collect();
            assert!(found.len() > 300);
            // Four left rows have each even key below 100 and can't be distinguished here.
            found.dedup_by(|next, before| next == before && next.is_some());
            let expected: Vec<_> = (0..300).map(|k| (k % 7 > 0).then_some(k % 120)).collect();
            assert_eq!(found, expected, "{layout} {batch_rows}");
        }
    }
}

#[test]
fn columns_are_selected_and_repeated() {
    let left = batch(&[("k", numbers([Some(1), Some(2)])), ("t", texts(&["a", "b"]))]);
    let right = batch(&[("k", numbers([Some(2), Some(3)]))]);
    let join =
        HashJoin::by_names(left.schema(), right.schema(), &[("k", "k")], JoinType::RightMark)
            .unwrap()
            .with_projection(vec![1, 0, 1])
            .unwrap()
            .with_suffix("_2");
    let names: Vec<_> = join.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["mark", "k", "mark"]);
    let outputs = joined(&join, &[left], &[right]);
    assert_eq!(outputs[0].column(2).as_boolean(), &BooleanArray::from(vec![true, false]));
    let wrong = join.with_projection(vec![0, 2]).unwrap_err().to_string();
    assert_eq!(
        wrong,
        "the projection [0, 2] does not fit: the output has 2 columns, counted from 0"
    );
}

#[test]
fn the_last_prober_returns_the_final_phase() {
    let side = batch(&[("k", numbers((0..10).map(Some)))]);
    let join = HashJoin::new(side.schema(), side.schema(), &[(0, 0)], JoinType::Full).unwrap();
    let mut build = join.build();
    build.push(side.clone()).unwrap();
    let table = Arc::new(build.finish().unwrap());
    table.expect_probers(2);
    let (mut first, mut second) = (Prober::new(table.clone()), Prober::new(table.clone()));
    first.probe(side.slice(0, 3)).unwrap();
    second.probe(side.slice(5, 2)).unwrap();
    assert!(first.next_output().unwrap().is_none() && second.next_output().unwrap().is_none());
    assert!(second.end().unwrap().is_none(), "the first has not ended");
    let mut final_phase = first.end().unwrap().unwrap();
    let unmatched = final_phase.next_output().unwrap().unwrap();
    assert_eq!(unmatched.column(0), &numbers([3, 4, 7, 8, 9].map(Some)));
    assert!(final_phase.next_output().unwrap().is_none());
}

#[derive(Debug)]
struct FixedResults(Vec<bool>);

impl ResidualPredicate for FixedResults {
    fn evaluate(&self, _: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        Ok(BooleanArray::from(self.0.clone()))
    }
}

fn filter(columns: Vec<(Side, usize)>, fields: &[DataType], results: Vec<bool>) -> Filter {
    let fields: Fields = fields.iter().map(|t| Field::new("f", t.clone(), true)).collect();
    Filter {
        columns,
        schema: Arc::new(Schema::new(fields)),
        filter: Arc::new(FixedResults(results)),
    }
}

#[test]
fn filters_that_do_not_fit_are_refused() {
    let side = batch(&[("k", numbers([Some(1)])), ("t", texts(&["a"]))]);
    let join = HashJoin::new(side.schema(), side.schema(), &[(0, 0)], JoinType::Inner).unwrap();
    let refused = |filter| join.clone().with_filter(filter).unwrap_err().to_string();
    let columns = vec![(Side::Right, 1)];
    assert_eq!(
        refused(filter(columns.clone(), &[], vec![])),
        "the filter's schema has 0 fields for 1 columns: give one for each"
    );
    assert_eq!(
        refused(filter(columns.clone(), &[DataType::Int8], vec![])),
        "the filter takes \"f\" as Int8, but the input has Utf8: cast one of them"
    );
    assert_eq!(
        refused(filter(vec![(Side::Left, 2)], &[DataType::Int8], vec![])),
        "the left input has no column 2: choose from its 2, counted from 0"
    );
    let join = join.with_filter(filter(columns, &[DataType::Utf8], vec![true; 2])).unwrap();
    let mut build = join.build();
    build.push(side.clone()).unwrap();
    let mut prober = Prober::new(Arc::new(build.finish().unwrap()));
    prober.probe(side).unwrap();
    let error = prober.next_output().unwrap_err().to_string();
    assert_eq!(error, "the filter returned 2 results for 1 rows: it must return one for each");
}

#[test]
fn meaningless_null_aware_joins_are_refused() {
    let side = batch(&[("k", numbers([Some(1)])), ("t", texts(&["a"]))]);
    let join = |on: &[(usize, usize)], join_type| {
        HashJoin::new(side.schema(), side.schema(), on, join_type).unwrap()
    };
    let refused = |join: HashJoin| join.with_null_aware().unwrap_err().to_string();
    assert!(refused(join(&[(0, 0)], JoinType::LeftSemi)).starts_with("only an anti join"));
    let two = join(&[(0, 0), (1, 1)], JoinType::LeftAnti);
    assert!(refused(two).contains("exactly one key: leave null-awareness out"));
    let always = || filter(vec![], &[], vec![true]);
    let filtered = join(&[(0, 0)], JoinType::RightAnti).with_filter(always()).unwrap();
    assert!(refused(filtered).contains("no filter"));
    let aware = join(&[(0, 0)], JoinType::RightAnti).with_null_aware().unwrap();
    assert!(aware.with_filter(always()).is_err());
}

#[test]
fn keys_that_can_not_be_equal_are_refused() {
    let (number, other) = (DataType::Int32, DataType::Decimal128(9, 2));
    let refused = |left: DataType, right: DataType, on: &[(usize, usize)]| {
        let schema = |name, t| Arc::new(Schema::new(vec![Field::new(name, t, true)]));
        let join = HashJoin::new(schema("a", left), schema("b", right), on, JoinType::Inner);
        join.map(|_| ()).map_err(|error| error.to_string())
    };
    let kinds = "the keys \"a\" (Int32) and \"b\" (Decimal128(9, 2)) can't be equal: \
                 cast one to the type of the other";
    assert_eq!(refused(number.clone(), other.clone(), &[(0, 0)]), Err(kinds.to_owned()));
    let timestamp = |zone: Option<&str>| {
        DataType::Timestamp(arrow_schema::TimeUnit::Second, zone.map(Into::into))
    };
    assert!(refused(timestamp(None), timestamp(Some("UTC")), &[(0, 0)]).is_err());
    assert!(refused(timestamp(Some("+01:00")), timestamp(Some("UTC")), &[(0, 0)]).is_ok());
    assert!(refused(other, DataType::Decimal128(9, 3), &[(0, 0)]).is_err());
    assert!(refused(DataType::Float32, DataType::Float64, &[(0, 0)]).is_err());
    assert!(refused(DataType::Binary, DataType::Utf8, &[(0, 0)]).is_err());
    let none = refused(number.clone(), number.clone(), &[]).unwrap_err();
    assert_eq!(
        none,
        "a hash join needs a pair of key columns: name one, or use a nested-loop join"
    );
    let position = refused(number.clone(), number, &[(0, 1)]).unwrap_err();
    assert_eq!(position, "the right input has no column 1: choose from its 1, counted from 0");
}

/// A payload may be of any type, also if it is null-extended.
#[test]
fn payloads_of_any_type_are_null_extended() {
    let fields = [(0, Arc::new(Field::new("n", DataType::Int64, true)))];
    let union = UnionArray::try_new(
        fields.into_iter().collect::<UnionFields>(),
        ScalarBuffer::from(vec![0_i8; 3]),
        None,
        vec![numbers([Some(7), None, Some(9)])],
    );
    let dictionary: arrow_array::DictionaryArray<UInt32Type> =
        ["x", "y", "x"].into_iter().collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("k", numbers([Some(1), Some(2), Some(3)])),
        ("union", Arc::new(union.unwrap())),
        ("dictionary", Arc::new(dictionary)),
    ];
    let left = batch(&columns);
    let right = batch(&[("k", numbers([Some(3), Some(5), Some(2), Some(4)]))]);
    let join = HashJoin::by_names(left.schema(), right.schema(), &[("k", "k")], JoinType::Full);
    let join = join.unwrap();
    for build in [vec![left.clone()], vec![left.slice(0, 2), left.slice(2, 1)]] {
        let outputs = joined(&join, &build, std::slice::from_ref(&right));
        let keys = |column| {
            let of =
                |output: &RecordBatch| output.column(column).as_primitive::<Int64Type>().clone();
            outputs
                .iter()
                .flat_map(|output| of(output).iter().collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(0), [Some(3), None, Some(2), None, Some(1)]);
        assert_eq!(keys(3), [Some(3), Some(5), Some(2), Some(4), None]);
        let text = |output: &RecordBatch| {
            let array = output.column(2).as_dictionary::<UInt32Type>();
            let array = array.downcast_dict::<StringArray>().unwrap();
            array.into_iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        let texts: Vec<_> = outputs.iter().flat_map(text).collect();
        let expected = [Some("x"), None, Some("y"), None, Some("x")];
        assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
    }
}

/// One build row whose hash equals that of all probe rows: the keys themselves must be compared.
#[test]
fn equal_hashes_are_compared_by_key() {
    let others: Vec<String> =
        (0..300).map(|row| format!("{:width$}", row, width = row % 40)).collect();
    for build in ["7", "           11", "                            28"] {
        let one = batch(&[("k", texts(&[build]))]);
        let many: Vec<&str> = others.iter().map(String::as_str).chain([build]).collect();
        let many = batch(&[("k", texts(&many))]);
        for (join_type, expected) in [
            (JoinType::Inner, 1),
            (JoinType::Right, 301),
            (JoinType::RightSemi, 1),
            (JoinType::RightAnti, 300),
            (JoinType::LeftSemi, 1),
        ] {
            let join = HashJoin::new(one.schema(), many.schema(), &[(0, 0)], join_type).unwrap();
            let mut join = join.with_build_side(Side::Left);
            join.spec.hash_mask = 0;
            let outputs = joined(&join, std::slice::from_ref(&one), std::slice::from_ref(&many));
            assert_eq!(rows(&outputs), expected, "{join_type} {build:?}");
        }
    }
}

/// Null keys stay among the keys of a dense table, masked: whatever is below a null, it matches
/// nothing. Lengths around a word of the mask, in slices that start anywhere in one.
#[test]
fn nulls_match_nothing_whatever_is_below_them() {
    let one = batch(&[("k", numbers([Some(7), Some(8), Some(7), None]))]);
    for (rows, start) in [(1, 0), (63, 0), (64, 3), (65, 0), (128, 7), (3000, 61)] {
        for every in [2, 3, 100] {
            let valid = |row: usize| !row.is_multiple_of(every);
            let nulls = (0..start + rows).map(valid).collect();
            let keys = Int64Array::new(vec![7; start + rows].into(), Some(nulls));
            let many = batch(&[("k", Arc::new(keys))]).slice(start, rows);
            let matched = (start..start + rows).filter(|row| valid(*row)).count();
            for (join_type, expected) in [
                (JoinType::Inner, 2 * matched),
                (JoinType::Right, rows + matched),
                (JoinType::RightSemi, matched),
                (JoinType::RightAnti, rows - matched),
                (JoinType::RightMark, rows),
                (JoinType::LeftSemi, if matched > 0 { 2 } else { 0 }),
            ] {
                for layout in [TableLayout::Dense, TableLayout::Buckets] {
                    let on = [("k", "k")];
                    let join = HashJoin::by_names(one.schema(), many.schema(), &on, join_type);
                    let join = join.unwrap().with_build_side(Side::Left).with_table_layout(layout);
                    let outputs =
                        joined(&join, std::slice::from_ref(&one), std::slice::from_ref(&many));
                    assert_eq!(
                        self::rows(&outputs),
                        expected,
                        "{join_type} {layout:?} {rows} {start} {every}"
                    );
                }
            }
        }
    }
}

/// A join that only asks whether a key is there has a bit for each integer, or buckets without
/// lists of a key's rows.
#[test]
fn existence_needs_no_rows() {
    let bytes = |apart: i64, join_type| {
        let many = batch(&[("k", numbers((0..1000).map(|row| Some(row % 10 * apart))))]);
        let join = HashJoin::by_names(many.schema(), many.schema(), &[("k", "k")], join_type);
        let mut build = join.unwrap().with_build_side(Side::Left).build();
        build.push(many.clone()).unwrap();
        let table = build.finish().unwrap();
        (table.layout_choice().layout, table.table_bytes())
    };
    assert!(bytes(1, JoinType::RightAnti).1 < 10 * 8);
    let (layout, all) = bytes(1 << 40, JoinType::Inner);
    assert_eq!(
        (layout, bytes(1 << 40, JoinType::RightSemi)),
        (TableLayout::Buckets, (layout, all - 4000))
    );
}
