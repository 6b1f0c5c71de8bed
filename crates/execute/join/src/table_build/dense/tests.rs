//! Tables built by several threads equal those built by one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use proptest::prelude::*;
use workahead_machine::pages::Pages;
use workahead_walks::bucket::Load;
use workahead_walks::random::Random;

use super::*;
use crate::keys::{EncodingKind, KeyEncoding};
use crate::{HashJoin, JoinType, Side, StopCheck};

/// A build side: keys in a range, all distinct or drawn from `among` values.
fn batches(seed: u64, sizes: &[usize], among: Option<u32>) -> Vec<RecordBatch> {
    let mut random = Random::of(seed);
    let rows: usize = sizes.iter().sum();
    let mut unique = random.permutation(rows as u32).into_iter();
    let mut key = || {
        let entry = match among {
            Some(among) => random.below(among),
            None => unique.next().expect("one a row"),
        };
        i64::from(entry) - 500
    };
    let batch = |rows: &usize| {
        let keys: Int64Array = (0..*rows).map(|_| Some(key())).collect();
        let values: Int64Array = keys.iter().map(|key| key.map(|key| key * 7)).collect();
        let columns: [(&str, ArrayRef); 2] = [("key", Arc::new(keys)), ("value", Arc::new(values))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    sizes.iter().map(batch).collect()
}

fn keys_of(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

/// The table's values by key; its duplicate lists; whether the values are payload.
fn built(
    batches: &[RecordBatch],
    threads: usize,
    (payload, entries): (Option<usize>, usize),
) -> (Vec<u64>, Vec<Row>, bool) {
    let schema = batches[0].schema();
    let join =
        HashJoin::by_names(schema.clone(), schema, &[("key", "key")], JoinType::Inner).unwrap();
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let stop = StopCheck::default();
    let source =
        KeyedRows { batches, reader: join.keys(Side::Left), read_keys: None, rows, stop: &stop };
    let pages = Pages::Small.into();
    let options = BuildOptions {
        load: Load::HALF,
        entries,
        threads,
        pages: &pages,
        partition_bytes: None,
        piece_rows: 700,
        payload,
        existence_only: false,
    };
    let span = Span { lowest: -500_i64 as u64, width: 99_999 };
    let encoding = KeyEncoding::new(EncodingKind::Identity);
    match source.build_dense(&options, span, &encoding).unwrap() {
        BuiltTable::Payload(table, _) => (table.values().collect(), Vec::new(), true),
        BuiltTable::Rows(mut table, repeats) => {
            let duplicate_lists = repeats.lay_out(&mut table, &pages, &stop).unwrap();
            (table.values().collect(), duplicate_lists.to_vec(), false)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn threads_do_not_show(
        seed in any::<u64>(),
        sizes in prop::collection::vec(1..9000_usize, 1..6),
        among in prop::option::of(prop_oneof![Just(1), 2..300_u32, Just(90_000)]),
        threads in 2..9_usize,
        payload in prop::option::of(Just(1)),
        guessed in any::<bool>(),
    ) {
        let batches = batches(seed, &sizes, among);
        let rows: usize = sizes.iter().sum();
        // A wrong estimate must not matter.
        let entries = if guessed { rows } else { rows / 2 };
        let one = built(&batches, 1, (payload, entries));
        let many = built(&batches, threads, (payload, entries));
        prop_assert_eq!(one.2, many.2);
        prop_assert!(one == many, "{} and {} values", one.0.len(), many.0.len());
        let mut keys: Vec<i64> = batches.iter().flat_map(keys_of).collect();
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(one.2, guessed && keys.len() == rows && payload.is_some());
    }
}
