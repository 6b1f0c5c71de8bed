//! sysbench's programs on modelled machines: Yamada and Kusakabe (2010).
//!
//! | key | of | values |
//! |---|---|---|
//! | `threads` | both | per program (1), round robin over the CPUs |
//! | `programs` | memory | number of programs, an address space each (1) |
//! | `block_bytes`, `passes` | memory | size of a block (1 MiB), passes of all programs (16) |
//! | `total_bytes` | memory | instead of `passes`: bytes of all passes |
//! | `scope`, `oper` | memory | `global` or `local`, `write` or `read` |
//! | `between` | memory | `go-on`, `yield` or `sleep` after each pass, for `sleep_us` (100) |
//! | `rows`, `dist` | oltp | of the table (10,000); `uniform`, `gaussian` or `special` |
//! | `transactions`, `warmup` | oltp | of all threads (200); before those that count (0) |
//! | `client_uops` | oltp | of a client thread between two statements; 0 for no clients |
//! | `sleep_us` | oltp | at the end of each transaction (0): the log's disk |
//!
//! Settings of CPU sharing are those of [`queues`](super::queues). A run's passes are a part of a
//! longer run: any program may do the next one, so that a scheduler that prefers one program is not
//! forced to end it.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::rc::Rc;

use workahead_simulator::core::Processor;
use workahead_simulator::drivers::sysbench::{Memory, Oltp, Passes, Rows, Scope, Statements};
use workahead_simulator::op::Call;
use workahead_study::engine::{Answer, EngineError, Need, Sample, Stop};
use workahead_workloads::random::Random;
use workahead_workloads::sysbench::Flavour;
use workahead_workloads::sysbench::distribution::Distribution;

use crate::figures::{RunWork, sample};
use crate::machine::ModelledMachine;
use crate::queues::{APART, Kind, SharedRun, Sharing, THREADS_MAX};
use crate::workload::{Description, Workload};
use workahead_engines::configuration::CellConfiguration;

/// The memory program.
pub(super) struct MemoryWorkload;

/// OLTP.
pub(super) struct OltpWorkload;

/// Purpose of the clients' random numbers.
const CLIENTS: u32 = 1;

/// Bytes of a row (S3.25).
const ROW_BYTES: u64 = 190;

/// Purpose of the random numbers of warm-up.
const WARMUP: u32 = 3;

/// Bytes of this process that a thread takes: its script, its task, and its counts.
const THREAD_BYTES: u64 = 1200;

/// The same of an OLTP transaction: some 650,000 operations of 16 bytes.
const TRANSACTION_BYTES: u64 = 12 << 20;

/// The same of a run besides: the switches of its CPUs that are not summed yet.
const OVERHEAD_BYTES: u64 = 64 << 20;

/// Elements of sysbench 0.4, the paper's.
const ELEMENT_BYTES: u32 = 4;

const SCOPES: [(&str, Scope); 2] = [("global", Scope::Global), ("local", Scope::Local)];

const DISTRIBUTIONS: [(&str, Distribution); 3] = [
    ("uniform", Distribution::Uniform),
    ("gaussian", Distribution::Gaussian),
    ("special", Distribution::Special),
];

/// The pause of a thread between two passes.
#[derive(Clone, Copy)]
enum PassEnd {
    GoOn,
    Yield,
    Sleep,
}

const PASS_ENDS: [(&str, PassEnd); 3] =
    [("go-on", PassEnd::GoOn), ("yield", PassEnd::Yield), ("sleep", PassEnd::Sleep)];

/// A cell of the memory program.
struct Blocks {
    program: Memory,
    passes: u64,
    programs: usize,
    threads: usize,
    sharing: Sharing,
}

/// A sleep in cycles from the setting in microseconds.
fn sleep(
    config: &CellConfiguration<'_>,
    model: &ModelledMachine,
    usual: f64,
) -> Result<Option<Call>, EngineError> {
    let cycles = config.real("sleep_us", usual, 0.0..=1e5)? * 1e3 * model.preset().ghz;
    Ok((cycles > 0.0).then_some(Call::Sleep { cycles: cycles as u32 }))
}

