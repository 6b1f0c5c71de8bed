//! Histories of hashbrown's own table: batches in between answer as its single look-ups do.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use workahead_lookup::{FoldedState, TableLookup};
use workahead_walks::random::Random;

use super::{Key, batch, domain, histories, technique};

fn history<K: Key>(random: &mut Random) {
    let domain = domain(random);
    let state = FoldedState::with_seed(random.number());
    let mask = [u64::MAX, 0xff, u64::MAX << 56][random.below(3) as usize];
    let hash = |key: &K| state.hash_one(key) & mask;
    // Some entries of 200 bytes, so that the table outgrows the caches, and has hints.
    let mut table: HashTable<(K, [u64; 25])> = HashTable::new();
    for _ in 0..200 {
        let value = [random.number(); 25];
        for key in batch::<K>(random, domain) {
            match table.find_entry(hash(&key), |(there, _)| *there == key) {
                Ok(entry) if value[0].is_multiple_of(2) => drop(entry.remove()),
                Ok(mut entry) => entry.get_mut().1 = value,
                Err(_) => {
                    let hash_entry = |(key, _): &(K, [u64; 25])| hash(key);
                    table.insert_unique(hash(&key), (key, value), hash_entry);
                }
            }
        }
        let keys: Vec<K> = batch(random, domain);
        let single = |key| table.find(hash(key), |(there, _)| there == key);
        let expected: Vec<_> = keys.iter().map(single).collect();
        let mut found = vec![table.iter().next(); keys.len()];
        let mut lookup = TableLookup::new(&table);
        lookup.set_technique(technique(random));
        lookup.get_many(&keys, hash, |(there, _), key| there == key, &mut found);
        assert_eq!(found, expected, "{:?}", lookup.technique());
    }
}

#[test]
fn batches_of_a_table_answer_as_it_does() {
    histories(|random| match random.below(2) {
        0 => history::<u64>(random),
        _ => history::<String>(random),
    });
}
