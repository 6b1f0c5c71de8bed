//! Small joins with known answers, in all forms, so that the worker can't rot.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};

use crate::data::Sides;
use crate::join::{self, Form};

const KEYS: i64 = 1000;

/// Joins with one row a key, and with several; by one thread, and by two.
pub(crate) fn run() {
    for repeats in [1, 3] {
        let sides = sides(repeats);
        let (count, build_sum, probe_sum) = answer(&sides);
        assert!(count > 0);
        for threads in [1, 2] {
            for form in [Form::Sums, Form::Columns, Form::Checked] {
                let outcome = join::run(&sides, threads, form);
                assert_eq!(outcome.count, count, "{form:?} by {threads}");
                for (name, sum) in outcome.sums {
                    match name.as_str() {
                        "bv" => assert_eq!(sum, build_sum),
                        "pv" => assert_eq!(sum, probe_sum),
                        _ => assert_eq!(form, Form::Checked),
                    }
                }
            }
        }
    }
    println!("peers: the answers are right; to measure: cargo xtask bench peers");
}

/// Half of the probe keys have build rows.
fn sides(repeats: i64) -> Sides {
    let scattered = |key: i64| key.wrapping_mul(0x5851_f42d_4c95_7f2d);
    let batch = |value: &str, rows: i64, key: &dyn Fn(i64) -> i64| {
        let keys = Int64Array::from_iter_values((0..rows).map(|row| scattered(key(row))));
        let values = Int64Array::from_iter_values((0..rows).map(|row| row * row));
        let columns = [("k", Arc::new(keys) as ArrayRef), (value, Arc::new(values) as ArrayRef)];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    let build = batch("bv", KEYS * repeats, &|row| row % KEYS);
    let probe = batch("pv", KEYS * 8, &|row| row * 7 % (KEYS * 2));
    let halves = |batch: &RecordBatch| {
        let half = batch.num_rows() / 2;
        vec![batch.slice(0, half), batch.slice(half, batch.num_rows() - half)]
    };
    Sides { build: halves(&build), probe: halves(&probe) }
}

/// By a map of the standard library.
fn answer(sides: &Sides) -> (u64, i64, i64) {
    let rows = |batches: &[RecordBatch]| {
        let column = |batch: &RecordBatch, column| {
            batch.column(column).as_primitive::<Int64Type>().values().to_vec()
        };
        let pairs = |batch: &RecordBatch| column(batch, 0).into_iter().zip(column(batch, 1));
        batches.iter().flat_map(pairs).collect::<Vec<(i64, i64)>>()
    };
    let mut by_key: HashMap<i64, Vec<i64>> = HashMap::new();
    for (key, value) in rows(&sides.build) {
        by_key.entry(key).or_default().push(value);
    }
    let (mut count, mut build_sum, mut probe_sum) = (0, 0, 0);
    for (key, value) in rows(&sides.probe) {
        for build_value in by_key.get(&key).into_iter().flatten() {
            count += 1;
            build_sum += build_value;
            probe_sum += value;
        }
    }
    (count, build_sum, probe_sum)
}
