//! Probes sorted by part of the table: the same rows as from buckets, in every type of join, and
//! buckets where there is something against it.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_row::{RowConverter, SortField};

use super::{InMemory, Rows, build, numbered};
use crate::*;

/// Caches so small that the tables here have many parts.
const SMALL: Caches = Caches { l2_bytes: 16 << 10, ..Caches::ASSUMED };

/// What comes out, sorted; its number of rows when they are only counted; and what was sorted by
/// part, of both.
fn joined(join: &HashJoin, sides: [&Rows; 2], probers: usize) -> (Vec<Vec<u8>>, [u64; 3]) {
    let [build_side, probe_side] = sides.map(Rows::batches);
    let rows_of = |counts_only| {
        let table = build(join, build_side.clone());
        assert_eq!(table.choice().design == Design::Radix, join.design == Design::Radix);
        let (next, outputs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let worker = |_| InMemory {
            batches: &probe_side,
            next: &next,
            outputs: &outputs,
            fail_at: usize::MAX,
            counts_only,
        };
        let (_, metrics) = run(&table, (0..probers).map(worker).collect()).unwrap();
        (outputs.into_inner().unwrap(), metrics)
    };
    let (outputs, metrics) = rows_of(false);
    let (_, counted) = rows_of(true);
    let schema = join.schema();
    let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).unwrap();
    let mut rows = Vec::new();
    for output in &outputs {
        let converted = converter.convert_columns(output.columns()).unwrap();
        rows.extend(converted.iter().map(|row| row.as_ref().to_vec()));
    }
    rows.sort_unstable();
    (rows, [counted.output_rows, metrics.scattered_rows, counted.scattered_rows])
}

#[test]
fn probes_by_parts_are_those_of_buckets_in_every_type() {
    // Far apart; some twice on either side, some on one side only.
    let mut left = numbered((0..6000).map(|i| i % 5000 * 7_000_003), 900);
    let mut right = numbered((0..9000).map(|i| i * 31 % 7000 * 7_000_003), 512);
    (left.keys[17], right.keys[18], right.keys[1800]) = (None, None, None);
    let schema = |rows: &Rows| rows.batches()[0].schema();
    for join_type in JoinType::ALL {
        for build_side in [Side::Left, Side::Right] {
            for probers in [1, 3] {
                let on = [("key", "key")];
                let join = HashJoin::by_names(schema(&left), schema(&right), &on, join_type);
                let join = join.unwrap().with_build_side(build_side).with_caches(SMALL);
                let join = join.with_probers(probers).with_batch_rows(1000);
                let sides = match build_side {
                    Side::Left => [&left, &right],
                    Side::Right => [&right, &left],
                };
                let plain = join.clone().with_design(Design::Buckets);
                let radix = join.with_design(Design::Radix);
                let (expected, [count, ..]) = joined(&plain, sides, probers);
                let (found, [counted, scattered, scattered_to_count]) =
                    joined(&radix, sides, probers);
                assert!(found == expected, "{join_type} {build_side:?} {probers}");
                assert_eq!(counted, count);
                let keys = sides[1].keys.iter().flatten().count() as u64;
                assert_eq!([scattered, scattered_to_count], [keys; 2]);
            }
        }
    }
}

#[test]
fn buckets_are_kept_where_an_order_or_a_limit_or_a_hash_stands_against_it() {
    let rows = numbered((0..5000).map(|i| i * 7_000_003), 900);
    let schema = || rows.batches()[0].schema();
    let join = HashJoin::by_names(schema(), schema(), &[("key", "key")], JoinType::Inner).unwrap();
    let join = join.with_caches(SMALL).with_design(Design::Radix);
    let text: ArrayRef = Arc::new((0..99).map(|i| Some(i.to_string())).collect::<StringArray>());
    let number: ArrayRef = Arc::new((0..99).map(Some).collect::<Int64Array>());
    let texts = RecordBatch::try_from_iter([("key", text), ("id", number)]).unwrap();
    let of_texts =
        HashJoin::by_names(texts.schema(), texts.schema(), &[("key", "key")], JoinType::Inner);
    let of_texts = of_texts.unwrap().with_design(Design::Radix);
    let kept = join.clone().with_probe_order(Order::Kept);
    let limited = join.clone().with_memory(Pool::of(64 << 20));
    for (join, batches, why) in [
        (&kept, rows.batches(), "radix was asked for, but the probe's order is to be kept"),
        (&limited, rows.batches(), "radix was asked for, but memory is limited"),
        (&of_texts, vec![texts], "radix was asked for, but keys are hashed"),
    ] {
        let table = build(join, batches);
        assert_eq!(table.choice().design, Design::Buckets);
        assert_eq!(table.choice().design_why, why);
    }
    let table = build(&join, rows.batches());
    let why = &table.choice().design_why;
    assert!(why.contains("up to 3012 together"), "{why}");
}
