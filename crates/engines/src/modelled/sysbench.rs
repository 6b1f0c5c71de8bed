//! sysbench's programs on modelled machines: Yamada and Kusakabe (2010).
//!
//! | key | of | values |
//! |---|---|---|
//! | `threads` | both | of each program (1), round the CPUs |
//! | `programs` | memory | how many, an address space each (1) |
//! | `block_bytes`, `passes` | memory | of a block (1 MiB), of each program (16) |
//! | `scope`, `oper` | memory | `global` or `local`, `write` or `read` |
//! | `rows`, `dist` | oltp | of the table (10,000); `uniform`, `gaussian` or `special` |
//! | `transactions` | oltp | of all threads (200) |

use workahead_simulator::core::Processor;
use workahead_simulator::drivers::sysbench::{Memory, Oltp, Rows, Scope};
use workahead_simulator::drivers::{Program, drive};
use workahead_simulator::op::Script;
use workahead_simulator::run::{Slices, Thread};
use workahead_study::engine::{Answer, EngineError, Need, Sample, Stop};
use workahead_workloads::draws::Draws;
use workahead_workloads::sysbench::Flavour;
use workahead_workloads::sysbench::distribution::Distribution;

use super::figures::{Done, sample};
use super::{Told, Workload};
use crate::given::Given;
use crate::native::modelled::Model;

/// The memory program.
pub(super) struct OfMemory;

/// OLTP.
pub(super) struct OfOltp;

/// Most threads of a program, and most programs.
const THREADS_MAX: usize = 1_000;

/// Where the data of a program begin, after those of the one before.
const APART: u64 = 1 << 40;

/// What the draws of clients are for.
const CLIENTS: u32 = 1;

/// Bytes of a row (S3.25).
const ROW_BYTES: u64 = 190;

/// Elements of sysbench 0.4, the paper's.
const ELEMENT_BYTES: u32 = 4;

const SCOPES: [(&str, Scope); 2] = [("global", Scope::Global), ("local", Scope::Local)];

const DISTRIBUTIONS: [(&str, Distribution); 3] = [
    ("uniform", Distribution::Uniform),
    ("gaussian", Distribution::Gaussian),
    ("special", Distribution::Special),
];

/// A cell of the memory program: what each program does, how many there are, of how many threads.
fn memory(given: &Given<'_>) -> Result<(Memory, usize, usize), EngineError> {
    let program = Memory {
        base: 0,
        block_bytes: given.number("block_bytes", 1 << 20, 64..=1 << 30)? as u64,
        element_bytes: ELEMENT_BYTES,
        scope: given.choice("scope", Scope::Global, &SCOPES)?,
        writes: given.choice("oper", true, &[("write", true), ("read", false)])?,
        passes: given.number("passes", 16, 1..=1 << 30)? as u64,
    };
    let programs = given.number("programs", 1, 1..=THREADS_MAX)?;
    Ok((program, programs, given.number("threads", 1, 1..=THREADS_MAX)?))
}

/// A cell of OLTP, and the rows that each of its threads asks for.
fn oltp(given: &Given<'_>) -> Result<(Oltp, Vec<Rows>), EngineError> {
    let distribution = given.choice("dist", Distribution::Uniform, &DISTRIBUTIONS)?;
    let oltp = Oltp {
        base: APART,
        rows: given.number("rows", 10_000, 1..=100_000_000)? as u32,
        row_bytes: ROW_BYTES,
        transactions: given.number("transactions", 200, 1..=1 << 30)? as u64,
        seed: given.seed(),
    };
    let rows = |thread: u32| {
        let mut draws = Draws::new(oltp.seed, CLIENTS, thread);
        let row = move || distribution.row(&mut draws, oltp.rows, Flavour::V04) - 1;
        Box::new(row) as Rows
    };
    let threads = given.number("threads", 1, 1..=THREADS_MAX)? as u32;
    Ok((oltp, (0..threads).map(rows).collect()))
}

/// Programs, each in an address space, their threads round the CPUs.
fn placed(model: &Model, programs: Vec<Vec<Box<dyn Script>>>) -> Program<'static> {
    let mut program =
        Program { threads: Vec::new(), placement: Vec::new(), slices: Slices::default() };
    for (space, scripts) in (1..).zip(programs) {
        for script in scripts {
            program.placement.push(model.cpu(program.threads.len()));
            program.threads.push(Thread { script, space, attends: false });
        }
    }
    program
}

impl Workload for OfMemory {
    fn name(&self) -> &'static str {
        "sysbench-memory"
    }

    fn told(&self) -> Told {
        let code = "four micro-operations an element: the access, the addition, the loop";
        Told { tuples: "passes", code, checked: "each pass done once" }
    }

    fn check(&self, given: &Given<'_>, _: &Model) -> Result<Need, EngineError> {
        memory(given).map(|_| Need::default())
    }

    fn run(&self, given: &Given<'_>, model: &Model, _: &Stop) -> Result<Sample, EngineError> {
        let (one, programs, threads) = memory(given)?;
        let mut processor = Processor::new(model.preset()).map_err(super::failed)?;
        let program = |at: u64| Memory { base: (1 + at) * APART, ..one };
        let scripts = (0..programs as u64).map(|at| program(at).threads(threads).collect());
        let driven = drive(&mut processor, placed(model, scripts.collect()));
        let passes = one.passes * programs as u64;
        let uops: u64 = driven.ran.cpus.iter().map(|counts| counts.uops).sum();
        let done = Done {
            tuples: passes,
            // An element's four are an instruction each.
            instructions: uops,
            answer: Answer { rows: passes, checksum: uops },
        };
        let bytes = one.working_set_bytes(threads) as f64;
        Ok(sample(model.preset(), &driven, done, [("working_set_bytes".to_owned(), bytes)]))
    }
}

impl Workload for OfOltp {
    fn name(&self) -> &'static str {
        "sysbench-oltp"
    }

    fn told(&self) -> Told {
        let checked = "each transaction done once";
        Told { tuples: "transactions", code: Oltp::origin(), checked }
    }

    fn check(&self, given: &Given<'_>, _: &Model) -> Result<Need, EngineError> {
        oltp(given).map(|_| Need::default())
    }

    fn run(&self, given: &Given<'_>, model: &Model, _: &Stop) -> Result<Sample, EngineError> {
        let (oltp, rows) = oltp(given)?;
        let mut processor = Processor::new(model.preset()).map_err(super::failed)?;
        let (scripts, did) = oltp.threads(rows);
        let driven = drive(&mut processor, placed(model, vec![scripts]));
        let did = *did.borrow();
        let done = Done {
            tuples: did.transactions,
            instructions: did.instructions,
            answer: Answer { rows: did.read + did.written, checksum: did.transactions },
        };
        let bytes = oltp.working_set_bytes() as f64;
        Ok(sample(model.preset(), &driven, done, [("working_set_bytes".to_owned(), bytes)]))
    }
}
