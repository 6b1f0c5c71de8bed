//! Published functions as a caller would hand them over: one, beside every cell that was sampled.

use workahead_counters::profile::Clock;
use workahead_report::{PublishedFunction, PublishedFunctions};
use workahead_study::results::Results;

/// A table for every clock that a cell was sampled by.
pub(crate) fn functions(results: &Results) -> Vec<PublishedFunctions> {
    let mut tables: Vec<PublishedFunctions> = Vec::new();
    for cell in &results.run_plan.cells {
        for profile in results.profiles(cell.index) {
            match tables.iter_mut().find(|table| table.clock == profile.clock) {
                Some(table) => add(table, cell.index),
                None => {
                    let mut table = empty(&profile.clock);
                    add(&mut table, cell.index);
                    tables.push(table);
                }
            }
        }
    }
    tables
}

fn empty(clock: &Clock) -> PublishedFunctions {
    let of = clock.unit();
    PublishedFunctions {
        title: "The functions of a paper".to_owned(),
        program: "in an old version".to_owned(),
        clock: clock.clone(),
        cells: Vec::new(),
        rows: vec![PublishedFunction {
            name: "Old".to_owned(),
            role: "what it did".to_owned(),
            today: vec!["New".to_owned()],
            notes: Vec::new(),
            printed: vec![format!("printed of {of}")],
            shares: Vec::new(),
        }],
        together: Vec::new(),
        printed: vec![format!("all printed of {of}")],
    }
}

fn add(table: &mut PublishedFunctions, cell: usize) {
    table.cells.push(cell);
    table.rows[0].shares.push(Some(0.25));
    table.together.push(None);
}
