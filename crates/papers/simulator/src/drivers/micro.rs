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
mod offsets;
mod plans;
mod process;
#[cfg(test)]
mod tests;
mod tree;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

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
use offsets::{ClientProgress, head_program, heads};
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
    /// Whether each CPU's first client begins at a moment drawn over a query, as clients in a
    /// steady state do; else all begin at once. A query's time is that of the last warm-up.
    pub offsets: bool,
    /// Seed of data-dependent branches, and of those moments.
    pub seed: u64,
}

/// Bytes that a process keeps until all have ended: the operations of its longest step, a call of
/// the planner (109,000 instructions) or a leaf of an index (458 entries of 300), in a vector that
/// doubles. They are some 150,000 of 16 bytes.
const PROCESS_BYTES: u64 = 4 << 20;

impl Options {
    /// Approximate bytes of this process that a run on `servers` servers needs beside the machine:
    /// their rows of T1 and T2, and what each query keeps of the `selected` rows of T1.
    #[must_use]
    pub fn bytes(&self, [t1_rows, t2_rows]: [u64; 2], selected: u64, servers: usize) -> u64 {
        let of_query = match self.query {
            // The operations that compare pages in a sort, fifty for a pair, are those of a single
            // step; row numbers are in a vector that doubles.
            Query::Utpcc => {
                let pages = Database::t1_pages(t1_rows).min(selected.max(1));
                let pairs = pages * u64::from(pages.next_power_of_two().ilog2());
                pairs.saturating_mul(1024).saturating_add(selected.saturating_mul(8))
            }
            // A heap of pairs and the distinct values, in vectors that double.
            Query::Uss => selected.saturating_mul(2 * (8 + 4)),
            // Keys that were posted to a work-ahead set, in a vector that doubles.
            Query::Unj => selected.saturating_mul(2 * 4),
        };
        let processes = (self.clients * self.queries) as u64;
        let of_processes = of_query.saturating_add(PROCESS_BYTES).saturating_mul(processes);
        let of_servers = Database::bytes(t1_rows, t2_rows).saturating_mul(servers as u64);
        of_servers.saturating_add(of_processes)
    }
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
    /// Instructions of all queries.
    pub instructions: u64,
    /// Instructions in the time of `driven`: more or fewer where clients began before it, and where
    /// they went on until all were done.
    pub executed: u64,
    /// Answers: of all clients' first query, then of all clients' second.
    pub found: Vec<QueryAnswer>,
}

/// Runs all queries on a machine with empty caches, or what is done of them when `stop` is set.
/// Clients are spread over the servers round robin; `place` gives the CPU of each process.
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
    stop: &AtomicBool,
) -> Result<QueryResults, PresetError> {
    let mut clients = Clients {
        processor: Processor::new(preset)?,
        servers,
        appends: servers.iter().map(|_| Rc::default()).collect(),
        options,
        stop,
    };
    let mut over = 0;
    for _ in 0..options.warmup {
        let (driven, _) = clients.run((options.clients, 1), 0, &place);
        over = driven.run.ticks / clients_of_a_cpu(options.clients, &place);
    }
    let over = if options.offsets && options.set_size == 0 { over } else { 0 };
    let (driven, progress) = clients.run((options.clients, options.queries), over, &place);
    let found = progress.found.take();
    let instructions = found.iter().map(|one| one.instructions).sum();
    let of_queries: u64 = found.iter().map(|one| one.uops).sum();
    let statements = driven.run.threads.iter().take(found.len());
    let in_time: u64 = statements.map(|thread| thread.counts.uops).sum();
    let executed = (u128::from(instructions) * u128::from(in_time)) / u128::from(of_queries.max(1));
    Ok(QueryResults {
        driven,
        instructions,
        executed: executed as u64,
        found: found.into_iter().map(|one| one.answer).collect(),
    })
}

/// Clients of the CPU that has most of them.
fn clients_of_a_cpu(clients: usize, place: &impl Fn(usize) -> usize) -> u64 {
    let mut cpus: Vec<usize> = (0..clients).map(place).collect();
    cpus.sort_unstable();
    cpus.chunk_by(|one, two| one == two).map(|cpu| cpu.len() as u64).max().unwrap_or(1)
}

/// Micro-operations of an operation.
fn uops(op: &Op) -> u64 {
    match op {
        Op::Compute { uops } => u64::from(*uops),
        Op::Fetch { .. } | Op::Idle { .. } | Op::System(_) | Op::Announce { hint: false, .. } => 0,
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Branch { .. }
        | Op::Pause { .. }
        | Op::Announce { hint: true, .. } => 1,
    }
}

/// All clients of a machine.
struct Clients<'d> {
    processor: Processor,
    servers: &'d [Database],
    appends: Vec<Rc<RefCell<AppendPositions>>>,
    options: &'d Options,
    stop: &'d AtomicBool,
}

