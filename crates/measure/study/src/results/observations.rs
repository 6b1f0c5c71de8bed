//! The observations of a result, found by their cells.
//!
//! A report looks up every cell many times: searches through all observations would take the square
//! of their number. Their positions are sorted by cell at the first look, and forgotten whenever
//! the observations are lent as `&mut`. No cell can be looked up until that loan ends, so the
//! positions are never those of other observations.

use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::OnceLock;

use crate::observation::Observation;

/// Observations in the order of visits: by block, repetition, slot.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    all: Vec<Observation>,
    /// Positions in `all` by cell, those of one cell in their order.
    by_cell: OnceLock<Vec<usize>>,
}

impl Observations {
    /// Those of one cell, in their order.
    pub fn of_cell(&self, cell: usize) -> impl Iterator<Item = &Observation> {
        let all = &self.all;
        let by_cell = self.by_cell.get_or_init(|| by_cell(all));
        let first = by_cell.partition_point(|at| all[*at].cell < cell);
        let from_there = by_cell[first..].iter().map(move |at| &all[*at]);
        from_there.take_while(move |seen| seen.cell == cell)
    }

    /// Drops those for which this does not hold.
    pub fn retain(&mut self, holds: impl FnMut(&Observation) -> bool) {
        self.by_cell = OnceLock::new();
        self.all.retain(holds);
    }
}

/// The sort is stable.
fn by_cell(all: &[Observation]) -> Vec<usize> {
    let mut by_cell: Vec<usize> = (0..all.len()).collect();
    by_cell.sort_by_key(|at| all[*at].cell);
    by_cell
}

impl Deref for Observations {
    type Target = [Observation];

    fn deref(&self) -> &[Observation] {
        &self.all
    }
}

impl DerefMut for Observations {
    fn deref_mut(&mut self) -> &mut [Observation] {
        self.by_cell = OnceLock::new();
        &mut self.all
    }
}

impl PartialEq for Observations {
    fn eq(&self, other: &Observations) -> bool {
        self.all == other.all
    }
}

impl From<Vec<Observation>> for Observations {
    fn from(all: Vec<Observation>) -> Observations {
        Observations { all, by_cell: OnceLock::new() }
    }
}

impl FromIterator<Observation> for Observations {
    fn from_iter<I: IntoIterator<Item = Observation>>(all: I) -> Observations {
        Observations::from(all.into_iter().collect::<Vec<_>>())
    }
}

impl<'a> IntoIterator for &'a Observations {
    type Item = &'a Observation;
    type IntoIter = slice::Iter<'a, Observation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Observations {
    type Item = &'a mut Observation;
    type IntoIter = slice::IterMut<'a, Observation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Outcome;
    use crate::setting::Settings;

    /// Of these cells; the repetition is the position.
    fn observations(cells: &[usize]) -> Observations {
        let seen = |(at, cell): (usize, &usize)| Observation {
            study: String::new(),
            run_plan_fingerprint: String::new(),
            cell: *cell,
            settings: Settings::new(),
            repetition: at as u32,
            slot: 0,
            unix_ms: 0,
            outcome: Outcome::Failed { failure: String::new() },
        };
        cells.iter().enumerate().map(seen).collect()
    }

    fn repetitions(all: &Observations, cell: usize) -> Vec<u32> {
        all.of_cell(cell).map(|seen| seen.repetition).collect()
    }

    #[test]
    fn a_cell_is_found_whatever_was_changed_before() {
        let mut all = observations(&[2, 0, 1, 2, 0, 1]);
        assert_eq!(repetitions(&all, 0), [1, 4]);
        assert_eq!(repetitions(&all, 3), [0; 0]);
        all.retain(|seen| seen.repetition != 1);
        assert_eq!(repetitions(&all, 0), [4]);
        all[0].cell = 0;
        assert_eq!(repetitions(&all, 0), [0, 4]);
        assert_eq!(repetitions(&all, 2), [3]);
        for seen in &mut all {
            seen.cell = 1;
        }
        assert_eq!(repetitions(&all, 1), [0, 2, 3, 4, 5]);
        assert_eq!(repetitions(&all, 0), [0; 0]);
        all.reverse();
        assert_eq!(repetitions(&all, 1), [5, 4, 3, 2, 0]);
        assert_eq!(repetitions(&all.clone(), 1), [5, 4, 3, 2, 0]);
    }

    #[test]
    fn a_lookup_makes_no_difference() {
        let (one, other) = (observations(&[1, 0]), observations(&[1, 0]));
        assert_eq!(one.of_cell(1).count(), 1);
        assert_eq!(one, other);
        assert_ne!(one, observations(&[0, 1]));
    }
}
