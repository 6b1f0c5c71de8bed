//! Two different operators at once: a hash join beside lookups in a CSB+-tree (Zhou et al., §6.3).
//!
//! Both start together; when the first finishes the other stops, and the rows that each has done
//! by then are the work of every cell: once again side by side, one after the other, bi-threaded,
//! with a helper.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use workahead_machine::pages::Pages;
use workahead_simulator::walks::Until;
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::technique::Technique;

use super::crew::{Crew, Ran, failed};
use super::how::{How, Threads};
use super::modelled::Model;
use super::operator::{Operator, Touch};
use super::size::Footprint;
use super::{hash_join, oracle, tree};
use crate::given::Given;

/// Rows between two looks at the other operator.
const ROWS_A_LOOK: usize = 64 << 10;

/// The data of a cell: `rows` of the join, `tree_rows` of the tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    join: hash_join::Shape,
    tree: tree::Shape,
}

impl Shape {
    pub(super) fn read(given: &Given<'_>, footprint: &Footprint) -> Result<Self, EngineError> {
        let join = hash_join::Shape::read(given, footprint)?;
        let tree_rows = given.number("tree_rows", 10_000_000, 1..=tree::KEYS_MAX)?;
        Ok(Self { join, tree: tree::Shape::of(given, tree_rows, tree_rows)? })
    }

    /// Memory at the peak: a copy of each, whatever the threads.
    pub(super) fn bytes(&self) -> u64 {
        self.join.bytes(1, 0) + self.tree.bytes(1)
    }

    pub(super) fn make(&self) -> Result<Box<dyn Operator>, EngineError> {
        let operators = [self.join.make()?, self.tree.make()?];
        Ok(Box::new(Both { operators, raced: None }))
    }
}

/// Both operators in place.
struct Both {
    operators: [Box<dyn Operator>; 2],
    /// Rows of each, once they have raced, and on which model if on any.
    raced: Option<(Option<Model>, [usize; 2])>,
}

/// Side by side, each operator has a thread of its own, and that thread all of the operator.
fn alone(how: &How) -> How {
    How { threads: Threads::One, ..*how }
}

impl Both {
    fn amounts(&self) -> [usize; 2] {
        self.raced.as_ref().map_or([0; 2], |(_, amounts)| *amounts)
    }

    /// Runs both until one has finished: how far each came.
    fn race(&mut self, crew: &Crew) -> Result<[usize; 2], EngineError> {
        let how = How { technique: Technique::Sequential, ..How::default() };
        if let Some(model) = &crew.model {
            let all = [0, 1].map(|place: usize| self.operators[place].probes());
            let (_, done) = self.modelled(&how, (crew, model), all, Until::First)?;
            return Ok(done);
        }
        let stop = AtomicBool::new(false);
        let done = side_by_side(&mut self.operators, |operator, place| {
            let (crew, rows) = (crew.from(place), operator.probes());
            let mut done = 0;
            while done < rows && !stop.load(Ordering::Relaxed) {
                let next = rows.min(done + ROWS_A_LOOK);
                operator.run(&how, &crew, done..next)?;
                done = next;
            }
            stop.store(true, Ordering::Relaxed);
            Ok(done)
        });
        let [join, tree] = done;
        Ok([join?, tree?])
    }
}

impl Both {
    /// Runs both on one modelled machine, so many rows of each at most: what it took, and how many
    /// rows each has done, if that is asked for.
    fn modelled(
        &mut self,
        how: &How,
        (crew, model): (&Crew, &Model),
        rows: [usize; 2],
        until: Until,
    ) -> Result<(Ran, [usize; 2]), EngineError> {
        let alone = alone(how);
        let (ran, timed) = model.time_together(how, until, |beside| {
            side_by_side(&mut self.operators, |operator, place| {
                operator.run(&alone, &crew.beside(beside(place)), 0..rows[place])
            })
        })?;
        let [join, tree] = ran;
        let mut done = timed.rows();
        let done = [0; 2].map(|none| done.next().unwrap_or(none));
        Ok((timed.of(join?.then(tree?)), done))
    }
}

/// Runs a task on each operator, in a thread each.
fn side_by_side<R: Send>(
    operators: &mut [Box<dyn Operator>; 2],
    task: impl Fn(&mut dyn Operator, usize) -> Result<R, EngineError> + Sync,
) -> [Result<R, EngineError>; 2] {
    let [join, tree] = operators;
    let task = &task;
    std::thread::scope(|scope| {
        let join = scope.spawn(move || task(join.as_mut(), 0));
        let tree = task(tree.as_mut(), 1);
        let join = join.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        [join, tree]
    })
}

impl Operator for Both {
    fn prepare(&mut self, how: &How, crew: &Crew) -> Result<(), EngineError> {
        let how = if matches!(how.threads, Threads::Independent(_)) { alone(how) } else { *how };
        for operator in &mut self.operators {
            operator.prepare(&how, crew)?;
        }
        if self.raced.as_ref().is_none_or(|(model, _)| *model != crew.model) {
            self.raced = Some((crew.model.clone(), self.race(crew)?));
        }
        Ok(())
    }

    fn probes(&self) -> usize {
        self.amounts().iter().sum()
    }

    fn answer(&self, _: usize) -> Answer {
        let mut answer = Answer::default();
        for (operator, rows) in self.operators.iter().zip(self.amounts()) {
            oracle::add(&mut answer, operator.answer(rows));
        }
        answer
    }

    fn table_bytes(&self) -> usize {
        self.operators.iter().map(|operator| operator.table_bytes()).sum()
    }

    fn touches(&self) -> Vec<Touch> {
        let all = self.probes() as f64;
        let shares = self.operators.iter().zip(self.amounts());
        let weighted = shares.flat_map(|(operator, rows)| {
            let share = rows as f64 / all;
            operator.touches().into_iter().map(move |touch| touch.weighted(share))
        });
        weighted.collect()
    }

    fn shares_work(&self) -> bool {
        true
    }

    fn pages(&self) -> Pages {
        self.operators[0].pages()
    }

    fn run(&mut self, how: &How, crew: &Crew, _: Range<usize>) -> Result<Ran, EngineError> {
        let amounts = self.amounts();
        let mut both = match (how.threads, &crew.model) {
            (Threads::Independent(2), Some(model)) => {
                self.modelled(how, (crew, model), amounts, Until::All)?.0
            }
            (Threads::Independent(2), None) => {
                let how = alone(how);
                let start = workahead_machine::clock::Moment::now();
                let ran = side_by_side(&mut self.operators, |operator, place| {
                    operator.run(&how, &crew.from(place), 0..amounts[place])
                });
                let wall_s = start.wall_s();
                let [join, tree] = ran;
                Ran { wall_s, ..join?.then(tree?) }
            }
            (Threads::Independent(_), _) => {
                return Err(failed(
                    "heterogeneous is two operators: write threads = independent:2",
                ));
            }
            (Threads::One | Threads::Bi { .. }, _) => {
                let [join, tree] = &mut self.operators;
                let join = join.run(how, crew, 0..amounts[0])?;
                let mut both = join.then(tree.run(how, crew, 0..amounts[1])?);
                // What is a share of two times is a share of neither.
                both.measures.retain(|(name, _)| {
                    crew.model.is_none()
                        || name.contains("_per_tuple")
                        || name.starts_with("helper")
                });
                both
            }
        };
        both.measures.push(("join_rows", amounts[0] as f64));
        both.measures.push(("tree_rows", amounts[1] as f64));
        Ok(both)
    }
}
