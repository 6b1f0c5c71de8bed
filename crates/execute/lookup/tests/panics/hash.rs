//! A hash index whose keys' and values' functions panic.

use workahead_lookup::{FoldedState, HashIndex, Pages};

use super::{
    Change, Entries, Index, Key, Owner, Plain, Value, compare, contradictions, histories, keys,
};

impl<K: Key> Index for HashIndex<K, Value> {
    fn load(entries: &Entries) -> Self {
        let mut index = Self::with_options(0, FoldedState::with_seed(1), Pages::Usual);
        index.insert_many(entries.iter().map(|(key, value)| (K::of(*key), Value::of(*value))));
        index
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Insert(key, value) if key % 4 == 0 => {
                let mut value = Some(Value::of(value));
                let key = K::of(key);
                let there = self.get_or_insert_with(key, || value.take().expect("called once"));
                if let Some(value) = value {
                    *there = value;
                }
            }
            Change::Insert(key, value) => drop(self.insert(K::of(key), Value::of(value))),
            Change::Remove(key) => drop(self.remove(&K::of(key))),
            Change::Extend(first, count) => {
                self.insert_many((first..first + count).map(|key| (K::of(key), Value::of(key))));
            }
            Change::Reserve(more) => self.reserve(more as usize),
            Change::Clear => self.clear(),
            Change::Find(first) => {
                let keys: Vec<K> = (first..first + 9).map(K::of).collect();
                let mut found = [None; 9];
                self.get_many(&keys, &mut found);
                let _ = self.get_mut(&keys[0]);
            }
        }
    }

    fn entries(&self) -> Entries {
        let entries: Entries = self.iter().map(|(key, value)| (key.number(), value.0)).collect();
        assert_eq!((entries.len(), self.iter().count()), (self.len(), self.len()));
        let keys = keys();
        let mut found = vec![None; keys.len()];
        self.get_many(&keys, &mut found);
        compare(&entries, &keys, &found, |key| self.get(key));
        entries
    }
}

#[test]
fn keys_that_own_memory() {
    histories::<HashIndex<Owner, Value>>();
}

#[test]
fn keys_without_a_destructor() {
    histories::<HashIndex<Plain, Value>>();
}

#[test]
fn keys_whose_comparisons_contradict_each_other() {
    contradictions::<HashIndex<Owner, Value>>(|index| (index.len(), index.iter().count()));
    contradictions::<HashIndex<Plain, Value>>(|index| (index.len(), index.iter().count()));
}