impl<'d> Clients<'d> {
    /// Runs the queries of a number of clients, out of step over `over` ticks.
    fn run(
        &mut self,
        (clients, queries): (usize, usize),
        over: Ticks,
        place: &impl Fn(usize) -> usize,
    ) -> (ProgramResult, Rc<ClientProgress>) {
        let cpus = self.processor.preset().cpus() as usize;
        let Self { servers, appends, options, .. } = self;
        let progress = Rc::new(ClientProgress::new(cpus, clients * queries));
        let (mut statements, mut helpers) = (Vec::new(), Vec::new());
        for (number, client) in (0..queries).flat_map(|_| 0..clients).enumerate() {
            let server = client % servers.len();
            let main = if options.set_size > 0 { 2 * client } else { client };
            let process = ClientProcess {
                database: &servers[server],
                append: Rc::clone(&appends[server]),
                client,
                cpu: place(main),
            };
            let mut statement = Statement::new(number, process, options, Rc::clone(&progress));
            if let Some(helper) = statement.helper() {
                let thread =
                    Thread { script: Box::new(helper), space: space(client), attends: true };
                helpers.push((thread, place(main + 1)));
            }
            progress.joins(statement.process_of.cpu);
            statements.push(statement);
        }
        if over > 0 {
            let heads = heads(cpus, over, options.seed, &statements);
            let program = head_program(&mut statements, &heads, options.slices);
            drive(&mut self.processor, program, self.stop);
            progress.keeps_busy.set(true);
        }
        let mut program =
            Program { threads: Vec::new(), placement: Vec::new(), slices: options.slices };
        for statement in statements {
            let ClientProcess { client, cpu, .. } = statement.process_of;
            let script = Box::new(statement);
            program.threads.push(Thread { script, space: space(client), attends: false });
            program.placement.push(cpu);
        }
        for (helper, cpu) in helpers {
            program.threads.push(helper);
            program.placement.push(cpu);
        }
        (drive(&mut self.processor, program, self.stop), progress)
    }
}

/// The address space of a client's processes.
const fn space(client: usize) -> u16 {
    1 + client as u16
}

/// A client's process.
#[derive(Clone)]
struct ClientProcess<'d> {
    database: &'d Database,
    append: Rc<RefCell<AppendPositions>>,
    client: usize,
    cpu: usize,
}

/// The result of a process.
#[derive(Debug, Clone, Default)]
struct ProcessResult {
    answer: QueryAnswer,
    instructions: u64,
    uops: u64,
}

/// A statement, from parsing to its answer.
struct Statement<'d> {
    /// Its place among all queries.
    number: usize,
    process_of: ClientProcess<'d>,
    options: &'d Options,
    process: Process<'d>,
    plan: Box<dyn Plan>,
    stage: Stage,
    answer: QueryAnswer,
    progress: Rc<ClientProgress>,
    /// Whether it has been answered, and the process only keeps its CPU busy.
    is_extra: bool,
    /// Micro-operations of the process.
    uops: u64,
    /// Operations of its step done so far.
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
        number: usize,
        process_of: ClientProcess<'d>,
        options: &'d Options,
        progress: Rc<ClientProgress>,
    ) -> Self {
        let footprint = footprint::of(options.query);
        let ClientProcess { database, client, .. } = process_of;
        let append = Rc::clone(&process_of.append);
        let seed = options.seed.wrapping_add(client as u64);
        Self {
            number,
            process: Process::new(database, client, footprint, append, seed),
            plan: plan(options.query, options.range, options.set_size),
            process_of,
            options,
            stage: Stage::Parse,
            answer: QueryAnswer::default(),
            progress,
            is_extra: false,
            uops: 0,
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
                let tables = if self.options.query == Query::Unj { 3 } else { 2 };
                process.lock_tables(tables, self.process_of.database.clients() as u64);
                process.call_with_catalogue(Call::Start);
                Stage::Run
            }
            Stage::Run => match self.plan.step(process, &mut self.answer) {
                true => Stage::Run,
                false => Stage::End,
            },
            Stage::End => {
                process.call(Call::End, &[]);
                Stage::Over
            }
            Stage::Over => Stage::Over,
        };
        self.uops += self.process.ops.iter().map(uops).sum::<u64>();
    }

    /// Whether the process goes on: behind its answer with the client's next query, which is not
    /// counted, while clients of other CPUs have theirs to do.
    fn goes_on(&mut self) -> bool {
        if !matches!(self.stage, Stage::Over) {
            return true;
        }
        if !self.is_extra {
            self.is_extra = true;
            let answer = std::mem::take(&mut self.answer);
            let instructions = self.process.instructions();
            let result = ProcessResult { answer, instructions, uops: self.uops };
            self.progress.leaves(self.number, self.process_of.cpu, result);
        }
        if !self.progress.waits(self.process_of.cpu) {
            return false;
        }
        let Self { number, process_of, options, progress, .. } = self;
        let next = Self::new(*number, process_of.clone(), options, Rc::clone(progress));
        *self = Self { is_extra: true, ..next };
        true
    }
}

impl Script for Statement<'_> {
    #[inline]
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if self.is_extra && self.progress.is_over() {
            return None;
        }
        loop {
            if let Some(op) = self.process.ops.get(self.done).copied() {
                self.done += 1;
                self.process.publish(self.done);
                return Some(op);
            }
            if !self.goes_on() {
                return None;
            }
            self.process.ops.clear();
            self.done = 0;
            self.step();
        }
    }
}
