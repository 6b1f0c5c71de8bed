//! Two different operators at once: a hash join beside lookups in a CSB+-tree (Zhou et al., §6.3).
//!
//! Both start together; when the first finishes the other stops, and the rows that each has done by
//! then are the work of every cell: side by side again, one after the other, bi-threaded, with a
//! helper.

use std::ops::Range;

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::pages::Pages;
use workahead_study::engine::{Answer, EngineError};

use crate::execution::{Execution, Threads};
use crate::operator::{Operator, Pair, Platform, Touch};
use crate::run::RunResult;
use crate::size::Footprint;
use crate::{hash_join, oracle, tree};

/// The data of a cell: `rows` of the join, `tree_rows` of the tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    join: hash_join::Shape,
    tree: tree::Shape,
}

impl Shape {
    pub(crate) fn read(
        config: &CellConfiguration<'_>,
        footprint: &Footprint,
    ) -> Result<Self, EngineError> {
        let join = hash_join::Shape::read(config, footprint)?;
        let tree_rows = config.number("tree_rows", 10_000_000, 1..=tree::KEYS_MAX)?;
        Ok(Self { join, tree: tree::Shape::of(config, tree_rows, tree_rows)? })
    }

    /// Peak memory: a copy of each, for any number of threads.
    pub(crate) fn bytes(&self) -> u64 {
        self.join.bytes(1, 0) + self.tree.bytes(1)
    }

    pub(crate) fn make<M: Platform>(&self) -> Result<Box<dyn Operator<M>>, EngineError> {
        let operators = [self.join.make()?, self.tree.make()?];
        Ok(Box::new(HeterogeneousOperator { operators, raced: None }))
    }
}

/// Both operators with their data.
struct HeterogeneousOperator<M: Platform> {
    operators: Pair<M>,
    /// The rows of each after the race, and the machine of the race.
    raced: Option<(M::Machine, [usize; 2])>,
}

impl<M: Platform> HeterogeneousOperator<M> {
    fn amounts(&self) -> [usize; 2] {
        self.raced.as_ref().map_or([0; 2], |(_, amounts)| *amounts)
    }
}

impl<M: Platform> Operator<M> for HeterogeneousOperator<M> {
    fn prepare(&mut self, execution: &Execution, platform: &M) -> Result<(), EngineError> {
        // Side by side, each operator runs on one thread, which does all of it.
        let execution = match execution.threads {
            Threads::Independent(_) => execution.alone(),
            Threads::One | Threads::Bi { .. } => *execution,
        };
        for operator in &mut self.operators {
            operator.prepare(&execution, platform)?;
        }
        let machine = platform.machine();
        if self.raced.as_ref().is_none_or(|(raced_on, _)| *raced_on != machine) {
            self.raced = Some((machine, platform.race(&mut self.operators)?));
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

    fn run(
        &mut self,
        execution: &Execution,
        platform: &M,
        _: Range<usize>,
    ) -> Result<RunResult, EngineError> {
        let amounts = self.amounts();
        let mut both = match execution.threads {
            Threads::Independent(2) => {
                platform.run_pair(execution, &mut self.operators, amounts)?
            }
            Threads::Independent(_) => {
                return Err(EngineError::failed(
                    "heterogeneous is two operators: write threads = independent:2",
                ));
            }
            Threads::One | Threads::Bi { .. } => {
                let [join, tree] = &mut self.operators;
                let join = join.run(execution, platform, 0..amounts[0])?;
                let mut both = join.then(tree.run(execution, platform, 0..amounts[1])?);
                both.measures.retain(|(name, _)| M::applies_to_both(name));
                both
            }
        };
        both.measures.push(("join_rows", amounts[0] as f64));
        both.measures.push(("tree_rows", amounts[1] as f64));
        Ok(both)
    }
}
