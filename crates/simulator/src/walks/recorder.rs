//! A memory that tells the model what a walk does.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;

use workahead_operators::memory::Memory;
use workahead_operators::place::{Intent, LINE_BYTES, Place, References};
use workahead_operators::walk::{Row, Sink};

use super::helper::Shape;
use crate::op::{After, Op};

/// Micro-operations that a walk computes beside its accesses, which a memory doesn't see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Before each read.
    pub read: u32,
    /// For each place that a schedule announces or posts: keeping a row's state in between.
    pub turn: u32,
    /// For each hit.
    pub hit: u32,
}

impl Default for Costs {
    /// From instructions counted below callgrind on x86-64 (study `zhou/instructions`): 107 a probe
    /// of a hash join in turn, which reads five times and writes once; 80 more in lanes, which
    /// announce four places.
    fn default() -> Self {
        Self { read: 15, turn: 20, hit: 30 }
    }
}

/// What a main thread says to the model.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said {
    /// Something it does.
    Op(Op),
    /// A pointer in a slot of its work-ahead set.
    Post { slot: u32, shape: Shape, pointer: u64 },
}

/// Things said that go to the model together.
const CHUNK: usize = 4096;

/// Addresses of what only the model has: beyond all of this process's.
const MODELLED: u64 = 1 << 62;

/// Bytes of a state that the set keeps for a row (S4.7).
const STATE_BYTES: u64 = 32;

/// The memory of a main thread. Its clones record for the same thread.
#[derive(Debug, Clone)]
pub struct Recorder(Rc<RefCell<Recording>>);

#[derive(Debug)]
struct Recording {
    thread: u64,
    costs: Costs,
    hints: bool,
    /// References of a work-ahead set.
    set_size: usize,
    said: Vec<Said>,
    sender: SyncSender<Vec<Said>>,
    posts: u64,
}

impl Recorder {
    pub(super) fn new(thread: usize, costs: Costs, sender: SyncSender<Vec<Said>>) -> Self {
        Self(Rc::new(RefCell::new(Recording {
            thread: thread as u64,
            costs,
            hints: false,
            set_size: 0,
            said: Vec::with_capacity(CHUNK),
            sender,
            posts: 0,
        })))
    }

    /// The same for a technique whose announcements are prefetch instructions, or not, and whose
    /// work-ahead set has so many references, 0 for none.
    #[must_use]
    pub fn told(self, hints: bool, set_size: usize) -> Self {
        let mut recording = self.0.borrow_mut();
        (recording.hints, recording.set_size) = (hints, set_size);
        drop(recording);
        self
    }
}

impl Recording {
    fn say(&mut self, said: Said) {
        self.said.push(said);
        if self.said.len() == CHUNK {
            self.send();
        }
    }

    fn op(&mut self, op: Op) {
        self.say(Said::Op(op));
    }

    fn send(&mut self) {
        let said = std::mem::replace(&mut self.said, Vec::with_capacity(CHUNK));
        // A model that has ended wants nothing more; the walk runs to its end for its answer.
        let _ = self.sender.send(said);
    }

    /// Where the model has something of this thread's own.
    fn own(&self, what: u64) -> u64 {
        MODELLED | self.thread << 48 | what << 40
    }

    fn reads<T>(&mut self, at: &T, after: After) {
        self.op(Op::Compute { uops: self.costs.read });
        let address = (&raw const *at).addr() as u64;
        self.op(Op::Load { address, bytes: bytes_of::<T>(), after });
    }

    fn posts<A: References>(&mut self, entry: usize, asks: Option<&A>) {
        let entries = (self.set_size / A::LEAST).max(1);
        let shape = Shape {
            base: self.own(0),
            dummy: self.own(1),
            entries: entries as u32,
            most: A::MOST as u8,
        };
        // The state at hand is one more than there are slots.
        let states = self.own(2);
        let state = states + self.posts % (entries as u64 + 1) * STATE_BYTES;
        self.posts += 1;
        self.op(Op::Compute { uops: self.costs.turn });
        self.op(Op::Load { address: state, bytes: STATE_BYTES as u16, after: After::Nothing });
        self.op(Op::Store { address: state, bytes: STATE_BYTES as u16 });
        let mut slot = (entry * A::MOST) as u32;
        let end = slot + A::MOST as u32;
        if let Some(asks) = asks {
            asks.each(|place| {
                let pointer = place.address().addr() as u64;
                self.op(Op::Announce { address: pointer, hint: false });
                self.say(Said::Post { slot, shape, pointer });
                slot += 1;
            });
        }
        for slot in slot..end {
            self.say(Said::Post { slot, shape, pointer: shape.dummy });
        }
    }
}

fn bytes_of<T>() -> u16 {
    u16::try_from(size_of::<T>()).unwrap_or(u16::MAX)
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.send();
    }
}

impl Memory for Recorder {
    fn read<'a, T>(&mut self, at: &'a T) -> &'a T {
        self.0.borrow_mut().reads(at, After::Announcement);
        at
    }

    fn read_hot<'a, T>(&mut self, at: &'a T) -> &'a T {
        self.0.borrow_mut().reads(at, After::Nothing);
        at
    }

    fn write<T>(&mut self, at: &mut T, value: T) {
        let address = (&raw const *at).addr() as u64;
        *at = value;
        let mut recording = self.0.borrow_mut();
        let uops = recording.costs.hit;
        recording.op(Op::Compute { uops });
        recording.op(Op::Store { address, bytes: bytes_of::<T>() });
    }

    fn fetch(&mut self, place: Place, _: Intent) {
        let mut recording = self.0.borrow_mut();
        let Recording { hints: hint, costs, .. } = *recording;
        recording.op(Op::Compute { uops: costs.turn });
        for offset in (0..place.bytes()).step_by(LINE_BYTES) {
            let address = (place.address().addr() + offset) as u64;
            recording.op(Op::Announce { address, hint });
        }
    }

    fn posted<A: References>(&mut self, entry: usize, asks: Option<&A>) {
        self.0.borrow_mut().posts(entry, asks);
    }
}

/// A sink whose hits the model writes to a batch, over and over: what a memory does not see.
pub struct Written<S> {
    sink: S,
    recorder: Recorder,
    base: u64,
    row_bytes: u16,
    batch_rows: u64,
    rows: u64,
}

impl<S> Written<S> {
    /// Hits of `row_bytes` each, in batches of `batch_rows` that begin at an address of this
    /// process.
    pub fn new(
        sink: S,
        recorder: Recorder,
        (base, row_bytes, batch_rows): (usize, usize, usize),
    ) -> Self {
        let row_bytes = u16::try_from(row_bytes).unwrap_or(u16::MAX);
        let batch_rows = batch_rows.max(1) as u64;
        Self { sink, recorder, base: base as u64, row_bytes, batch_rows, rows: 0 }
    }

    /// The sink that the hits went to.
    pub fn finish(self) -> S {
        self.sink
    }
}

impl<H, S: Sink<H>> Sink<H> for Written<S> {
    fn emit(&mut self, row: Row, hit: H) {
        let mut recorder = self.recorder.0.borrow_mut();
        let at = self.rows % self.batch_rows * u64::from(self.row_bytes);
        let address = self.base + at;
        self.rows += 1;
        let uops = recorder.costs.hit;
        recorder.op(Op::Compute { uops });
        recorder.op(Op::Store { address, bytes: self.row_bytes });
        drop(recorder);
        self.sink.emit(row, hit);
    }

    fn is_full(&self) -> bool {
        self.sink.is_full()
    }
}