fn memory(config: &CellConfiguration<'_>, model: &ModelledMachine) -> Result<Blocks, EngineError> {
    let block_bytes = config.number("block_bytes", 1 << 20, 64..=1 << 30)? as u64;
    let then = match config.choice("between", PassEnd::GoOn, &PASS_ENDS)? {
        PassEnd::GoOn => None,
        PassEnd::Yield => Some(Call::Yield),
        PassEnd::Sleep => sleep(config, model, 100.0)?,
    };
    let program = Memory {
        base: 0,
        block_bytes,
        element_bytes: ELEMENT_BYTES,
        scope: config.choice("scope", Scope::Global, &SCOPES)?,
        writes: config.choice("oper", true, &[("write", true), ("read", false)])?,
        then,
    };
    let passes = match config.has("total_bytes") {
        true => config.number("total_bytes", 0, 64..=1 << 40)? as u64 / block_bytes,
        false => config.number("passes", 16, 1..=1 << 30)? as u64,
    };
    Ok(Blocks {
        program,
        passes: passes.max(1),
        programs: config.number("programs", 1, 1..=THREADS_MAX)?,
        threads: config.number("threads", 1, 1..=THREADS_MAX)?,
        sharing: Sharing::read_of_programs(config, model)?,
    })
}

/// A cell of OLTP.
struct Table {
    oltp: Oltp,
    distribution: Distribution,
    warmup: u64,
    threads: usize,
    sharing: Sharing,
}

fn oltp(config: &CellConfiguration<'_>, model: &ModelledMachine) -> Result<Table, EngineError> {
    let oltp = Oltp {
        base: APART,
        rows: config.number("rows", 10_000, 1..=100_000_000)? as u32,
        row_bytes: ROW_BYTES,
        transactions: config.number("transactions", 200, 1..=1 << 30)? as u64,
        client_uops: config.number("client_uops", 0, 0..=1 << 20)? as u32,
        commit: sleep(config, model, 0.0)?,
        seed: config.seed(),
    };
    Ok(Table {
        oltp,
        distribution: config.choice("dist", Distribution::Uniform, &DISTRIBUTIONS)?,
        warmup: config.number("warmup", 0, 0..=1 << 30)? as u64,
        threads: config.number("threads", 1, 1..=THREADS_MAX)?,
        sharing: Sharing::read_of_programs(config, model)?,
    })
}

impl Blocks {
    /// Bytes of this process that its threads take.
    fn bytes(&self) -> u64 {
        let threads = (self.programs as u64).saturating_mul(self.threads as u64);
        threads.saturating_mul(THREAD_BYTES)
    }
}

/// What a run needs whose threads take `bytes`.
fn need(bytes: u64) -> Need {
    Need { memory_bytes: bytes.saturating_add(OVERHEAD_BYTES), ..Need::default() }
}

impl Table {
    /// Bytes of this process that its threads take, of which as many at a time have a transaction.
    fn bytes(&self) -> u64 {
        let threads = self.threads as u64;
        let busy = threads.min(self.oltp.transactions.max(self.warmup));
        // A thread and its client.
        let threads = threads.saturating_mul(2 * THREAD_BYTES);
        threads.saturating_add(busy.saturating_mul(TRANSACTION_BYTES))
    }

    /// The row generator of each thread.
    fn generators(&self, purpose: u32) -> impl Iterator<Item = Rows> {
        let (distribution, rows, seed) = (self.distribution, self.oltp.rows, self.oltp.seed);
        (0..self.threads as u32).map(move |thread| {
            let mut random = Random::new(seed, purpose, thread);
            let row = move || distribution.row(&mut random, rows, Flavour::V04) - 1;
            Box::new(row) as Rows
        })
    }

