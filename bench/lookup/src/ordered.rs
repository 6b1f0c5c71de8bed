//! Ordered indexes.

use std::collections::BTreeMap;

use congee::Congee;
use serde_json::Value;
use workahead_lookup::OrderedIndex;

use crate::keys::{Key, Keys, Probes};
use crate::timing::{Candidate, interleaved};
use crate::{Settings, batches};

/// Look-ups of keys of a type in indexes of `count` entries.
pub fn look_ups<K: Key>(count: usize, settings: &Settings) -> Vec<Value> {
    let keys = Keys::<K>::drawn(count, (settings.probes, settings.rounds));
    let mut entries: Vec<(K, u64)> = keys.there.iter().copied().zip(0_u64..).collect();
    entries.sort_unstable();
    entries.dedup_by_key(|(key, _)| *key);
    let index = OrderedIndex::from_sorted(entries.iter().copied(), settings.pages);
    let tree: BTreeMap<K, u64> = entries.iter().copied().collect();
    let set: indexset::BTreeMap<K, u64> = entries.iter().copied().collect();
    let radix = Congee::<usize, usize>::default();
    let guard = radix.pin();
    for (key, value) in &entries {
        // Other keys than numbers it does not take.
        let Some(key) = key.as_number() else { break };
        radix.insert(key as usize, *value as usize, &guard).expect("there is memory");
    }
    let (sorted, values): (Vec<K>, Vec<u64>) = entries.iter().copied().unzip();
    let mut groups = Vec::new();
    for of in [Probes::Hits, Probes::Misses] {
        let rounds = keys.rounds(of, settings.probes);
        let rounds = &rounds[..];
        let mut all = vec![
            Candidate::new("BTreeMap", |round| sum(rounds[round], |key| tree.get(key).copied())),
            Candidate::new("get_many", |round| batches_of(&index, rounds[round])),
            Candidate::new("get, one by one", |round| {
                sum(rounds[round], |key| index.get(key).copied())
            }),
            Candidate::new("sorted array, branch-free", |round| {
                sum(rounds[round], |key| search(&sorted, key).map(|at| values[at]))
            }),
            Candidate::new("indexset", |round| sum(rounds[round], |key| set.get(key).copied())),
        ];
        if rounds[0][0].as_number().is_some() {
            all.push(Candidate::new("congee", |round| {
                sum(rounds[round], |key| {
                    let key = key.as_number()? as usize;
                    radix.get(&key, &guard).map(|value| value as u64)
                })
            }));
        }
        for technique in &settings.techniques {
            let mut other = OrderedIndex::from_sorted(entries.iter().copied(), settings.pages);
            other.set_technique(Some(*technique));
            let look_up = move |round: usize| batches_of(&other, rounds[round]);
            all.push(Candidate::new(format!("get_many, {technique:?}"), look_up));
        }
        let group = format!("ordered, {}, {count}, {}", K::NAME, of.name());
        groups.push(interleaved(&group, all, settings.rounds, settings.probes));
    }
    groups
}

fn batches_of<K: Key>(index: &OrderedIndex<K, u64>, probes: &[K]) -> u64 {
    batches(probes, |keys, found| index.get_many(keys, found))
}

fn sum<K>(keys: &[K], mut get: impl FnMut(&K) -> Option<u64>) -> u64 {
    keys.iter().filter_map(&mut get).map(|value| value + 1).sum()
}

/// A binary search whose steps are conditional moves (Khuong and Morin, *Array Layouts for
/// Comparison-Based Searching*, 2017, Listing 2).
fn search<K: Ord>(sorted: &[K], key: &K) -> Option<usize> {
    let (mut base, mut len) = (0, sorted.len());
    while len > 1 {
        let half = len / 2;
        base = std::hint::select_unpredictable(sorted[base + half - 1] < *key, base + half, base);
        len -= half;
    }
    (sorted.get(base) == Some(key)).then_some(base)
}
