//! An order-entry engine in miniature: the five transactions of TPC-C, on several CPUs.
//!
//! ```text
//!   CPU 0   server ── client, client, …          user-level threads: any server runs any client
//!   CPU 1   server ── client, client, …
//!              │
//!              ▼   indexes (CSB+-trees, latched or lock-free) ─► pages in the buffer (hash, pins,
//!                  latches) ─► rows; locks of rows; the end of the log
//! ```
//!
//! Derived from the TPC-C specification but complying with a part of it only: nothing here is a
//! TPC-C result. It really computes: rows change, indexes split, clients wait for held latches in
//! the machine's time, and [afterwards](Inconsistency) the consistency conditions must hold. The
//! paper's system is Keeton et al. 1998, section 2: Informix, server processes bound to CPUs with
//! clients' threads on top. Only the database's own code is modelled: no source says how much of
//! the operating system a call executes, and what it touches.

mod buffer;
mod conditions;
mod engine;
mod footprint;
mod index;
mod inputs;
mod latch;
mod locks;
mod options;
mod rows;
mod server;
mod session;
mod space;
mod tables;
#[cfg(test)]
mod tests;
mod transactions;
mod tree;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Program, ProgramResult, drive};
use crate::core::Processor;
use crate::run::{Slices, Thread};

pub use conditions::Inconsistency;
pub use engine::Events;
pub use options::{Index, Options, Sizes, Work};

use engine::{Engine, SharedEngine};
use server::{Client, Clients, Server};
use session::Session;

/// Number of rows at the end of a run, and their checksum, independent of the order of
/// transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answer {
    /// Orders, payments and rows found by probes.
    pub rows: u64,
    /// Checksum of the rows.
    pub checksum: u64,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct OrderEntryResult {
    /// Counts of the machine; time begins after the warm-up.
    pub driven: ProgramResult,
    /// Instructions of all clients.
    pub instructions: u64,
    /// The rows at the end.
    pub answer: Answer,
    /// Events of the run.
    pub events: Events,
}

/// Source of the engine's code footprint.
#[must_use]
pub fn origin() -> &'static str {
    footprint::FOOTPRINT.origin
}

/// Runs the engine with a server on each of `cpus`, or until `stop` is set: then transactions are
/// half done, no condition is checked, and there is no answer.
///
/// # Errors
/// If the consistency conditions don't hold afterwards, which is an error of the engine.
///
/// # Panics
/// If there is no client, no warehouse, or the machine doesn't have such a CPU.
pub fn run_orders(
    processor: &mut Processor,
    cpus: &[usize],
    options: &Options,
    stop: &AtomicBool,
) -> Result<OrderEntryResult, Inconsistency> {
    let engine = Rc::new(RefCell::new(Engine::new(options)));
    let ordered = run_in(processor, cpus, &engine, stop);
    if stop.load(Ordering::Relaxed) {
        return Ok(ordered);
    }
    let engine = engine.borrow();
    engine.check()?;
    Ok(OrderEntryResult { answer: engine.answer(), ..ordered })
}

fn run_in(
    processor: &mut Processor,
    cpus: &[usize],
    engine: &SharedEngine,
    stop: &AtomicBool,
) -> OrderEntryResult {
    let Options { warmup, transactions, .. } = engine.borrow().options;
    phase(processor, cpus, engine, warmup, stop);
    engine.borrow_mut().events = Events::default();
    let (driven, instructions) = phase(processor, cpus, engine, transactions, stop);
    let events = engine.borrow().events;
    OrderEntryResult { driven, instructions, answer: Answer::default(), events }
}

/// Runs `transactions` transactions; returns the machine's counts and the instructions.
fn phase(
    processor: &mut Processor,
    cpus: &[usize],
    engine: &SharedEngine,
    transactions: u64,
    stop: &AtomicBool,
) -> (ProgramResult, u64) {
    engine.borrow_mut().limit += transactions;
    let number = engine.borrow().options.clients;
    let clients = Rc::new(RefCell::new(Clients::default()));
    let mut ports = Vec::new();
    for client in 0..number {
        let (session, port) = Session::new(engine, client);
        ports.push(Rc::clone(&port));
        let life = Box::pin(session.live());
        let mut clients = clients.borrow_mut();
        clients.ready.push_back(Client { port, life });
        clients.alive += 1;
    }
    let server = || Server::new(Rc::clone(engine), Rc::clone(&clients));
    let thread = |_| Thread { script: Box::new(server()), space: 0, attends: false };
    let program = Program {
        threads: cpus.iter().map(thread).collect(),
        placement: cpus.to_vec(),
        slices: Slices::default(),
    };
    let driven = drive(processor, program, stop);
    (driven, ports.iter().map(|port| port.instructions()).sum())
}
