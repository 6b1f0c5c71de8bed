//! The filter forgets no key, and keeps few others.

use std::collections::HashSet;

use proptest::prelude::*;
use workahead_machine::pages::Pages;

use super::*;
use crate::isa::Detected;
use crate::memory::Direct;
use crate::random::Random;
use crate::with_isa;

proptest! {
    #[test]
    fn no_key_is_forgotten(
        keys in prop::collection::vec(
            prop_oneof![Just(0), Just(u64::MAX), 0..500_u64, any::<u64>()], 0..700),
        probes in prop::collection::vec(prop_oneof![0..900_u64, any::<u64>()], 0..400),
        room in 0..900_usize,
        bits in prop_oneof![Just(Bits::Eight), Just(Bits::Sixteen)],
    ) {
        let mut filter = Filter::for_keys(room, bits, Pages::Small).unwrap();
        let (early, late) = keys.split_at(keys.len() / 3);
        filter.insert(early.iter().copied());
        filter.insert(late.iter().copied());
        let held: HashSet<u64> = keys.iter().copied().collect();
        prop_assert!(keys.iter().all(|key| filter.may_hold(*key)));
        let mut survivors = Survivors::default();
        let probes: Vec<u64> = probes.into_iter().chain(keys).collect();
        // Used again with fewer.
        for probes in [&probes[..], &probes[..probes.len() / 2], &[]] {
            let expected: Vec<(Row, u64)> = (0..).zip(probes.iter().copied())
                .filter(|(_, key)| filter.may_hold(*key))
                .collect();
            for detected in Detected::all() {
                let memory = &mut Prefetching::<ToL1>::default();
                with_isa!(detected, isa => {
                    let _proof = isa;
                    filter_keys(&filter, probes, memory, &mut survivors)
                });
                let rows = survivors.rows().iter().copied();
                let found: Vec<_> = rows.zip(survivors.keys().iter().copied()).collect();
                prop_assert_eq!(&found, &expected);
                filter_keys(&filter, probes, &mut Direct, &mut survivors);
                prop_assert_eq!(survivors.keys().len(), expected.len());
            }
            prop_assert!(probes.iter().zip(0..)
                .all(|(key, row)| !held.contains(key) || survivors.rows().contains(&row)));
        }
    }
}

/// The share of keys that are not there and yet survive, of keys that are near and of any.
fn false_positives(bits: Bits) -> [f64; 2] {
    const KEYS: u64 = 20_000;
    let mut random = Random::of(3);
    let random: Vec<u64> = (0..2 * KEYS).map(|_| random.number()).collect();
    let near: Vec<u64> = (0..2 * KEYS).collect();
    [random, near].map(|keys| {
        let (held, others) = keys.split_at(KEYS as usize);
        let mut filter = Filter::for_keys(held.len(), bits, Pages::Small).unwrap();
        filter.insert(held.iter().copied());
        others.iter().filter(|key| filter.may_hold(**key)).count() as f64 / KEYS as f64
    })
}

#[test]
fn few_others_survive() {
    for (bits, most) in [(Bits::Eight, 0.05), (Bits::Sixteen, 0.012)] {
        let found = false_positives(bits);
        assert!(found.iter().all(|rate| *rate < most), "{bits:?}: {found:?}");
    }
}
