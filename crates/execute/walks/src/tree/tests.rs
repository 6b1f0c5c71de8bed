//! Trees against a sorted map, and against their own definition.

use std::collections::BTreeMap;

use proptest::prelude::*;
use workahead_machine::pages::Pages;

use super::*;
use crate::isa::Detected;
use crate::memory::Direct;
use crate::schedule::every::under_every_schedule;
use crate::schedule::{InTurn, Schedule};
use crate::walk::{Row, Rows};
use crate::with_isa;

/// Keys of a small domain, so that they repeat, with the awkward ones mixed in; some keys take half
/// of the table for themselves.
fn keys(most: usize) -> impl Strategy<Value = Vec<f32>> {
    let awkward = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE / 2.0, 7.0];
    let key = prop_oneof![
        4 => (0..200_i32).prop_map(|key| key as f32 / 4.0),
        2 => Just(7.0),
        2 => any::<f32>().prop_filter("a number", |key| !key.is_nan()),
        1 => proptest::sample::select(awkward.to_vec()),
    ];
    proptest::collection::vec(key, 0..most)
}

fn sorted(mut keys: Vec<f32>) -> Vec<(f32, u32)> {
    keys.sort_by(f32::total_cmp);
    keys.into_iter().zip(100..).collect()
}

/// A sorted map from a key to its RIDs; adding zero makes the two zeros one.
fn map_of(pairs: &[(f32, u32)]) -> BTreeMap<u32, Vec<u32>> {
    let mut map = BTreeMap::<u32, Vec<u32>>::new();
    for &(key, rid) in pairs {
        map.entry((key + 0.0).to_bits()).or_default().push(rid);
    }
    map
}

fn expected(pairs: &[(f32, u32)], outer: &[(f32, u32)]) -> Vec<(Row, (u32, u32))> {
    let map = map_of(pairs);
    let mut hits = Vec::new();
    for (row, &(key, rid)) in (0..).zip(outer) {
        for &inner in map.get(&(key + 0.0).to_bits()).into_iter().flatten() {
            hits.push((row, (rid, inner)));
        }
    }
    hits
}

/// Every schedule, clustered and unclustered, with and without upper levels walked at once.
fn check_walks<N: Node, S: Search>(
    tree: &Tree<N>,
    search: S,
    outer: &[(f32, u32)],
    expected: &[(Row, (u32, u32))],
) {
    let clustered = Lookup::new(tree, Clustered(outer), search);
    let mut records = vec![KeyedRecord { key: 0.0, payload: [9; 15] }; outer.len()];
    for &(key, rid) in outer {
        records[rid as usize].key = key;
    }
    let rids: Vec<u32> = outer.iter().map(|pair| pair.1).collect();
    let unclustered =
        Lookup::new(tree, Unclustered { rids: &rids, records: &records, row_stage: true }, search)
            .upper_levels_within(4096);
    let rows = Rows::range(0..outer.len() as Row);
    under_every_schedule(
        || clustered,
        rows,
        100,
        |name, hits| {
            assert_eq!(hits, expected, "clustered, {name}");
        },
    );
    under_every_schedule(
        || unclustered,
        rows,
        usize::MAX,
        |name, hits| {
            assert_eq!(hits, expected, "unclustered, {name}");
        },
    );
}

fn check<N: Node>(pairs: &[(f32, u32)], fill: Fill, outer: &[(f32, u32)]) {
    let tree = Tree::<N>::bulk_load(pairs, fill, Pages::Small).unwrap();
    check_shape(&tree, pairs, fill);
    let expected = expected(pairs, outer);
    check_walks(&tree, Binary, outer, &expected);
    for detected in Detected::all() {
        with_isa!(detected, isa => check_walks(&tree, Vector(isa), outer, &expected));
    }
}

