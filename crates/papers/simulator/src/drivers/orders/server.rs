//! A server process: one per CPU, running the clients' threads (S2.1).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::engine::Engine;
use super::session::CpuPort;
use crate::op::{Op, Script};
use crate::ticks::Ticks;

/// Cycles between two polls of a server without work: a default.
const IDLE_CYCLES: u32 = 200;

/// A client's thread.
pub(super) struct Client {
    pub(super) port: Rc<CpuPort>,
    pub(super) life: Pin<Box<dyn Future<Output = ()>>>,
}

/// Clients of all servers: any server runs any of them.
#[derive(Default)]
pub(super) struct Clients {
    /// Clients ready to run, in order.
    pub(super) ready: VecDeque<Client>,
    /// Number of clients that have not finished.
    pub(super) alive: usize,
}

/// The server on a CPU.
pub(super) struct Server {
    pub(super) engine: Rc<RefCell<Engine>>,
    pub(super) clients: Rc<RefCell<Clients>>,
    ops: Vec<Op>,
    done: usize,
    client: Option<Client>,
    /// Whether the client is queued again once its operations have begun.
    leaves: bool,
}

impl Server {
    pub(super) fn new(engine: Rc<RefCell<Engine>>, clients: Rc<RefCell<Clients>>) -> Self {
        Self { engine, clients, ops: Vec::new(), done: 0, client: None, leaves: false }
    }

    /// Resumes a client until it has operations: false if no client is ready.
    fn go_on(&mut self, now: Ticks) -> bool {
        if self.leaves {
            self.leaves = false;
            let mut clients = self.clients.borrow_mut();
            clients.ready.extend(self.client.take());
        }
        if self.client.is_none() {
            self.client = self.clients.borrow_mut().ready.pop_front();
        }
        let Some(client) = &mut self.client else { return false };
        self.engine.borrow_mut().now = now;
        // Lent, and back afterwards: of clients' own, each would have its longest until the end.
        self.ops.clear();
        self.done = 0;
        std::mem::swap(&mut self.ops, &mut client.port.ops.borrow_mut());
        let mut context = Context::from_waker(Waker::noop());
        let ended = client.life.as_mut().poll(&mut context) == Poll::Ready(());
        std::mem::swap(&mut self.ops, &mut client.port.ops.borrow_mut());
        self.leaves = client.port.gives_way.take();
        if ended {
            self.client = None;
            self.clients.borrow_mut().alive -= 1;
        }
        true
    }
}

impl Script for Server {
    #[inline]
    fn next(&mut self, now: Ticks) -> Option<Op> {
        loop {
            if let Some(op) = self.ops.get(self.done) {
                self.done += 1;
                return Some(*op);
            }
            if !self.go_on(now) {
                let alive = self.clients.borrow().alive;
                return (alive > 0).then_some(Op::Pause { cycles: IDLE_CYCLES });
            }
        }
    }
}
