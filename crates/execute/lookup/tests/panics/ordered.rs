//! An ordered index whose keys' and values' functions panic.

use workahead_lookup::{OrderedIndex, Technique};

use super::{
    Change, Entries, Index, Key, Owner, Plain, Value, compare, contradictions, histories, keys,
};

impl<K: Key> Index for OrderedIndex<K, Value> {
    fn load(entries: &Entries) -> Self {
        let entries = entries.iter().rev();
        let mut index: Self =
            entries.map(|(key, value)| (K::of(*key), Value::of(*value))).collect();
        // As beyond the caches: `insert_many` walks to the leaves first.
        index.set_technique(Some(Technique::Lanes(4)));
        index
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Insert(key, value) => drop(self.insert(K::of(key), Value::of(value))),
            Change::Remove(key) => drop(self.remove(&K::of(key))),
            Change::Extend(first, count) => {
                self.insert_many((first..first + count).map(|key| (K::of(key), Value::of(key))));
            }
            Change::Clear => self.clear(),
            Change::Find(first) => {
                let keys: Vec<K> = (first..first + 9).map(K::of).collect();
                let mut found = [None; 9];
                self.get_many(&keys, &mut found);
                self.range_many(&keys[..3], &keys[6..], |_, _, _| ());
                assert!(self.range(&keys[2]..&keys[8]).count() < 7);
            }
            Change::Reserve(_) => {}
        }
    }

    fn entries(&self) -> Entries {
        let entries = self.iter().map(|(key, value)| (key.number(), value.0));
        let entries: Vec<(u32, u32)> = entries.take(self.len() + 1).collect();
        assert_eq!(entries.len(), self.len());
        assert!(entries.is_sorted_by(|(a, _), (b, _)| a < b), "{entries:?}");
        let entries: Entries = entries.into_iter().collect();
        let keys = keys();
        let mut found = vec![None; keys.len()];
        self.get_many(&keys, &mut found);
        compare(&entries, &keys, &found, |key| self.get(key));
        let from_middle = self.range(&keys[50]..).map(|(key, _)| key.number());
        assert!(from_middle.eq(entries.range(50..).map(|(key, _)| *key)));
        entries
    }
}

#[test]
fn keys_that_own_memory() {
    histories::<OrderedIndex<Owner, Value>>();
}

#[test]
fn keys_that_are_compared_at_once() {
    histories::<OrderedIndex<Plain, Value>>();
}

#[test]
fn keys_whose_comparisons_contradict_each_other() {
    contradictions::<OrderedIndex<Owner, Value>>(|index| (index.len(), index.iter().count()));
    contradictions::<OrderedIndex<Plain, Value>>(|index| (index.len(), index.iter().count()));
}
