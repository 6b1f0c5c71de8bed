//! A client's thread in the engine: its work becomes operations of its current CPU.
//!
//! ```text
//!   transaction (async) ──call──► operations ──► the server that runs it now
//!        │  sync: goes on when all of them have begun, and sees what others did by then
//!        └  give_way: another client has the CPU
//! ```
//!
//! A client is a future without waker, polled by its server. Its reads and writes of the engine
//! between two syncs happen at one moment of the machine's time.

use std::cell::{Cell, RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::engine::Engine;
use super::footprint::{FOOTPRINT, SWITCH};
use super::options::Index;
use super::space::{read, write};
use crate::drivers::code::Execution;
use crate::op::Op;

/// State shared by a client and the server that runs it.
#[derive(Debug)]
pub(super) struct CpuPort {
    /// Its next operations.
    pub(super) ops: RefCell<Vec<Op>>,
    /// Whether another client is to run next.
    pub(super) gives_way: Cell<bool>,
    execution: RefCell<Execution<'static>>,
    /// Instructions in addition to those of functions: of latches.
    beside: Cell<u64>,
}

/// A client's thread.
#[derive(Debug, Clone)]
pub(super) struct Session {
    engine: Rc<RefCell<Engine>>,
    port: Rc<CpuPort>,
    /// Client number.
    pub(super) number: u32,
    pub(super) index: Index,
    /// Address of its heap: cursors, current rows.
    heap: u64,
    /// Address of the ready queue.
    queue: u64,
}

/// Bytes of a client's heap in use: rows and cursors.
pub(super) const HEAP_BYTES: u64 = 8192;

impl Session {
    /// A client's thread, and the state that its server needs.
    pub(super) fn new(engine: &Rc<RefCell<Engine>>, number: u32) -> (Self, Rc<CpuPort>) {
        let (index, own, queue) = {
            let engine = engine.borrow();
            (engine.options.index, engine.own(number), engine.queue)
        };
        // Data-dependent outcomes differ between clients and not between runs.
        let execution = Execution::new(&FOOTPRINT, own + HEAP_BYTES, u64::from(number));
        let port = Rc::new(CpuPort {
            ops: RefCell::default(),
            gives_way: Cell::new(false),
            execution: RefCell::new(execution),
            beside: Cell::new(0),
        });
        let one = Self {
            engine: Rc::clone(engine),
            port: Rc::clone(&port),
            number,
            index,
            heap: own,
            queue,
        };
        (one, port)
    }

    /// The engine. The borrow must not be held over a sync.
    pub(super) fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
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

    /// Calls a function with `data` among its operations.
    pub(super) fn call(&self, function: usize, data: &[Op]) {
        self.port.execution.borrow_mut().call(function, data, &mut self.port.ops.borrow_mut());
    }

    /// Address in its own memory: the same for the same use.
    pub(super) fn heap(&self, at: u64) -> u64 {
        self.heap + at % HEAP_BYTES
    }

    /// Waits until all its operations have begun.
    pub(super) fn sync(&self) -> Sync {
        Sync { yielded: false }
    }

    /// Lets another client run.
    pub(super) async fn give_way(&self) {
        self.call(SWITCH, &[read(self.queue), write(self.queue)]);
        self.port.gives_way.set(true);
        self.engine().events.switches += 1;
        self.sync().await;
    }
}

impl CpuPort {
    /// Instructions so far.
    pub(super) fn instructions(&self) -> u64 {
        self.execution.borrow().instructions() + self.beside.get()
    }
}

/// A future that is pending once.
pub(super) struct Sync {
    yielded: bool,
}

impl Future for Sync {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match std::mem::replace(&mut self.yielded, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
