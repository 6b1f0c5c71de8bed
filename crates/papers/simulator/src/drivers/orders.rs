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
//! TPC-C result. It really computes: rows change, indexes split, whoever finds a latch held waits
//! in the machine's time, and [afterwards](Inconsistent) everything has to add up. The paper's
//! system is Keeton et al. 1998, section 2: Informix, server processes bound to CPUs with clients'
//! threads on top. Only the database's own code is modelled, none of the operating system's: how
//! much of a system call is executed, and what it touches, is in nobody's plan.

mod buffer;
mod conditions;
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
mod world;

use std::cell::RefCell;
use std::rc::Rc;

use super::{Driven, Program, drive};
use crate::core::Processor;
use crate::run::{Slices, Thread};

pub use conditions::Inconsistent;
pub use options::{Index, Options, Sizes, Work};
pub use world::Events;

use server::{Client, Clients, Server};
use session::Session;
use world::{Shared, World};

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Ordered {
    /// By CPU; time begins after warming up.
    pub driven: Driven,
    /// Instructions of all clients.
    pub instructions: u64,
    /// Rows that there are, and a sum over what does not depend on who came first.
    pub answer: (u64, u64),
    /// What happened beside.
    pub events: Events,
}

/// Where the engine's code is from, for whoever shows a figure.
#[must_use]
pub fn origin() -> &'static str {
    footprint::FOOTPRINT.origin
}

/// Runs the engine, a server on each of some CPUs.
///
/// # Errors
/// If the rows don't add up afterwards, which would be an error of the engine.
///
/// # Panics
/// If there is no client, no warehouse, or the machine doesn't have such a CPU.
pub fn run_orders(
    processor: &mut Processor,
    cpus: &[usize],
    options: &Options,
) -> Result<Ordered, Inconsistent> {
    let world = Rc::new(RefCell::new(World::new(options)));
    let ordered = run_in(processor, cpus, &world);
    let world = world.borrow();
    world.check()?;
    Ok(Ordered { answer: world.answer(), ..ordered })
}

fn run_in(processor: &mut Processor, cpus: &[usize], world: &Shared) -> Ordered {
    let Options { warmup, transactions, .. } = world.borrow().options;
    phase(processor, cpus, world, warmup);
    world.borrow_mut().events = Events::default();
    let (driven, instructions) = phase(processor, cpus, world, transactions);
    let events = world.borrow().events;
    Ordered { driven, instructions, answer: (0, 0), events }
}

/// Runs so many transactions: what the machine did, and how many instructions that took.
fn phase(
    processor: &mut Processor,
    cpus: &[usize],
    world: &Shared,
    transactions: u64,
) -> (Driven, u64) {
    world.borrow_mut().limit += transactions;
    let number = world.borrow().options.clients;
    let clients = Rc::new(RefCell::new(Clients::default()));
    let mut ports = Vec::new();
    for client in 0..number {
        let (session, port) = Session::new(world, client);
        ports.push(Rc::clone(&port));
        let life = Box::pin(session.live());
        let mut clients = clients.borrow_mut();
        clients.ready.push_back(Client { port, life });
        clients.alive += 1;
    }
    let server = || Server::new(Rc::clone(world), Rc::clone(&clients));
    let thread = |_| Thread { script: Box::new(server()), space: 0, attends: false };
    let program = Program {
        threads: cpus.iter().map(thread).collect(),
        placement: cpus.to_vec(),
        slices: Slices::default(),
    };
    let driven = drive(processor, program);
    (driven, ports.iter().map(|port| port.instructions()).sum())
}
