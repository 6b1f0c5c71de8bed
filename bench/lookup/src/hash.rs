//! Hash maps, all with one hash function and room reserved.

use std::hash::BuildHasher;

use hashbrown::{HashMap, HashTable};
use serde_json::Value;
use workahead_lookup::{FoldedState, HashIndex, TableLookup};

use crate::keys::{Key, Keys, Probes};
use crate::limit::{Lines, hint};
use crate::timing::{Candidate, interleaved};
use crate::{BATCH, Settings, batches};

const SEED: u64 = 0x5EED;
/// Keys hashed, and their lines hinted at, before the first is looked up: by hand.
const BLOCK: usize = 64;

type Table<K> = HashTable<(K, u64)>;

/// Look-ups of keys of a type in maps of `count` entries.
pub fn look_ups<K: Key>(count: usize, settings: &Settings) -> Vec<Value> {
    let keys = Keys::<K>::drawn(count, (settings.probes, settings.rounds));
    let state = FoldedState::with_seed(SEED);
    let entries = || keys.there.iter().copied().zip(0_u64..);
    let mut index = HashIndex::with_options(count, state, settings.pages);
    index.insert_many(entries());
    let mut map = HashMap::with_capacity_and_hasher(count, state);
    map.extend(entries());
    let mut table = Table::with_capacity(count);
    for (key, value) in entries() {
        table.insert_unique(state.hash_one(key), (key, value), |(key, _)| state.hash_one(key));
    }
    #[cfg(boost)]
    let boost = crate::boost::Map::of(&keys.there, SEED);
    let lines = Lines::new(512 << 20, (settings.probes, settings.rounds));
    let mut groups = Vec::new();
    for of in [Probes::Hits, Probes::Misses] {
        let rounds = keys.rounds(of, settings.probes);
        let rounds = &rounds[..];
        let plain = |round: usize| sum(rounds[round].iter().map(|key| map.get(key)));
        // The limit's own sum has nothing to do with the values: it is made the same.
        let answer = plain(0).wrapping_sub(lines.hinted(0, 1));
        let (table, lines, index) = (&table, &lines, &index);
        let mut all = vec![
            Candidate::new("hashbrown", plain),
            Candidate::new("get_many", |round| {
                batches(rounds[round], |keys, found| index.get_many(keys, found))
            }),
            Candidate::new("get, one by one", |round| {
                sum(rounds[round].iter().map(|key| index.get(key)))
            }),
            Candidate::new("get_many of hashbrown's table", |round| {
                of_table(table, state, rounds[round])
            }),
            Candidate::new("hashbrown, hints by hand", |round| {
                by_hand(table, state, rounds[round])
            }),
            Candidate::new("hashbrown, tags by hand", |round| by_tags(table, state, rounds[round])),
            Candidate::new("random lines, loads", |round| lines.loads(round).wrapping_add(answer)),
            Candidate::new("random lines, hints", |round| {
                lines.hinted(round, 32).wrapping_add(answer)
            }),
        ];
        #[cfg(boost)]
        all.push(Candidate::new("boost::unordered_flat_map", |round| boost.sum(rounds[round])));
        for technique in &settings.techniques {
            let mut other = HashIndex::with_options(count, state, settings.pages);
            other.insert_many(entries());
            other.set_technique(Some(*technique));
            let look_up = move |round: usize| {
                batches(rounds[round], |keys, found| other.get_many(keys, found))
            };
            all.push(Candidate::new(format!("get_many, {technique:?}"), look_up));
        }
        let group = format!("hash, {}, {count}, {}", K::NAME, of.name());
        groups.push(interleaved(&group, all, settings.rounds, settings.probes));
    }
    groups
}

fn sum<'v>(found: impl Iterator<Item = Option<&'v u64>>) -> u64 {
    found.flatten().map(|value| value + 1).sum()
}

/// The table stays hashbrown's; the batches are ours.
fn of_table<K: Key>(table: &Table<K>, state: FoldedState, keys: &[K]) -> u64 {
    let lookup = TableLookup::new(table);
    let mut found = [None; BATCH];
    let mut total = 0;
    for keys in keys.chunks(BATCH) {
        let found = &mut found[..keys.len()];
        lookup.get_many(keys, |key| state.hash_one(key), |(there, _), key| there == key, found);
        total += found.iter().flatten().map(|(_, value)| value + 1).sum::<u64>();
    }
    total
}

