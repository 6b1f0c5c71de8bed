//! The three queries of Hassanein et al. (2008) by the plans of its figures 1 and 2: k clients, a
//! process each, share a buffer pool and the CPUs of a machine.
//!
//! ```text
//!   client ── process ── plan ──► calls of a footprint ──► operations
//!               │          └─ records, index pages, pins and locks that they touch
//!               └─ own memory: sort, bitmap, stack         all else is everybody's
//! ```
//!
//! Each process really computes its answer from the rows. What an engine's code would be is
//! [synthetic](footprint). A client's queries are processes of their own, as a `psql` for each run
//! has it (section 4 of the paper): they stand in line with those of the others on their CPU.

mod ahead;
mod database;
pub mod footprint;
mod heap;
mod layout;
mod plans;
mod process;
#[cfg(test)]
mod tests;
mod tree;

use std::cell::RefCell;
use std::rc::Rc;

pub use database::Database;

use crate::core::Processor;
use crate::drivers::{Driven, Program, drive};
use crate::op::{Op, Script};
use crate::preset::{Preset, PresetError};
use crate::run::{Slices, Thread};
use crate::ticks::Ticks;

pub use ahead::ENTRIES_MAX;
use ahead::Helper;
use database::Tail;
use footprint::Call;
use plans::{Plan, plan};
use process::Process;

/// One of the three queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Query {
    /// An average of few rows through an index: bitmap index scan, bitmap heap scan, aggregate.
    Utpcc,
    /// Different values in order: file scan, sort, elimination of duplicates.
    Uss,
    /// An average over a join: file scan, nested loop over an index scan.
    Unj,
}

/// What is asked, by whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The query.
    pub query: Query,
    /// a2 lies between these, both excluded.
    pub range: (u32, u32),
    /// Who ask it at the same time.
    pub clients: usize,
    /// How often each of them does.
    pub queries: usize,
    /// How often the first of them did before anything is counted (S0.10).
    pub warmup: usize,
    /// Entries of the work-ahead set that a join's probes go through, their index pages loaded
    /// ahead by a helper at the next place; 0 for none.
    pub set_size: usize,
    /// How processes of one CPU take turns.
    pub slices: Slices,
    /// Cycles from one client's start to that of the next: nobody starts two at once.
    pub stagger: u32,
    /// Decides branches that depend on data.
    pub seed: u64,
}

/// What a query found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows that were meant, each with its row of T2 in a join.
    pub rows: u64,
    /// Sum of their a3, where an average is asked for.
    pub sum: u64,
    /// Different a3 in order, where those are.
    pub distinct: Vec<u32>,
}

/// What came of the queries.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What the machine did.
    pub driven: Driven,
    /// Instructions of all processes.
    pub instructions: u64,
    /// What each query found: all clients' first, then all clients' second.
    pub found: Vec<Found>,
}

/// Asks all queries on a machine with empty caches. Clients go round the servers, and are at the
/// CPU that `place` gives them.
///
/// # Errors
/// If there can be no machine like this.
///
/// # Panics
/// If there are more clients than a server has room for, or no server.
pub fn ask(
    preset: &Preset,
    servers: &[Database],
    options: &Options,
    place: impl Fn(usize) -> usize,
) -> Result<Asked, PresetError> {
    let mut processor = Processor::new(preset)?;
    let cpus = preset.cpus() as usize;
    let tails: Vec<Rc<RefCell<Tail>>> = servers.iter().map(|_| Rc::default()).collect();
    let mut asked = |clients: usize, queries: usize| {
        let mut program =
            Program { threads: Vec::new(), placement: Vec::new(), slices: options.slices };
        let mut helpers = Vec::new();
        let mut results = Vec::new();
        for (number, client) in (0..queries).flat_map(|_| 0..clients).enumerate() {
            let server = client % servers.len();
            let answered = Rc::default();
            let seat = Seat { database: &servers[server], tail: &tails[server], client };
            let mut statement = Statement::new(seat, options, Rc::clone(&answered));
            // Those behind others on their CPU start later anyhow.
            if number > 0 && number < cpus {
                let cycles = options.stagger.saturating_mul(number as u32);
                statement.process.ops.push(Op::Pause { cycles });
            }
            let space = 1 + client as u16;
            let main = if options.set_size > 0 { 2 * client } else { client };
            if let Some(helper) = statement.helper() {
                let script = Box::new(helper);
                helpers.push((Thread { script, space, attends: true }, place(main + 1)));
            }
            program.threads.push(Thread { script: Box::new(statement), space, attends: false });
            program.placement.push(place(main));
            results.push(answered);
        }
        for (helper, cpu) in helpers {
            program.threads.push(helper);
            program.placement.push(cpu);
        }
        (drive(&mut processor, program), results)
    };
    for _ in 0..options.warmup {
        // One client of each server.
        asked(servers.len().min(options.clients), 1);
    }
    let (driven, answered) = asked(options.clients, options.queries);
    let answered: Vec<Answered> = answered.iter().map(|one| one.borrow().clone()).collect();
    let instructions = answered.iter().map(|answered| answered.instructions).sum();
    let found = answered.into_iter().map(|answered| answered.found).collect();
    Ok(Asked { driven, instructions, found })
}