    /// Runs `transactions` transactions.
    fn run(
        &self,
        model: &ModelledMachine,
        at: &mut Processor,
        transactions: u64,
        purpose: u32,
        stop: &Stop,
    ) -> Result<OltpRun, EngineError> {
        let oltp = Oltp { transactions, ..self.oltp };
        let (scripts, did) = oltp.threads(self.generators(purpose));
        let mut tasks = self.sharing.tasks(model);
        let placed = |(at, script)| (model.cpu(at), script);
        tasks.add(
            Kind::Work,
            scripts.into_iter().enumerate().map(placed),
            oltp.working_set_bytes(),
        );
        if oltp.client_uops > 0 {
            let clients = (0..self.threads).map(|at| (model.cpu(at), oltp.client(at as u32)));
            tasks.add(Kind::Client, clients, 0);
        }
        let shared = self.sharing.run(at, tasks, oltp.seed, stop)?;
        let did = *did.borrow();
        Ok(OltpRun { shared, did })
    }
}

/// The result of a run.
struct OltpRun {
    shared: SharedRun,
    did: Statements,
}

impl Workload for MemoryWorkload {
    fn name(&self) -> &'static str {
        "sysbench-memory"
    }

    fn description(&self) -> Description {
        let code = "four micro-operations per element: the access, the addition, the loop";
        Description { tuples: "passes", code, checked: "each pass done once" }
    }

    fn check(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
    ) -> Result<Need, EngineError> {
        memory(config, model).map(|blocks| need(blocks.bytes()))
    }

    fn run(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let Blocks { program, passes, programs, threads, sharing } = memory(config, model)?;
        let mut processor = Processor::new(model.preset()).map_err(EngineError::failed)?;
        let left: Passes = Rc::new(Cell::new(passes));
        let mut tasks = sharing.tasks(model);
        for at in 0..programs as u64 {
            let program = Memory { base: (1 + at) * APART, ..program };
            let placed = |(at, script)| (model.cpu(at), script);
            let scripts = program.threads(threads, &left).enumerate().map(placed);
            tasks.add(Kind::Work, scripts, program.block_bytes);
        }
        let shared = sharing.run(&mut processor, tasks, config.seed(), stop)?;
        let uops: u64 = shared.driven.run.cpus.iter().map(|counts| counts.uops).sum();
        let done = RunWork {
            tuples: passes,
            // An element's four are an instruction each.
            instructions: uops,
            answer: Answer { rows: passes, checksum: passes * program.block_bytes },
        };
        let bytes = program.working_set_bytes(threads) as f64;
        Ok(to_sample(model, &shared, done, bytes))
    }
}

/// A run as a sample.
fn to_sample(
    model: &ModelledMachine,
    shared: &SharedRun,
    done: RunWork,
    working_set_bytes: f64,
) -> Sample {
    let of_sharing = shared.measures(model.preset(), done.tuples);
    let measures = of_sharing.chain([("working_set_bytes", working_set_bytes)]);
    let measures = measures.map(|(name, value)| (name.to_owned(), value));
    sample(model.preset(), &shared.driven, done, measures)
}

impl Workload for OltpWorkload {
    fn name(&self) -> &'static str {
        "sysbench-oltp"
    }

    fn description(&self) -> Description {
        let checked = "each transaction done once";
        Description { tuples: "transactions", code: Oltp::origin(), checked }
    }

    fn check(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
    ) -> Result<Need, EngineError> {
        oltp(config, model).map(|table| need(table.bytes()))
    }

    fn run(
        &self,
        config: &CellConfiguration<'_>,
        model: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let table = oltp(config, model)?;
        let mut processor = Processor::new(model.preset()).map_err(EngineError::failed)?;
        if table.warmup > 0 {
            table.run(model, &mut processor, table.warmup, WARMUP, stop)?;
        }
        let transactions = table.oltp.transactions;
        let ran = table.run(model, &mut processor, transactions, CLIENTS, stop)?;
        let OltpRun { shared, did } = ran;
        let done = RunWork {
            tuples: did.transactions,
            instructions: did.instructions + shared.other_uops(),
            answer: Answer { rows: did.read + did.written, checksum: did.transactions },
        };
        Ok(to_sample(model, &shared, done, table.oltp.working_set_bytes() as f64))
    }
}