/// The definition: children contiguous, separators the largest keys, nodes no fuller than asked.
fn check_shape<N: Node>(tree: &Tree<N>, pairs: &[(f32, u32)], fill: Fill) {
    let units = node::units::<N>() as u32;
    let mut below: Vec<f32> = Vec::new();
    let mut read = Vec::new();
    for (depth, level) in tree.levels().iter().enumerate().rev() {
        let mut largest = Vec::new();
        let mut child = 0;
        for i in level.first..level.first + level.nodes {
            let node = tree.at(i as u32 * units);
            if depth + 1 == tree.height() {
                let keys = node::keys(node);
                assert!(keys.len() <= fill.of(N::LEAF_PAIRS));
                let rids = (0..).map(|slot| node::rid(node, slot));
                read.extend(keys.iter().map(|key| f32::from_bits(*key)).zip(rids));
                largest.push(read.last().map_or(f32::NAN, |pair| pair.0));
                continue;
            }
            let next = tree.levels()[depth + 1];
            assert_eq!(node::group(node), (next.first + child) as u32 * units);
            let separators = node::separators(node);
            assert!(separators.len() <= fill.of(N::INNER_KEYS));
            for separator in separators {
                assert_eq!(*separator, below[child].to_bits());
                child += 1;
            }
            largest.push(below[child]);
            child += 1;
        }
        assert!(below.is_empty() || child == below.len(), "every node has one parent");
        below = largest;
    }
    assert_eq!(below.len(), 1);
    assert_eq!(read, pairs);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn lookups_agree_with_a_sorted_map(
        inner in keys(600),
        outer in keys(60),
        share in prop_oneof![Just(75_u8), Just(50), Just(100), 50..100_u8],
    ) {
        let pairs = sorted(inner);
        // Half of the probes are keys of the tree.
        let known = pairs.iter().step_by(7).map(|pair| pair.0);
        let keys: Vec<f32> = outer.into_iter().chain(known).chain([f32::NAN]).collect();
        // RIDs run against the rows, so that no test mistakes the one for the other.
        let outer: Vec<(f32, u32)> =
            keys.iter().copied().zip((0..keys.len() as u32).rev()).collect();
        let fill = Fill::percent(share).unwrap();
        check::<Node64>(&pairs, fill, &outer);
        check::<Node128>(&pairs, fill, &outer);
    }
}

#[test]
fn an_empty_tree_finds_nothing() {
    check::<Node64>(&[], Fill::PAPER, &[(0.0, 1), (f32::NAN, 0)]);
    check::<Node128>(&[], Fill::PAPER, &[(f32::INFINITY, 0)]);
}

#[test]
fn one_key_through_many_leaves_is_found_whole() {
    let pairs: Vec<(f32, u32)> = (0..1000).map(|rid| (1.5, rid)).collect();
    check::<Node64>(&pairs, Fill::PAPER, &[(1.5, 2), (1.0, 1), (2.0, 0)]);
    check::<Node128>(&pairs, Fill::PAPER, &[(1.5, 2), (1.0, 1), (2.0, 0)]);
}

#[test]
fn what_has_no_order_is_refused_by_position() {
    let load =
        |pairs: &[(f32, u32)]| match Tree::<Node64>::bulk_load(pairs, Fill::PAPER, Pages::Small) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("loaded"),
        };
    let message = load(&[(1.0, 0), (f32::NAN, 1)]);
    assert_eq!(message, "the key at position 1 is not a number: leave such rows out of the index");
    let message = load(&[(1.0, 0), (3.0, 1), (2.0, 2)]);
    assert_eq!(
        message,
        "the key at position 2 is smaller than the one before it: sort the pairs by key"
    );
    assert_eq!(
        Fill::percent(20).unwrap_err().to_string(),
        "nodes cannot be 20 % full: choose 50 to 100"
    );
}

/// Row A34 of the ledger at a tenth of its size; `benches/tree.rs` loads its ten million keys.
#[test]
fn a_million_keys_at_three_quarters_are_all_found() {
    fn height<N: Node>(pairs: &[(f32, u32)]) -> usize {
        let tree = Tree::<N>::bulk_load(pairs, Fill::PAPER, Pages::Huge).unwrap();
        check_shape(&tree, pairs, Fill::PAPER);
        let mut hits = Vec::new();
        let mut walk = Lookup::new(&tree, Clustered(pairs), Binary);
        let mut rows = Rows::range(0..pairs.len() as Row);
        InTurn::new().drive(&mut walk, &mut rows, &mut Direct, &mut hits);
        assert_eq!(hits.len(), pairs.len());
        assert!(hits.iter().all(|(_, (outer, inner))| outer == inner));
        println!("{} B nodes: {} keys, height {}", N::BYTES, tree.pairs(), tree.height());
        tree.height()
    }
    let pairs: Vec<(f32, u32)> = (0..1_000_000).map(|rid| (rid as f32, rid)).collect();
    assert_eq!(height::<Node128>(&pairs), 5);
    assert_eq!(height::<Node64>(&pairs), 7);
}

#[test]
fn only_levels_within_the_budget_are_walked_at_once_and_never_a_leaf() {
    let pairs: Vec<(f32, u32)> = (0..10_000).map(|rid| (rid as f32, rid)).collect();
    let tree = Tree::<Node64>::bulk_load(&pairs, Fill::PAPER, Pages::Small).unwrap();
    let nodes: Vec<usize> = tree.levels().iter().map(|level| level.nodes).collect();
    assert_eq!(nodes, [1, 2, 17, 182, 2000]);
    assert_eq!(tree.levels_within(63), 0);
    assert_eq!(tree.levels_within(64), 1);
    assert_eq!(tree.levels_within(20 * 64), 3);
    assert_eq!(tree.levels_within(usize::MAX), 4);
}