/// Where a client's process runs.
struct Seat<'d, 't> {
    database: &'d Database,
    tail: &'t Rc<RefCell<Tail>>,
    client: usize,
}

/// What a process leaves.
#[derive(Debug, Clone, Default)]
struct Answered {
    found: Found,
    instructions: u64,
}

/// A statement, from its text to its answer.
struct Statement<'d> {
    process: Process<'d>,
    plan: Box<dyn Plan>,
    stage: Stage,
    found: Found,
    answered: Rc<RefCell<Answered>>,
    /// Who else there is.
    clients: usize,
    tables: u64,
    /// Operations of the process that were done.
    done: usize,
}

/// How far it got.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Parse,
    Analyse,
    Plan,
    Start,
    Run,
    End,
    Over,
}

impl<'d> Statement<'d> {
    fn new(seat: Seat<'d, '_>, options: &Options, answered: Rc<RefCell<Answered>>) -> Self {
        let Seat { database, tail, client } = seat;
        let footprint = footprint::of(options.query);
        let seed = options.seed.wrapping_add(client as u64);
        Self {
            process: Process::new((database, client), footprint, Rc::clone(tail), seed),
            plan: plan(options.query, options.range, options.set_size),
            stage: Stage::Parse,
            found: Found::default(),
            answered,
            clients: database.clients(),
            tables: if options.query == Query::Unj { 3 } else { 2 },
            done: 0,
        }
    }

    /// The helper of its work-ahead set, if it has one.
    fn helper(&mut self) -> Option<Helper<'d>> {
        let size = self.plan.set_size();
        (size > 0).then(|| Helper::new(self.process.database, self.process.keep_set(size)))
    }

    /// Does the next step.
    fn step(&mut self) {
        let process = &mut self.process;
        self.stage = match self.stage {
            Stage::Parse => {
                process.call(Call::Parse, &[]);
                Stage::Analyse
            }
            Stage::Analyse => {
                process.call_with_catalogue(Call::Analyse);
                Stage::Plan
            }
            Stage::Plan => {
                process.call_with_catalogue(Call::Plan);
                Stage::Start
            }
            Stage::Start => {
                process.lock_tables(self.tables, self.clients as u64);
                process.call_with_catalogue(Call::Start);
                Stage::Run
            }
            Stage::Run => match self.plan.step(process, &mut self.found) {
                true => Stage::Run,
                false => Stage::End,
            },
            Stage::End => {
                process.call(Call::End, &[]);
                let instructions = process.instructions();
                let found = std::mem::take(&mut self.found);
                *self.answered.borrow_mut() = Answered { found, instructions };
                Stage::Over
            }
            Stage::Over => Stage::Over,
        };
    }
}

impl Script for Statement<'_> {
    #[inline]
    fn next(&mut self, _: Ticks) -> Option<Op> {
        loop {
            if let Some(op) = self.process.ops.get(self.done).copied() {
                self.done += 1;
                self.process.publish(self.done);
                return Some(op);
            }
            if matches!(self.stage, Stage::Over) {
                return None;
            }
            self.process.ops.clear();
            self.done = 0;
            self.step();
        }
    }
}
