//! A memory that records a walk's accesses for the model.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::SyncSender;

use workahead_walks::memory::{Branch, Memory};
use workahead_walks::place::{Intent, LINE_BYTES, Place, References};
use workahead_walks::technique::{Near, Technique};
use workahead_walks::walk::{Row, Sink};
use workahead_walks::work_ahead::{Deduplicate, POSTED_LINES, States};

use super::helper::{SetLayout, Slots};
use crate::op::{Dependence, Op};
use crate::preset::Preset;

/// Micro-operations of a walk beside its accesses, which a memory doesn't see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Before each read.
    pub read: u32,
    /// For each announced or posted reference, beside its row's state.
    pub turn: u32,
    /// For each hit, beside its copy.
    pub hit: u32,
    /// Bytes that one of the machine's instructions copies.
    pub word: u16,
}

impl Costs {
    /// On a machine. Instructions were counted with callgrind on x86-64 (study
    /// `zhou/instructions`): 107 per probe of a hash join in turn, with five reads and one write;
    /// 80 more in lanes, with four announcements. That copied in words of 16 bytes: a row of 128
    /// took 16 of them, and a state of 32 four, which are counted by this machine's words instead.
    #[must_use]
    pub fn on(preset: &Preset) -> Self {
        Self { read: 15, turn: 16, hit: 14, word: preset.core.word as u16 }
    }

    /// Words of `bytes` bytes.
    const fn words(self, bytes: u16) -> u16 {
        bytes.div_ceil(self.word)
    }
}

/// Event of a main thread.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// An operation.
    Op(Op),
    /// A pointer in a slot of its work-ahead set.
    Post { slot: u32, layout: SetLayout, pointer: u64 },
    /// The number of rows done, and where it is stored for a direct helper.
    RowsDone { rows: u32, tells: Option<u64> },
}

/// Events sent to the model at once.
const CHUNK: usize = 4096;

/// Addresses that exist only in the model: beyond all of this process's.
const MODELLED: u64 = 1 << 62;

/// Micro-operations of looking a line up among those just posted: line number, place, compare.
const REPEAT_UOPS: u32 = 4;

/// Addresses of the walk's branches, and their distance: some dozen instructions.
const CODE: u64 = 0x40_0000;
const BETWEEN_BRANCHES: u64 = 45;

/// Bytes of state per row, on a machine of 32 bits: a hashed key, a phase, and a position in a list
/// (Zhou et al. 2005, §5.2).
const STATE_BYTES: u64 = 12;

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
    /// Where its states lie.
    states: States,
    /// Recently posted lines, where repeated ones are skipped.
    posted: Vec<u64>,
    events: Vec<Event>,
    sender: SyncSender<Vec<Event>>,
    posts: u64,
    rows: u32,
}

impl Recorder {
    pub(super) fn new(thread: usize, costs: Costs, sender: SyncSender<Vec<Event>>) -> Self {
        Self(Rc::new(RefCell::new(Recording {
            thread: thread as u64,
            costs,
            hints: false,
            set_size: 0,
            states: States::Apart,
            posted: Vec::new(),
            events: Vec::with_capacity(CHUNK),
            sender,
            posts: 0,
            rows: 0,
        })))
    }

    /// Sets the technique: whether announcements are prefetch instructions, and how its work-ahead
    /// set is posted to.
    #[must_use]
    pub fn with_technique(self, technique: Technique) -> Self {
        let mut recording = self.0.borrow_mut();
        recording.hints = technique.near() != Near::None;
        if let Technique::WorkAhead(options) = technique {
            recording.set_size = options.size;
            recording.states = options.states;
            if options.deduplicate == Deduplicate::InPost {
                recording.posted = vec![0; POSTED_LINES];
            }
        }
        drop(recording);
        self
    }

    /// Reports `rows` more rows as done.
    pub fn report(&mut self, rows: u32) {
        self.0.borrow_mut().report(rows, None);
    }

    /// Reports `rows` more rows as done, and stores the number for a direct helper.
    pub fn report_to_helper(&mut self, rows: u32) {
        let mut recording = self.0.borrow_mut();
        let line = progress(recording.thread as usize);
        recording.report(rows, Some(line));
    }

