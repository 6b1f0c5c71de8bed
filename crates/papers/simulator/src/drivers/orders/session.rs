//! A client's thread in the engine: what it does becomes operations of the CPU that it has.
//!
//! ```text
//!   transaction (async) ──call──► operations ──► the server that runs it now
//!        │  sync: goes on when all of them have begun, and sees what others did by then
//!        └  give_way: another client has the CPU
//! ```
//!
//! A client is a future without waker: the server that has it asks it on. What it reads and writes
//! of the engine between two syncs happens at one moment of the machine's time.

use std::cell::{Cell, RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::footprint::{FOOTPRINT, SWITCH};
use super::options::Index;
use super::space::{read, write};
use super::world::World;
use crate::drivers::code::Execution;
use crate::op::Op;

/// What a client and the server that runs it have together.
#[derive(Debug)]
pub(super) struct Port {
    /// What is to be done next.
    pub(super) ops: RefCell<Vec<Op>>,
    /// Whether another client is to have the CPU.
    pub(super) gives_way: Cell<bool>,
    execution: RefCell<Execution<'static>>,
    /// Instructions beside those of functions: of latches.
    beside: Cell<u64>,
}

/// A client's thread.
#[derive(Debug, Clone)]
pub(super) struct Session {
    world: Rc<RefCell<World>>,
    port: Rc<Port>,
    /// Which client it is.
    pub(super) number: u32,
    pub(super) index: Index,
    /// Its heap: cursors, rows at hand.
    heap: u64,
    /// The ready queue.
    queue: u64,
}

/// Bytes of a client's heap that it goes over: rows and cursors.
pub(super) const HEAP_BYTES: u64 = 8192;

impl Session {
    /// A client's thread, and what its server is to look at.
    pub(super) fn new(world: &Rc<RefCell<World>>, number: u32) -> (Self, Rc<Port>) {
        let (index, own, queue) = {
            let world = world.borrow();
            (world.options.index, world.own(number), world.queue)
        };
        // What depends on data differs between clients and not between runs.
        let execution = Execution::new(&FOOTPRINT, own + HEAP_BYTES, u64::from(number));
        let port = Rc::new(Port {
            ops: RefCell::default(),
            gives_way: Cell::new(false),
            execution: RefCell::new(execution),
            beside: Cell::new(0),
        });
        let one = Self {
            world: Rc::clone(world),
            port: Rc::clone(&port),
            number,
            index,
            heap: own,
            queue,
        };
        (one, port)
    }

    /// The engine, not to be kept over a sync.
    pub(super) fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    pub(super) fn push(&self, op: Op) {
        self.push_all(std::iter::once(op));
    }

    pub(super) fn push_all(&self, ops: impl Iterator<Item = Op>) {
        let mut all = self.port.ops.borrow_mut();
        let before = all.len();
        all.extend(ops);
        self.port.beside.update(|beside| beside + (all.len() - before) as u64);
    }

    /// Calls a function that does `data` on its way.
    pub(super) fn call(&self, function: usize, data: &[Op]) {
        self.port.execution.borrow_mut().call(function, data, &mut self.port.ops.borrow_mut());
    }

    /// Where some of its own bytes are: the same for the same use.
    pub(super) fn heap(&self, at: u64) -> u64 {
        self.heap + at % HEAP_BYTES
    }

    /// Waits until all that it does has begun.
    pub(super) fn sync(&self) -> Sync {
        Sync { asked: false }
    }

    /// Lets another client have the CPU.
    pub(super) async fn give_way(&self) {
        self.call(SWITCH, &[read(self.queue), write(self.queue)]);
        self.port.gives_way.set(true);
        self.world().events.switches += 1;
        self.sync().await;
    }
}

impl Port {
    /// Instructions so far.
    pub(super) fn instructions(&self) -> u64 {
        self.execution.borrow().instructions() + self.beside.get()
    }
}

/// Not ready when it is asked first.
pub(super) struct Sync {
    asked: bool,
}

impl Future for Sync {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match std::mem::replace(&mut self.asked, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