/// The best that a user of hashbrown can do: hash a block of keys, ask for the lines where the
/// table most likely has them, by the layout in its source, and look the block before it up.
fn by_hand<K: Key>(table: &Table<K>, state: FoldedState, keys: &[K]) -> u64 {
    let first = table.iter_buckets().next().expect("the table has entries");
    let entry = table.get_bucket(first).expect("the bucket was just given");
    // Entries lie in front of the control bytes, the first one last.
    let zero = std::ptr::from_ref(entry).wrapping_add(first);
    let control = zero.wrapping_add(1).cast::<u8>();
    let mask = table.num_buckets() - 1;
    let hashed = |keys: &[K]| {
        let mut hashes = [0; BLOCK];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = state.hash_one(key);
            let home = *hash as usize & mask;
            hint(control.wrapping_add(home));
            hint(zero.wrapping_sub(home));
        }
        hashes
    };
    let mut blocks = keys.chunks(BLOCK).peekable();
    let mut next = blocks.peek().map(|keys| hashed(keys));
    let mut total = 0;
    while let (Some(keys), Some(hashes)) = (blocks.next(), next) {
        next = blocks.peek().map(|keys| hashed(keys));
        for (key, hash) in keys.iter().zip(hashes) {
            total += table.find(hash, |(there, _)| there == key).map_or(0, |(_, value)| value + 1);
        }
    }
    total
}

/// A closer reading of the source: a hint for the control bytes, guessed as above,
/// which then say which entry may be the key's; a hint for that, and it is read a block later.
fn by_tags<K: Key>(table: &Table<K>, state: FoldedState, keys: &[K]) -> u64 {
    let first = table.iter_buckets().next().expect("the table has entries");
    let entry = table.get_bucket(first).expect("the bucket was just given");
    let control = std::ptr::from_ref(entry).wrapping_add(first + 1).cast::<u8>();
    let mask = table.num_buckets() - 1;
    let blocks: Vec<&[K]> = keys.chunks(BLOCK / 2).collect();
    let mut hashes = [[0_u64; BLOCK / 2]; 2];
    let mut entries: [[Option<&(K, u64)>; BLOCK / 2]; 2] = [[None; BLOCK / 2]; 2];
    let mut total = 0;
    for block in 0..blocks.len() + 2 {
        if let Some(keys) = blocks.get(block) {
            for (key, hash) in keys.iter().zip(&mut hashes[block % 2]) {
                *hash = state.hash_one(key);
                hint(control.wrapping_add(*hash as usize & mask));
            }
        }
        if let Some(keys) = block.checked_sub(2).and_then(|block| blocks.get(block)) {
            for (key, entry) in keys.iter().zip(&entries[block % 2]) {
                let Some((there, value)) = entry else { continue };
                total += if there == key {
                    value + 1
                } else {
                    let hash = state.hash_one(key);
                    table.find(hash, |(there, _)| there == key).map_or(0, |(_, value)| value + 1)
                };
            }
        }
        if let Some(keys) = block.checked_sub(1).and_then(|block| blocks.get(block)) {
            let (hashes, entries) = (&hashes[(block + 1) % 2], &mut entries[(block + 1) % 2]);
            for ((hash, entry), _) in hashes.iter().zip(entries).zip(*keys) {
                let bucket = table.iter_hash_buckets(*hash).next();
                *entry = bucket.and_then(|bucket| table.get_bucket(bucket));
                if let Some(entry) = *entry {
                    hint(entry);
                }
            }
        }
    }
    total
}

/// Inserts of `count` entries into empty maps with room for them.
pub fn inserts(count: usize, settings: &Settings) -> Value {
    let keys = Keys::<u64>::drawn(count, (1, 1));
    let state = FoldedState::with_seed(SEED);
    let entries = || keys.there.iter().copied().zip(0_u64..);
    let all = vec![
        Candidate::new("hashbrown", |_| {
            let mut map = HashMap::with_capacity_and_hasher(count, state);
            for (key, value) in entries() {
                map.insert(key, value);
            }
            map.len() as u64
        }),
        Candidate::new("insert_many", |_| {
            let mut index = HashIndex::with_options(count, state, settings.pages);
            index.insert_many(entries());
            index.len() as u64
        }),
    ];
    let rounds = settings.rounds.min(3);
    interleaved(&format!("inserts, u64, {count}"), all, rounds, count)
}