    /// Loads the references of a row: the work of a direct helper.
    pub fn preload<A: References>(&mut self, asks: &A) {
        let mut recording = self.0.borrow_mut();
        // All addresses are known; no load waits for another's line.
        for load in [false, true] {
            asks.each(|place| {
                let address = place.address().addr() as u64;
                recording.op(match load {
                    false => Op::Announce { address, hint: false },
                    true => Op::Load { address, bytes: 1, after: Dependence::Announcement },
                });
            });
        }
    }
}

/// Address in the model of a main thread's progress.
pub(super) fn progress(thread: usize) -> u64 {
    own(thread as u64, 4)
}

/// Address in the model of a main thread's own data.
fn own(thread: u64, what: u64) -> u64 {
    MODELLED | thread << 48 | what << 40
}

impl Recording {
    fn say(&mut self, events: Event) {
        self.events.push(events);
        if self.events.len() == CHUNK {
            self.send();
        }
    }

    fn op(&mut self, op: Op) {
        self.say(Event::Op(op));
    }

    fn send(&mut self) {
        let events = std::mem::replace(&mut self.events, Vec::with_capacity(CHUNK));
        // The model may have ended; the walk runs to its end for its answer.
        let _ = self.sender.send(events);
    }

    fn report(&mut self, rows: u32, tells: Option<u64>) {
        self.rows += rows;
        self.say(Event::RowsDone { rows: self.rows, tells });
    }

    fn reads<T>(&mut self, at: &T, after: Dependence) {
        self.op(Op::Compute { uops: self.costs.read });
        let address = (&raw const *at).addr() as u64;
        self.op(Op::Load { address, bytes: bytes_of::<T>(), after });
    }

    /// Copies `bytes` bytes that are near to an address, word by word, with `uops` beside.
    fn copy(&mut self, uops: u32, address: u64, bytes: u16) {
        let (word, words) = (self.costs.word, self.costs.words(bytes));
        self.op(Op::Compute { uops: uops + u32::from(words) });
        for at in 0..words {
            let bytes = word.min(bytes - at * word);
            self.op(Op::Store { address: address + u64::from(at * word), bytes });
        }
    }

    fn posts<A: References, B: References>(&mut self, entry: usize, asks: Option<&B>) {
        let states = (self.set_size / A::LEAST).max(1) as u64 + 1;
        let pointers = A::MOST as u64 * u64::from(Slots::BYTES);
        // The current state is one more than there are slots, unless it has one.
        let (entries, stride) = match self.states {
            States::Together => (states, pointers + STATE_BYTES),
            States::Apart => (states - 1, pointers),
        };
        let layout = SetLayout {
            base: own(self.thread, 0),
            dummy: own(self.thread, 1),
            history: own(self.thread, 3),
            entries: entries as u32,
            most: A::MOST as u8,
            stride: stride as u16,
        };
        let state = match self.states {
            States::Together => layout.base + entry as u64 * stride + pointers,
            States::Apart => own(self.thread, 2) + self.posts % states * STATE_BYTES,
        };
        self.posts += 1;
        self.op(Op::Load { address: state, bytes: STATE_BYTES as u16, after: Dependence::None });
        self.copy(self.costs.turn - 1, state, STATE_BYTES as u16);
        let mut slot = (entry * A::MOST) as u32;
        let end = slot + A::MOST as u32;
        if let Some(asks) = asks {
            asks.each(|place| {
                let pointer = place.address().addr() as u64;
                self.op(Op::Announce { address: pointer, hint: false });
                let pointer = if self.repeats(pointer) { layout.dummy } else { pointer };
                self.say(Event::Post { slot, layout, pointer });
                slot += 1;
            });
        }
        for slot in slot..end {
            self.say(Event::Post { slot, layout, pointer: layout.dummy });
        }
    }

    /// Whether a post is skipped: its line was posted a moment ago.
    fn repeats(&mut self, pointer: u64) -> bool {
        if self.posted.is_empty() {
            return false;
        }
        let line = pointer / LINE_BYTES as u64;
        let at = line as usize % POSTED_LINES;
        let address = own(self.thread, 5) + (at * usize::from(Slots::BYTES)) as u64;
        self.op(Op::Compute { uops: REPEAT_UOPS });
        self.op(Op::Load { address, bytes: Slots::BYTES, after: Dependence::None });
        let repeats = std::mem::replace(&mut self.posted[at], line) == line;
        if !repeats {
            self.op(Op::Store { address, bytes: Slots::BYTES });
        }
        repeats
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
        self.0.borrow_mut().reads(at, Dependence::Announcement);
        at
    }

