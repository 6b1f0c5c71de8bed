//! Accesses of passes and transactions, and the effect of the distribution.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use workahead_walks::random::Random;

use super::*;
use crate::core::Processor;
use crate::drivers::{Program, ProgramResult, drive};
use crate::hierarchy::AccessKind;
use crate::op::{Call, Op, Script};
use crate::preset::Preset;
use crate::run::{Slices, Thread};

const MEMORY: Memory = Memory {
    base: 1 << 30,
    block_bytes: 4096,
    element_bytes: 4,
    scope: Scope::Global,
    writes: true,
    then: None,
};

fn passes(number: u64) -> Passes {
    Rc::new(Cell::new(number))
}

fn driven(machine: &str, scripts: impl IntoIterator<Item = Box<dyn Script>>) -> ProgramResult {
    let preset = Preset::named(machine).unwrap();
    let mut processor = Processor::new(&preset).unwrap();
    let thread = |script| Thread { script, space: 1, attends: false };
    let threads: Vec<Thread<'_>> = scripts.into_iter().map(thread).collect();
    let placement = (0..threads.len()).map(|at| at % preset.cpus() as usize).collect();
    let program = Program { threads, placement, slices: Slices::default() };
    drive(&mut processor, program, &AtomicBool::new(false))
}

fn accesses(driven: &ProgramResult, depth: usize) -> u64 {
    let of = |kind: AccessKind| -> u64 {
        driven.found.iter().flat_map(|found| &found.at[kind as usize][depth..]).sum()
    };
    of(AccessKind::Load) + of(AccessKind::Store)
}

/// Five passes over 64 lines: 320 accesses, each with the work of 16 elements.
#[test]
fn passes_touch_every_line_once() {
    let ops: Vec<Op> = {
        let mut thread = MEMORY.threads(1, &passes(5)).next().unwrap();
        std::iter::from_fn(|| thread.next(0)).collect()
    };
    assert_eq!(ops.len(), 2 * 5 * 64);
    let uops = |op: &Op| if let Op::Compute { uops } = op { *uops } else { 1 };
    assert_eq!(ops.iter().map(uops).sum::<u32>(), 5 * 1024 * 4);
    assert_eq!(ops[1], Op::Store { address: 1 << 30, bytes: 64 });
    assert_eq!(ops[127], Op::Store { address: (1 << 30) + 4096 - 64, bytes: 64 });
}

/// Threads of a group share one block, each line of which one of them fetches for both, or have
/// blocks of their own.
#[test]
fn blocks_are_shared_or_private() {
    let misses = |scope| {
        let program = Memory { scope, ..MEMORY };
        let bytes = program.working_set_bytes(2);
        (bytes, accesses(&driven("p4-ht-512k", program.threads(2, &passes(8))), 2))
    };
    let [(shared, few), (own, many)] = [Scope::Global, Scope::Local].map(misses);
    assert_eq!((shared, own), (4096, 8192));
    assert!(few < many, "{few} {many}");
}

/// A thread makes its call after each pass but before the next; a loop never ends, and counts.
#[test]
fn passes_end_with_a_call() {
    let program = Memory { then: Some(Call::Yield), ..MEMORY };
    let mut thread = program.threads(1, &passes(2)).next().unwrap();
    let ops: Vec<Op> = std::iter::from_fn(|| thread.next(0)).collect();
    let calls: Vec<usize> =
        (0..ops.len()).filter(|at| ops[*at] == Op::System(Call::Yield)).collect();
    assert_eq!((calls, ops.len()), (vec![128, 257], 258));
    let (mut script, lines) = background(1 << 30, 4096);
    assert!((0..2 * 64 * 3).all(|_| script.next(0).is_some()));
    assert_eq!(lines.get(), 3 * 64);
}

const OLTP: Oltp = Oltp {
    base: 1 << 30,
    rows: 50_000,
    row_bytes: 190,
    transactions: 8,
    client_uops: 0,
    commit: None,
    seed: 8,
};

/// Threads that draw the mean of `of` uniform numbers.
fn means(of: u32, rows: u32, threads: usize) -> Vec<Rows> {
    let thread = |at: usize| {
        let mut random = Random::of(at as u64);
        Box::new(move || (0..of).map(|_| random.below(rows)).sum::<u32>() / of) as Rows
    };
    (0..threads).map(thread).collect()
}

/// Eight transactions of 10 rows, four ranges and four changes, by any thread.
#[test]
fn transactions_are_done_once() {
    for threads in [1, 3] {
        let (scripts, did) = OLTP.threads(means(1, OLTP.rows, threads));
        driven("core2quad", scripts);
        let did = *did.borrow();
        assert_eq!(did.statements, 8 * 18);
        assert_eq!((did.transactions, did.written), (8, 32));
        // A range at the end of the table is shorter.
        assert!((8 * 400..=8 * 410).contains(&did.read), "{}", did.read);
        assert!(did.instructions > 8 * 18 * 20_000);
    }
}

/// 50,000 rows of 190 bytes are 9.5 MB, and a little more in pages (S3.25); the caches keep the
/// most popular rows.
#[test]
fn a_bell_misses_less() {
    let megabytes = OLTP.working_set_bytes() as f64 / 1e6;
    assert!((9.5..10.6).contains(&megabytes), "{megabytes}");
    let misses = |of| {
        let oltp = Oltp { rows: 5000, transactions: 16, ..OLTP };
        accesses(&driven("ppro-quad/4p-256k", oltp.threads(means(of, oltp.rows, 4)).0), 2)
    };
    let (uniform, bell) = (misses(1), misses(12));
    assert!(bell < uniform, "{bell} {uniform}");
    assert_eq!(bell, misses(12));
}

/// With clients, every statement is requested and answered; requests left over wait.
#[test]
fn clients_ask_for_statements() {
    let oltp = Oltp { client_uops: 500, commit: Some(Call::Sleep { cycles: 9 }), ..OLTP };
    let (mut scripts, did) = oltp.threads(means(1, OLTP.rows, 1));
    let mut server = Vec::new();
    while let Some(op) = scripts[0].next(0) {
        server.push(op);
    }
    let count = |call| server.iter().filter(|op| **op == Op::System(call)).count();
    assert_eq!(count(Call::Wait { channel: 0 }), 8 * 18);
    assert_eq!(count(Call::Post { channel: 1 }), 8 * 18);
    assert_eq!(count(Call::Sleep { cycles: 9 }), 8);
    assert_eq!(did.borrow().statements, 8 * 18);
    let mut client = oltp.client(0);
    let ops: Vec<Op> = std::iter::from_fn(|| client.next(0)).take(200).collect();
    let posts = ops.iter().filter(|op| **op == Op::System(Call::Post { channel: 0 })).count();
    let waits = ops.iter().filter(|op| **op == Op::System(Call::Wait { channel: 1 })).count();
    assert!(posts > 5 && posts.abs_diff(waits) <= 1, "{posts} {waits}");
}
