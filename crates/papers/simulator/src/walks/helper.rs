//! The helper thread of a work-ahead set, in the machine's time.

use std::cell::RefCell;
use std::rc::Rc;

use workahead_walks::place::LINE_BYTES;
use workahead_walks::work_ahead::RECENT_LINES;

use super::Shared;
use crate::op::{After, Op, Script};
use crate::ticks::Ticks;

/// Layout of a work-ahead set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Address of the first slot's first pointer.
    pub(super) base: u64,
    /// Address of the line that pads entries.
    pub(super) dummy: u64,
    /// Address of the helper's history of lines.
    pub(super) recent: u64,
    pub(super) entries: u32,
    /// Pointers of an entry.
    pub(super) most: u8,
}

impl Shape {
    /// Address of a pointer, counted through all entries.
    pub(super) fn address(&self, slot: u32) -> u64 {
        self.base + u64::from(slot) * u64::from(Slots::BYTES)
    }
}

/// The posts so far.
#[derive(Debug, Default)]
pub(super) struct Slots {
    shape: Option<Shape>,
    pointers: Vec<u64>,
}

impl Slots {
    /// Bytes of a pointer: the machines of the paper have 32 bits (D7).
    pub(super) const BYTES: u16 = 4;

    pub(super) fn post(&mut self, slot: u32, shape: Shape, pointer: u64) {
        if self.shape.is_none() {
            self.shape = Some(shape);
            self.pointers = vec![shape.dummy; shape.entries as usize * usize::from(shape.most)];
        }
        self.pointers[slot as usize] = pointer;
    }
}

/// Options of a helper (Zhou et al. 2005, sections 4.3 and 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orders {
    /// Whether it runs against the main thread's direction.
    pub backward: bool,
    /// Cycles of a pause at an unchanged entry; `None` moves on at once.
    pub spin: Option<u32>,
    /// Whether it skips lines that it has just loaded (S4.26).
    pub skips_recent: bool,
}

/// State of the helper at an entry.
#[derive(Debug, Clone, Copy)]
enum At {
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
    orders: Orders,
    slots: Rc<RefCell<Slots>>,
    shared: Shared,
    last_seen: Vec<u64>,
    /// History of loaded lines.
    recent: Vec<u64>,
    entry: u32,
    at: At,
    /// The pointer read last.
    pointer: u64,
    /// Executed before anything else.
    then: Option<Op>,
}

impl HelperScript {
    pub(super) fn new(orders: Orders, slots: Rc<RefCell<Slots>>, shared: Shared) -> Self {
        Self {
            orders,
            slots,
            shared,
            last_seen: Vec::new(),
            recent: vec![0; RECENT_LINES],
            entry: 0,
            at: At::Look,
            pointer: 0,
            then: None,
        }
    }

    fn load(&self, address: u64, bytes: u16, after: After) -> Op {
        self.shared.pages.borrow_mut().placed(Op::Load { address, bytes, after })
    }

    fn store(&self, address: u64) -> Op {
        self.shared.pages.borrow_mut().placed(Op::Store { address, bytes: Slots::BYTES })
    }

    /// Continues with the line of the `k`-th pointer.
    fn towards(&mut self, k: u8) {
        self.at = if self.orders.skips_recent { At::Place(k) } else { At::Load(k) };
    }

    /// Looks a line up in the history, and adds it.
    fn recall(&mut self, k: u8, shape: Shape) -> Op {
        let line = self.pointer / LINE_BYTES as u64;
        let at = line as usize % RECENT_LINES;
        let place = shape.recent + (at * usize::from(Slots::BYTES)) as u64;
        self.at = At::Load(k);
        if std::mem::replace(&mut self.recent[at], line) == line {
            self.after(k, shape);
        } else {
            self.then = Some(self.store(place));
        }
        self.load(place, Slots::BYTES, After::Load)
    }

    /// Continues with the next pointer, or the next entry.
    fn after(&mut self, k: u8, shape: Shape) {
        if k + 1 < shape.most {
            self.at = At::Next(k + 1);
        } else {
            self.shared.helped.borrow_mut().0 += 1;
            self.move_on(shape.entries);
        }
    }

    fn move_on(&mut self, entries: u32) {
        self.entry = match self.orders.backward {
            true if self.entry == 0 => entries - 1,
            true => self.entry - 1,
            false if self.entry + 1 == entries => 0,
            false => self.entry + 1,
        };
        self.at = At::Look;
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
        let Some(shape) = slots.shape else { return Some(Op::Pause { cycles: 10 }) };
        if self.last_seen.is_empty() {
            self.last_seen = vec![shape.dummy; shape.entries as usize];
        }
        let first = self.entry * u32::from(shape.most);
        Some(match self.at {
            At::Look => {
                self.at = At::Seen;
                self.load(shape.address(first), Slots::BYTES, After::Nothing)
            }
            At::Seen => {
                let seen = slots.pointers[first as usize];
                let last = &mut self.last_seen[self.entry as usize];
                if let Some(cycles) = self.orders.spin
                    && seen == *last
                    && seen != shape.dummy
                {
                    self.shared.helped.borrow_mut().1 += 1;
                    self.at = At::Look;
                    return Some(Op::Pause { cycles });
                }
                *last = seen;
                self.pointer = seen;
                self.towards(0);
                Op::Compute { uops: VISIT_UOPS }
            }
            At::Place(k) => {
                self.at = At::Recall(k);
                Op::Compute { uops: RECALL_UOPS }
            }
            At::Recall(k) => self.recall(k, shape),
            At::Load(k) => {
                let op = self.load(self.pointer, 1, After::Load);
                self.after(k, shape);
                op
            }
            At::Next(k) => {
                let slot = first + u32::from(k);
                self.pointer = slots.pointers[slot as usize];
                self.towards(k);
                self.load(shape.address(slot), Slots::BYTES, After::Nothing)
            }
        })
    }
}
