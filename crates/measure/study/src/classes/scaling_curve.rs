//! The classes of all queries of a result along one of its axes.

use std::collections::HashMap;
use std::hash::RandomState;

use serde::Serialize;

use super::{Point, Scaling};
use crate::cell::Cell;
use crate::cell_index::hash;
use crate::plans::PlanText;
use crate::results::Results;
use crate::setting::{Setting, Settings};

/// Cells that differ only by their degree of parallelism.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScalingCurve {
    /// Their common label.
    pub label: String,
    /// Their indices, by degree.
    pub cells: Vec<usize>,
    /// How they scale.
    pub scaling: Scaling,
}

/// Every group of cells along an axis whose values are degrees of parallelism. Cells without
/// samples are left out, and groups of which less than two are left.
pub fn scaling_curves(results: &Results, axis: &str) -> Vec<ScalingCurve> {
    let mut groups: Vec<(Settings, Vec<(u32, &Cell)>)> = Vec::new();
    let (state, mut by_hash) = (RandomState::new(), HashMap::<u64, Vec<usize>>::new());
    for cell in &results.run_plan.cells {
        let mut place = cell.place.clone();
        let degree = place.remove(axis).as_ref().and_then(Setting::as_integer);
        let Some(degree) = degree.and_then(|degree| u32::try_from(degree).ok()) else { continue };
        if degree == 0 || results.values(cell.index, "wall_s").is_empty() {
            continue;
        }
        let positions = by_hash.entry(hash(&state, (&place, None))).or_default();
        match positions.iter().find(|position| groups[**position].0 == place) {
            Some(position) => groups[*position].1.push((degree, cell)),
            None => {
                positions.push(groups.len());
                groups.push((place, vec![(degree, cell)]));
            }
        }
    }
    let axes: Vec<String> =
        results.run_plan.axes.iter().filter(|one| *one != axis).cloned().collect();
    let named = |(_, mut cells): (Settings, Vec<(u32, &Cell)>)| {
        cells.sort_by_key(|(degree, _)| *degree);
        let points: Vec<Point> =
            cells.iter().map(|(degree, cell)| point(results, *degree, cell)).collect();
        Some(ScalingCurve {
            label: cells.first()?.1.label(&axes),
            cells: cells.iter().map(|(_, cell)| cell.index).collect(),
            scaling: Scaling::of(&points)?,
        })
    };
    groups.into_iter().filter_map(named).collect()
}

/// Times are those of one tuple: cells may run for a time rather than a count.
fn point(results: &Results, degree: u32, cell: &Cell) -> Point {
    let seconds = |measure: &str| -> Vec<f64> {
        results.values(cell.index, measure).iter().map(|ns| ns * 1e-9).collect()
    };
    Point {
        degree,
        elapsed_s: seconds("ns_per_tuple"),
        cpu_s: seconds("cpu_ns_per_tuple"),
        plan: results.plan_of(cell.index).map(PlanText::serial_fingerprint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Class;
    use crate::testing::{self, Mock};

    #[test]
    fn groups_are_made_along_the_axis() {
        let study = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
            [axes]\nsize = ['q1', 'q2']\nthreads = [4, 1, 2]\n\
            [method]\nrepetitions = 3\nblocks = ['size']\n";
        let dir = tempfile::tempdir().unwrap();
        // The mock takes the same time whatever the threads.
        let results = testing::results(dir.path(), study, &mut Mock::new());
        let found = scaling_curves(&results, "threads");
        let labels: Vec<&str> = found.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["q1", "q2"]);
        assert_eq!(found[0].cells, [1, 2, 0], "by degree, not as written");
        assert!(found.iter().all(|one| one.scaling.class == Class::DoesNotScale), "{found:?}");
        let steps: Vec<(u32, u32)> =
            found[1].scaling.steps.iter().map(|step| (step.from, step.to)).collect();
        assert_eq!(steps, [(1, 2), (2, 4)]);
        assert!(scaling_curves(&results, "size").is_empty(), "texts are not degrees");
    }
}
