//! Generators checked against what they promise.

use std::collections::{HashMap, HashSet};

use super::*;

#[test]
fn unique_keys_are_different_and_absent_keys_are_absent() {
    fn check<K: Key>() {
        let keys = UniqueKeys::<K>::new(20_000, 3).unwrap();
        let present: HashSet<K> = keys.iter().collect();
        assert_eq!(present.len(), 20_000);
        let absent: HashSet<K> = (0..20_000).map(|at| keys.absent(at)).collect();
        assert_eq!(absent.len(), 20_000);
        assert!(present.is_disjoint(&absent));
    }
    check::<u32>();
    check::<u64>();
}

#[test]
fn unique_keys_spread_over_their_width() {
    let keys = UniqueKeys::<u32>::new(64_000, 1).unwrap();
    let mut buckets = [0u32; 64];
    for key in keys.iter() {
        buckets[(key >> 26) as usize] += 1;
    }
    // 1000 each, standard deviation about 31: five of them.
    assert!(buckets.iter().all(|&count| (845..1155).contains(&count)), "{buckets:?}");
}

#[test]
fn the_seed_determines_and_matters() {
    let run = |seed| UniqueKeys::<u64>::new(10, seed).unwrap().iter().collect::<Vec<_>>();
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
    assert_eq!(permutation(100, 5), permutation(100, 5));
    assert_ne!(permutation(100, 5), permutation(100, 6));
    assert_eq!(uniform::<u32>(100, 9, 1).unwrap(), uniform::<u32>(100, 9, 1).unwrap());
}

/// A change of these numbers changes every recorded study: it must not happen by accident.
#[test]
fn the_numbers_themselves_are_fixed() {
    let keys = UniqueKeys::<u64>::new(2, 1).unwrap();
    assert_eq!([keys.present(0), keys.present(1)], FIXED_KEYS);
    assert_eq!(permutation(8, 1), FIXED_PERMUTATION);
    assert_eq!(uniform::<u64>(4, 1000, 1).unwrap(), FIXED_UNIFORM);
}

const FIXED_KEYS: [u64; 2] = [14295728871254658598, 13140354946934832101];
const FIXED_PERMUTATION: [u32; 8] = [2, 6, 5, 1, 0, 4, 3, 7];
const FIXED_UNIFORM: [u64; 4] = [877, 683, 337, 512];

#[test]
fn a_permutation_has_every_number_once() {
    let mut order = permutation(10_000, 2);
    assert_ne!(order[..100], (0..100).collect::<Vec<_>>());
    order.sort_unstable();
    assert_eq!(order, (0..10_000).collect::<Vec<_>>());
    assert!(permutation(0, 2).is_empty());
}

#[test]
fn uniform_keys_fill_their_range() {
    let keys = uniform::<u32>(10_000, 10, 4).unwrap();
    let mut counts = HashMap::new();
    for key in keys {
        *counts.entry(key).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 10);
    assert!(counts.iter().all(|(key, &count)| (1..=10).contains(key) && count > 800));
    assert!(uniform::<u32>(1, 0, 4).is_err());
    assert!(uniform::<u32>(1, 1 << 32, 4).is_err());
    assert!(uniform::<u64>(0, u64::MAX, 4).unwrap().is_empty());
}

#[test]
fn zipf_follows_its_law() {
    for exponent in [0.0, 0.5, 1.0, 1.5] {
        const RANKS: u32 = 100;
        const DRAWS: u32 = 100_000;
        let law = Zipf::new(RANKS, exponent).unwrap();
        let mut generator = generator(1, Stream::Picks);
        let mut counts = [0u32; RANKS as usize];
        for _ in 0..DRAWS {
            counts[law.draw(&mut generator) as usize] += 1;
        }
        let weight = |rank: u32| f64::from(rank + 1).powf(-exponent);
        let total: f64 = (0..RANKS).map(weight).sum();
        for rank in 0..RANKS {
            let expected = weight(rank) / total * f64::from(DRAWS);
            let seen = f64::from(counts[rank as usize]);
            let tolerance = 5.0 * expected.sqrt() + 1.0;
            assert!((seen - expected).abs() < tolerance, "s {exponent} rank {rank}: {seen}");
        }
    }
}

#[test]
fn zipf_refuses_what_does_not_exist() {
    assert!(Zipf::new(0, 1.0).is_err());
    for exponent in [-0.1, 8.5, f64::NAN, f64::INFINITY] {
        assert!(Zipf::new(10, exponent).is_err(), "{exponent}");
    }
    let one = Zipf::new(1, 8.0).unwrap();
    assert_eq!(one.draw(&mut generator(1, Stream::Picks)), 0);
    let wide = Zipf::new(u32::MAX, 0.0).unwrap();
    let mut generator = generator(2, Stream::Picks);
    assert!((0..100).map(|_| wide.draw(&mut generator)).any(|rank| rank > u32::MAX / 2));
}

#[test]
fn probes_hit_as_often_as_requested() {
    let build = UniqueKeys::<u32>::new(500, 1).unwrap();
    let present: HashSet<u32> = build.iter().collect();
    for pick in [Pick::InOrder, Pick::Uniform, Pick::Zipf(1.0)] {
        for (hit_rate, hits) in [(0.0, 0), (0.1, 300), (0.5, 1500), (1.0, 3000)] {
            let probes = Probes { rows: 3000, hit_rate, pick, seed: 9 };
            let keys = probes.keys(&build).unwrap();
            let found = keys.iter().filter(|&key| present.contains(key)).count();
            assert_eq!((keys.len(), found), (3000, hits), "{pick:?} {hit_rate}");
        }
    }
}

#[test]
fn picks_differ_as_their_names_say() {
    let build = UniqueKeys::<u64>::new(1000, 1).unwrap();
    let most = |pick| {
        let keys = Probes { rows: 20_000, hit_rate: 1.0, pick, seed: 3 }.keys(&build).unwrap();
        let mut counts = HashMap::new();
        for key in &keys {
            *counts.entry(*key).or_insert(0u32) += 1;
        }
        (counts.values().copied().max().unwrap(), keys)
    };
    let (in_order, keys) = most(Pick::InOrder);
    assert_eq!(in_order, 20);
    assert_eq!(keys[..1000], build.iter().collect::<Vec<_>>());
    let (uniform, _) = most(Pick::Uniform);
    let (zipf, _) = most(Pick::Zipf(1.0));
    assert!(uniform < 60 && zipf > 2000, "uniform {uniform}, zipf {zipf}");
}

#[test]
fn impossible_probes_are_refused() {
    let build = UniqueKeys::<u64>::new(0, 1).unwrap();
    let probes = Probes { rows: 10, hit_rate: 0.0, pick: Pick::Uniform, seed: 1 };
    assert_eq!(probes.keys(&build).unwrap().len(), 10);
    assert!(Probes { hit_rate: 0.5, ..probes }.keys(&build).is_err());
    assert!(Probes { hit_rate: 1.5, ..probes }.keys(&build).is_err());
    assert!(Probes { hit_rate: f64::NAN, ..probes }.keys(&build).is_err());
    assert!(UniqueKeys::<u32>::new((1 << 31) + 1, 1).is_err());
}
