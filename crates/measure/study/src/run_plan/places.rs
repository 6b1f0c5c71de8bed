//! Cells by their place: a report looks up the baseline of each.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use hashbrown::HashTable;

use crate::cell::Cell;
use crate::setting::{Setting, Settings};

/// Filled at the first look-up: most plans are only run.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(OnceLock<Index>);

#[derive(Debug, Clone)]
struct Index {
    /// Drawn anew for each, so that no study of a stranger's finds places of one hash.
    state: RandomState,
    /// Positions in the list of cells.
    cells: HashTable<usize>,
}

/// It follows from the cells.
impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Places {
    /// The first cell at a place; `cells` are always the same.
    pub(super) fn find<'a>(&self, cells: &'a [Cell], place: &Settings) -> Option<&'a Cell> {
        let Index { state, cells: index } = self.0.get_or_init(|| Index::of(cells));
        let position = index.find(hash(state, place), |other| cells[*other].place == *place)?;
        cells.get(*position)
    }
}

impl Index {
    fn of(cells: &[Cell]) -> Index {
        let state = RandomState::new();
        let mut index = HashTable::with_capacity(cells.len());
        for (position, cell) in cells.iter().enumerate() {
            let rehash = |other: &usize| hash(&state, &cells[*other].place);
            let same = |other: &usize| cells[*other].place == cell.place;
            index.entry(hash(&state, &cell.place), same, rehash).or_insert(position);
        }
        Index { state, cells: index }
    }
}

/// Equal settings have equal hashes.
pub(crate) fn hash(state: &RandomState, place: &Settings) -> u64 {
    // Equal numbers may differ in their bits: 0 and -0.
    let of = |value: &Setting| match value {
        Setting::Switch(switch) => state.hash_one(switch),
        Setting::Integer(integer) => state.hash_one(integer),
        Setting::Number(number) => state.hash_one((number + 0.0).to_bits()),
        Setting::Text(text) => state.hash_one(text),
    };
    place.iter().fold(0, |hash, (name, value)| state.hash_one((hash, name, of(value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_plan::RunPlan;
    use crate::spec::Spec;

    #[test]
    fn it_finds_what_a_search_finds() {
        let text = "title = 't'\nquestion = 'q'\nengine = 'mock'\n[axes]\n\
            a = [0.0, -0.0, 1, 1.5]\nb = [true, 'yes', 1]\n";
        let cells = RunPlan::new(&Spec::parse("places", text).unwrap()).cells;
        let places = Places::default();
        for cell in &cells {
            let searched = cells.iter().find(|other| other.place == cell.place).unwrap();
            assert_eq!(places.find(&cells, &cell.place).unwrap().index, searched.index);
        }
        assert!(places.find(&cells, &Settings::new()).is_none());
    }
}
