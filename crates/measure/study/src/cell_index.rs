//! Cells by their settings or their place: a report looks up the baseline of each cell, a
//! comparison its partner.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use crate::cell::Cell;
use crate::protocol::Start;
use crate::setting::{Setting, Settings};

/// By what cells are looked up.
pub(crate) type Key<'a> = (&'a Settings, Option<Start>);

type KeyOf = fn(&Cell) -> Key<'_>;

/// Positions in a list of cells.
#[derive(Debug, Clone)]
pub(crate) struct CellIndex {
    key: KeyOf,
    /// Drawn anew for each, so that no study of a stranger's finds cells of one hash.
    state: RandomState,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl CellIndex {
    pub(crate) fn new(cells: &[Cell], key: KeyOf) -> CellIndex {
        let (state, mut by_hash) = (RandomState::new(), HashMap::<u64, Vec<usize>>::new());
        for (position, cell) in cells.iter().enumerate() {
            by_hash.entry(hash(&state, key(cell))).or_default().push(position);
        }
        CellIndex { key, state, by_hash }
    }

    /// The first of these cells, which are those of the index, with a key.
    pub(crate) fn find<'a>(&self, cells: &'a [Cell], key: Key<'_>) -> Option<&'a Cell> {
        let positions = self.by_hash.get(&hash(&self.state, key))?;
        let mut found = positions.iter().filter_map(|position| cells.get(*position));
        found.find(|cell| (self.key)(cell) == key)
    }
}

/// Cells by their place, filled at the first look-up: most run plans are only executed.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceIndex(OnceLock<CellIndex>);

/// It follows from the cells.
impl PartialEq for PlaceIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl PlaceIndex {
    /// The first cell at a place; `cells` are always the same.
    pub(crate) fn find<'a>(&self, cells: &'a [Cell], place: &Settings) -> Option<&'a Cell> {
        let index = self.0.get_or_init(|| CellIndex::new(cells, |cell| (&cell.place, None)));
        index.find(cells, (place, None))
    }
}

/// Equal keys have equal hashes.
pub(crate) fn hash(state: &RandomState, (settings, start): Key<'_>) -> u64 {
    // Equal numbers may differ in their bits: 0 and -0.
    let of = |value: &Setting| match value {
        Setting::Switch(switch) => state.hash_one(switch),
        Setting::Integer(integer) => state.hash_one(integer),
        Setting::Number(number) => state.hash_one((number + 0.0).to_bits()),
        Setting::Text(text) => state.hash_one(text),
    };
    let start = start.map_or(0, |start| 1 + start as u64);
    settings.iter().fold(start, |hash, (name, value)| state.hash_one((hash, name, of(value))))
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
        let places = PlaceIndex::default();
        for cell in &cells {
            let searched = cells.iter().find(|other| other.place == cell.place).unwrap();
            assert_eq!(places.find(&cells, &cell.place).unwrap().index, searched.index);
        }
        assert!(places.find(&cells, &Settings::new()).is_none());
    }
}
