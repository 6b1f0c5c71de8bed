//! The helper thread of a work-ahead set, in the machine's time.

use std::cell::RefCell;
use std::rc::Rc;

use workahead_walks::place::LINE_BYTES;
use workahead_walks::work_ahead::RECENT_LINES;

use super::SharedState;
use crate::op::{Dependence, Op, Script};
use crate::ticks::Ticks;

/// Layout of a work-ahead set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetLayout {
    /// Address of the first slot's first pointer.
    pub(super) base: u64,
    /// Address of the line that pads entries.
    pub(super) dummy: u64,
    /// Address of the helper's history of lines.
    pub(super) history: u64,
    pub(super) entries: u32,
    /// Pointers of an entry.
    pub(super) most: u8,
    /// Bytes from an entry to the next.
    pub(super) stride: u16,
}

impl SetLayout {
    /// Address of a pointer, counted through all entries.
    pub(super) fn address(&self, slot: u32) -> u64 {
        let (entry, k) = (slot / u32::from(self.most), slot % u32::from(self.most));
        self.base
            + u64::from(entry) * u64::from(self.stride)
            + u64::from(k) * u64::from(Slots::BYTES)
    }
}

/// The posts so far.
#[derive(Debug, Default)]
pub(super) struct Slots {
    layout: Option<SetLayout>,
    pointers: Vec<u64>,
}

impl Slots {
    /// Bytes of a pointer: the machines of the paper have 32 bits (D7).
    pub(super) const BYTES: u16 = 4;

    pub(super) fn post(&mut self, slot: u32, layout: SetLayout, pointer: u64) {
        if self.layout.is_none() {
            self.layout = Some(layout);
            self.pointers = vec![layout.dummy; layout.entries as usize * usize::from(layout.most)];
        }
        self.pointers[slot as usize] = pointer;
    }
}

/// Options of a helper (Zhou et al. 2005, sections 4.3 and 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelperOptions {
    /// Whether it runs against the main thread's direction.
    pub backward: bool,
    /// Cycles of a pause at an unchanged entry; `None` moves on at once.
    pub spin: Option<u32>,
    /// Whether it skips lines that it has just loaded (S4.26).
    pub skips_recent: bool,
}

/// State of the helper at an entry.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Reads the first pointer.
    Look,
    /// Compares the pointer that it read.
    Seen,
    /// Computes the place of the `k`-th pointer's line in its history.
    Place(u8),
    /// Looks that line up.
    Recall(u8),
    /// Loads the line of the `k`-th pointer.
    Load(u8),
    /// Reads the `k`-th pointer.
    Next(u8),
}

/// Micro-operations of a visit: compare, remember, continue.
const VISIT_UOPS: u32 = 6;

/// Micro-operations of a look-up in the history: line number, place, compare.
const RECALL_UOPS: u32 = 4;

/// Script of a helper: read a pointer, load its line, continue.
pub(super) struct HelperScript {
    options: HelperOptions,
    slots: Rc<RefCell<Slots>>,
    shared: SharedState,
    last_seen: Vec<u64>,
    /// History of loaded lines.
    history: Vec<u64>,
    entry: u32,
    state: State,
    /// The pointer read last.
    pointer: u64,
    /// Executed before anything else.
    then: Option<Op>,
}

impl HelperScript {
    pub(super) fn new(
        options: HelperOptions,
        slots: Rc<RefCell<Slots>>,
        shared: SharedState,
    ) -> Self {
        Self {
            options,
            slots,
            shared,
            last_seen: Vec::new(),
            history: vec![0; RECENT_LINES],
            entry: 0,
            state: State::Look,
            pointer: 0,
            then: None,
        }
    }

    fn load(&self, address: u64, bytes: u16, after: Dependence) -> Op {
        self.shared.pages.borrow_mut().placed(Op::Load { address, bytes, after })
    }

    fn store(&self, address: u64) -> Op {
        self.shared.pages.borrow_mut().placed(Op::Store { address, bytes: Slots::BYTES })
    }

    /// Continues with the line of the `k`-th pointer.
    fn towards(&mut self, k: u8) {
        self.state = if self.options.skips_recent { State::Place(k) } else { State::Load(k) };
    }

    /// Looks a line up in the history, and adds it.
    fn recall(&mut self, k: u8, layout: SetLayout) -> Op {
        let line = self.pointer / LINE_BYTES as u64;
        let at = line as usize % RECENT_LINES;
        let place = layout.history + (at * usize::from(Slots::BYTES)) as u64;
        self.state = State::Load(k);
        if std::mem::replace(&mut self.history[at], line) == line {
            self.after(k, layout);
        } else {
            self.then = Some(self.store(place));
        }
        self.load(place, Slots::BYTES, Dependence::Load)
    }

    /// Continues with the next pointer, or the next entry.
    fn after(&mut self, k: u8, layout: SetLayout) {
        if k + 1 < layout.most {
            self.state = State::Next(k + 1);
        } else {
            self.shared.helper_counts.borrow_mut().entries += 1;
            self.move_on(layout.entries);
        }
    }

    fn move_on(&mut self, entries: u32) {
        self.entry = match self.options.backward {
            true if self.entry == 0 => entries - 1,
            true => self.entry - 1,
            false if self.entry + 1 == entries => 0,
            false => self.entry + 1,
        };
        self.state = State::Look;
    }
}

impl Script for HelperScript {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if let Some(op) = self.then.take() {
            return Some(op);
        }
        let slots = Rc::clone(&self.slots);
        let slots = slots.borrow();
        // Nothing has been posted yet.
        let Some(layout) = slots.layout else { return Some(Op::Pause { cycles: 10 }) };
        if self.last_seen.is_empty() {
            self.last_seen = vec![layout.dummy; layout.entries as usize];
        }
        let first = self.entry * u32::from(layout.most);
        Some(match self.state {
            State::Look => {
                self.state = State::Seen;
                self.load(layout.address(first), Slots::BYTES, Dependence::None)
            }
            State::Seen => {
                let seen = slots.pointers[first as usize];
                let last = &mut self.last_seen[self.entry as usize];
                if let Some(cycles) = self.options.spin
                    && seen == *last
                    && seen != layout.dummy
                {
                    self.shared.helper_counts.borrow_mut().waits += 1;
                    self.state = State::Look;
                    return Some(Op::Pause { cycles });
                }
                *last = seen;
                self.pointer = seen;
                self.towards(0);
                Op::Compute { uops: VISIT_UOPS }
            }
            State::Place(k) => {
                self.state = State::Recall(k);
                Op::Compute { uops: RECALL_UOPS }
            }
            State::Recall(k) => self.recall(k, layout),
            State::Load(k) => {
                let op = self.load(self.pointer, 1, Dependence::Load);
                self.after(k, layout);
                op
            }
            State::Next(k) => {
                let slot = first + u32::from(k);
                self.pointer = slots.pointers[slot as usize];
                self.towards(k);
                self.load(layout.address(slot), Slots::BYTES, Dependence::None)
            }
        })
    }
}
