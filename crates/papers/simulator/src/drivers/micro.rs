//! The three queries of Hassanein et al. (2008) by the plans of its figures 1 and 2: k clients, a
//! process each, share a buffer pool and the CPUs of a machine.
//!
//! ```text
//!   client ── process ── plan ──► calls of a footprint ──► operations
//!               │          └─ records, index pages, pins and locks that they touch
//!               └─ own memory: sort, bitmap, stack         all else is everybody's
//! ```
//!
//! Each process really computes its answer from the rows. The engine's code is
//! [synthetic](footprint). Each query of a client is a new process, as with a `psql` per run
//! (section 4 of the paper): it queues with those of other clients on its CPU.

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
use crate::drivers::{Program, ProgramResult, drive};
use crate::op::{Op, Script};
use crate::preset::{Preset, PresetError};
use crate::run::{Slices, Thread};
use crate::ticks::Ticks;

pub use ahead::ENTRIES_MAX;
use ahead::Helper;
use database::AppendPositions;
use footprint::Call;
use plans::{Plan, plan};
use process::Process;

/// One of the three queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Query {
    /// Average of few rows through an index: bitmap index scan, bitmap heap scan, aggregate.
    Utpcc,
    /// Distinct values in order: file scan, sort, duplicate elimination.
    Uss,
    /// Average over a join: file scan, nested loop over an index scan.
    Unj,
}

/// Options of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The query.
    pub query: Query,
    /// Bounds of a2, both exclusive.
    pub range: (u32, u32),
    /// Concurrent clients.
    pub clients: usize,
    /// Queries per client.
    pub queries: usize,
    /// Warm-up queries of each client, not counted (S0.10): all have run before, as in a steady
    /// state.
    pub warmup: usize,
    /// Entries of the work-ahead set of a join's probes, whose index pages a helper on the next CPU
    /// loads ahead; 0 for none.
    pub set_size: usize,
    /// Time slices of processes on one CPU.
    pub slices: Slices,
    /// Cycles between the starts of two clients: two processes are not started at once.
    pub stagger: u32,
    /// Seed of data-dependent branches.
    pub seed: u64,
}

/// The answer of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryAnswer {
    /// Rows selected, each with its row of T2 in a join.
    pub rows: u64,
    /// Sum of their a3, for averages.
    pub sum: u64,
    /// Distinct a3 in order, for `Uss`.
    pub distinct: Vec<u32>,
}

/// The results of all queries.
#[derive(Debug, Clone)]
pub struct QueryResults {
    /// Counts of the machine.
    pub driven: ProgramResult,
    /// Instructions of all processes.
    pub instructions: u64,
    /// Answers: of all clients' first query, then of all clients' second.
    pub found: Vec<QueryAnswer>,
}

/// Runs all queries on a machine with empty caches. Clients are spread over the servers round
/// robin; `place` gives the CPU of each process.
///
/// # Errors
/// If the machine is impossible.
///
/// # Panics
/// If there are more clients than a server has room for, or no server.
pub fn run_queries(
    preset: &Preset,
    servers: &[Database],
    options: &Options,
    place: impl Fn(usize) -> usize,
) -> Result<QueryResults, PresetError> {
    let mut processor = Processor::new(preset)?;
    let cpus = preset.cpus() as usize;
    let appends: Vec<Rc<RefCell<AppendPositions>>> =
        servers.iter().map(|_| Rc::default()).collect();
    let mut run = |clients: usize, queries: usize| {
        let mut program =
            Program { threads: Vec::new(), placement: Vec::new(), slices: options.slices };
        let mut helpers = Vec::new();
        let mut results = Vec::new();
        for (number, client) in (0..queries).flat_map(|_| 0..clients).enumerate() {
            let server = client % servers.len();
            let result = Rc::default();
            let process =
                ClientProcess { database: &servers[server], append: &appends[server], client };
            let mut statement = Statement::new(process, options, Rc::clone(&result));
            // Processes behind others on their CPU start later anyhow.
            if number > 0 && number < cpus {
                let cycles = options.stagger.saturating_mul(number as u32);
                statement.process.ops.push(Op::Idle { cycles });
            }
            let space = 1 + client as u16;
            let main = if options.set_size > 0 { 2 * client } else { client };
            if let Some(helper) = statement.helper() {
                let script = Box::new(helper);
                helpers.push((Thread { script, space, attends: true }, place(main + 1)));
            }
            program.threads.push(Thread { script: Box::new(statement), space, attends: false });
            program.placement.push(place(main));
            results.push(result);
        }
        for (helper, cpu) in helpers {
            program.threads.push(helper);
            program.placement.push(cpu);
        }
        (drive(&mut processor, program), results)
    };
    for _ in 0..options.warmup {
        run(options.clients, 1);
    }
    let (driven, results) = run(options.clients, options.queries);
    let results: Vec<ProcessResult> = results.iter().map(|one| one.borrow().clone()).collect();
    let instructions = results.iter().map(|result| result.instructions).sum();
    let found = results.into_iter().map(|result| result.found).collect();
    Ok(QueryResults { driven, instructions, found })
}

/// A client's process.
struct ClientProcess<'d, 't> {
    database: &'d Database,
    append: &'t Rc<RefCell<AppendPositions>>,
    client: usize,
}

/// The result of a process.
#[derive(Debug, Clone, Default)]
struct ProcessResult {
    found: QueryAnswer,
    instructions: u64,
}

/// A statement, from parsing to its answer.
struct Statement<'d> {
    process: Process<'d>,
    plan: Box<dyn Plan>,
    stage: Stage,
    found: QueryAnswer,
    result: Rc<RefCell<ProcessResult>>,
    /// Number of clients.
    clients: usize,
    tables: u64,
    /// Operations of the process done so far.
    done: usize,
}

/// Phase of a statement.
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
    fn new(
        process: ClientProcess<'d, '_>,
        options: &Options,
        result: Rc<RefCell<ProcessResult>>,
    ) -> Self {
        let ClientProcess { database, append, client } = process;
        let footprint = footprint::of(options.query);
        let seed = options.seed.wrapping_add(client as u64);
        Self {
            process: Process::new(database, client, footprint, Rc::clone(append), seed),
            plan: plan(options.query, options.range, options.set_size),
            stage: Stage::Parse,
            found: QueryAnswer::default(),
            result,
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
                *self.result.borrow_mut() = ProcessResult { found, instructions };
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
