//! A server process: one a CPU, with the clients' threads on top (S2.1).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::session::Port;
use super::world::World;
use crate::op::{Op, Script};
use crate::ticks::Ticks;

/// Cycles that a server without work waits before it looks again: a default.
const IDLE_CYCLES: u32 = 200;

/// A client that can be run on.
pub(super) struct Client {
    pub(super) port: Rc<Port>,
    pub(super) life: Pin<Box<dyn Future<Output = ()>>>,
}

/// Clients of all servers: any server runs any of them.
#[derive(Default)]
pub(super) struct Clients {
    /// Those that nobody runs, the next first.
    pub(super) ready: VecDeque<Client>,
    /// Those that are not at their end.
    pub(super) alive: usize,
}

/// What a CPU runs.
pub(super) struct Server {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) clients: Rc<RefCell<Clients>>,
    ops: Vec<Op>,
    done: usize,
    client: Option<Client>,
    /// Whether the client goes to the queue when its operations have begun.
    leaves: bool,
}

impl Server {
    pub(super) fn new(world: Rc<RefCell<World>>, clients: Rc<RefCell<Clients>>) -> Self {
        Self { world, clients, ops: Vec::new(), done: 0, client: None, leaves: false }
    }

    /// Lets a client go on until it has something to do: false where there is none.
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
        self.world.borrow_mut().now = now;
        let mut context = Context::from_waker(Waker::noop());
        let ended = client.life.as_mut().poll(&mut context) == Poll::Ready(());
        self.ops.clear();
        self.done = 0;
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