    fn read_hot<'a, T>(&mut self, at: &'a T) -> &'a T {
        self.0.borrow_mut().reads(at, Dependence::None);
        at
    }

    fn write<T>(&mut self, at: &mut T, value: T) {
        let address = (&raw const *at).addr() as u64;
        *at = value;
        let mut recording = self.0.borrow_mut();
        let uops = recording.costs.hit;
        recording.copy(uops, address, bytes_of::<T>());
    }

    fn decided(&mut self, branch: Branch, taken: bool) -> bool {
        let at = CODE + branch as u64 * BETWEEN_BRANCHES;
        self.0.borrow_mut().op(Op::Branch { at, taken, back: false });
        taken
    }

    fn fetch(&mut self, place: Place, _: Intent) {
        let mut recording = self.0.borrow_mut();
        let Recording { hints: hint, costs, .. } = *recording;
        let state = 2 * u32::from(costs.words(STATE_BYTES as u16));
        recording.op(Op::Compute { uops: costs.turn + state });
        for offset in (0..place.bytes()).step_by(LINE_BYTES) {
            let address = (place.address().addr() + offset) as u64;
            recording.op(Op::Announce { address, hint });
        }
    }

    fn posted<A: References, B: References>(&mut self, entry: usize, asks: Option<&B>) {
        self.0.borrow_mut().posts::<A, B>(entry, asks);
    }
}

/// Layout of a batch of hits.
#[derive(Debug, Clone, Copy)]
pub struct BatchLayout {
    /// Address of its first row, in this process.
    pub address: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Rows of a batch.
    pub rows: usize,
}

/// A sink that also writes each hit to a batch in the model, over and over.
pub struct BatchSink<S> {
    sink: S,
    recorder: Recorder,
    base: u64,
    row_bytes: u16,
    batch_rows: u64,
    rows: u64,
}

impl<S> BatchSink<S> {
    /// A sink whose batches all have this layout.
    pub fn new(sink: S, recorder: Recorder, batch: BatchLayout) -> Self {
        let row_bytes = u16::try_from(batch.row_bytes).unwrap_or(u16::MAX);
        let batch_rows = batch.rows.max(1) as u64;
        Self { sink, recorder, base: batch.address as u64, row_bytes, batch_rows, rows: 0 }
    }

    /// The inner sink.
    pub fn finish(self) -> S {
        self.sink
    }
}

impl<H, S: Sink<H>> Sink<H> for BatchSink<S> {
    fn emit(&mut self, row: Row, hit: H) {
        let mut recorder = self.recorder.0.borrow_mut();
        let at = self.rows % self.batch_rows * u64::from(self.row_bytes);
        let address = self.base + at;
        self.rows += 1;
        let uops = recorder.costs.hit;
        recorder.copy(uops, address, self.row_bytes);
        drop(recorder);
        self.sink.emit(row, hit);
    }

    fn is_full(&self) -> bool {
        self.sink.is_full()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// By hand: twelve bytes are a word of eight and one of four, each loaded and stored; the loads
    /// are of lines just read, and count as computation.
    #[test]
    fn copies_go_by_the_machines_word() {
        let (sender, receiver) = sync_channel(CHUNK);
        let costs = Costs { read: 15, turn: 16, hit: 14, word: 8 };
        let recorder = Recorder::new(0, costs, sender);
        recorder.0.borrow_mut().copy(costs.hit, 100, 12);
        drop(recorder);
        let ops: Vec<Op> = receiver.recv().unwrap().into_iter().filter_map(op).collect();
        let store = |address, bytes| Op::Store { address, bytes };
        assert_eq!(ops, [Op::Compute { uops: 16 }, store(100, 8), store(108, 4)]);
    }

    fn op(event: Event) -> Option<Op> {
        match event {
            Event::Op(op) => Some(op),
            Event::Post { .. } | Event::RowsDone { .. } => None,
        }
    }
}
