//! Clients out of step, as in a steady state.
//!
//! ```text
//!   CPU 0   ░░░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░    ░ before all have begun, or a query more until
//!   CPU 1        ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓      all are done
//!                └ counted from here on
//! ```
//!
//! Clients that begin together scan the same pages at the same time, and those that begin at any
//! moment do not. The first of each CPU begins at a moment drawn over a query's own time. Before
//! the last of them begins nothing is counted, and a CPU whose clients are done continues with one
//! more query while others have some to do: no client runs alone, at the beginning or at the end.

use std::cell::{Cell, RefCell};

use workahead_walks::random::Random;

use super::{ProcessResult, Statement, space};
use crate::drivers::Program;
use crate::op::{Op, Script};
use crate::run::{Slices, Thread};
use crate::ticks::Ticks;

/// Progress of the processes of a run, shared by them.
#[derive(Debug)]
pub(super) struct ClientProgress {
    /// Queries to be done, by CPU.
    left: RefCell<Vec<usize>>,
    /// The same of all CPUs.
    all_left: Cell<usize>,
    /// Whether clients go on until all are done.
    pub(super) keeps_busy: Cell<bool>,
    /// Results, in the order of the queries.
    pub(super) found: RefCell<Vec<ProcessResult>>,
}

impl ClientProgress {
    pub(super) fn new(cpus: usize, queries: usize) -> Self {
        Self {
            left: RefCell::new(vec![0; cpus]),
            keeps_busy: Cell::new(false),
            all_left: Cell::new(queries),
            found: RefCell::new(vec![ProcessResult::default(); queries]),
        }
    }

    /// A query of a CPU is to be done.
    pub(super) fn joins(&self, cpu: usize) {
        self.left.borrow_mut()[cpu] += 1;
    }

    /// Whether all queries have been answered.
    pub(super) fn is_over(&self) -> bool {
        self.all_left.get() == 0
    }

    /// A query has been answered.
    pub(super) fn leaves(&self, query: usize, cpu: usize, result: ProcessResult) {
        self.found.borrow_mut()[query] = result;
        self.left.borrow_mut()[cpu] -= 1;
        self.all_left.set(self.all_left.get() - 1);
    }

    /// Whether a CPU has nothing to do while others have.
    pub(super) fn waits(&self, cpu: usize) -> bool {
        self.keeps_busy.get() && self.left.borrow()[cpu] == 0 && !self.is_over()
    }
}

/// A process that runs before the last one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The place of its statement.
    statement: usize,
    /// When it begins, and how long it runs.
    begins: Ticks,
    runs: Ticks,
}

/// The first process of each CPU, by moments drawn over `over` ticks.
pub(super) fn heads(
    cpus: usize,
    over: Ticks,
    seed: u64,
    statements: &[Statement<'_>],
) -> Vec<Head> {
    let first = (0..cpus)
        .filter_map(|cpu| statements.iter().position(|statement| statement.process_of.cpu == cpu));
    let mut random = Random::of(seed);
    let begins: Vec<(usize, Ticks)> =
        first.map(|statement| (statement, random.number() % over)).collect();
    let earliest = begins.iter().map(|(_, begins)| *begins).min().unwrap_or_default();
    let last = begins.iter().map(|(_, begins)| *begins).max().unwrap_or_default();
    let heads = begins.into_iter().filter(|(_, begins)| *begins < last);
    let head =
        |(statement, begins)| Head { statement, begins: begins - earliest, runs: last - begins };
    heads.map(head).collect()
}

/// A program of all heads.
pub(super) fn head_program<'s, 'd: 's>(
    statements: &'s mut [Statement<'d>],
    heads: &[Head],
    slices: Slices,
) -> Program<'s> {
    let mut program = Program { threads: Vec::new(), placement: Vec::new(), slices };
    for (place, statement) in statements.iter_mut().enumerate() {
        let Some(head) = heads.iter().find(|head| head.statement == place) else { continue };
        let (client, cpu) = (statement.process_of.client, statement.process_of.cpu);
        let script = Box::new(HeadScript { statement, head: *head, until: None });
        program.threads.push(Thread { script, space: space(client), attends: false });
        program.placement.push(cpu);
    }
    program
}

/// The first part of a statement.
struct HeadScript<'s, 'd> {
    statement: &'s mut Statement<'d>,
    head: Head,
    /// When it ends, once begun.
    until: Option<Ticks>,
}

impl Script for HeadScript<'_, '_> {
    fn next(&mut self, now: Ticks) -> Option<Op> {
        let Head { begins, runs, .. } = self.head;
        let Some(until) = self.until else {
            self.until = Some(now + begins + runs);
            let cycles = u32::try_from(begins / crate::ticks::CYCLE).unwrap_or(u32::MAX);
            return Some(Op::Idle { cycles });
        };
        if now < until { self.statement.next(now) } else { None }
    }
}
