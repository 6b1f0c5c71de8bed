//! The main thread's half of the set: `post`, admission, and the drive that uses them.

use super::slots::Slots;
use crate::memory::Direct;
use crate::place::{LINE_BYTES, Place, References};
use crate::walk::{Row, Rows, Sink, Walk};

/// Whether `post` leaves out a line it posted a moment ago: the main thread has the line number at
/// hand, so it may be cheaper here than in the helper, where the paper tried it and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deduplicate {
    /// Posts every place.
    Nothing,
    /// Posts the dummy instead of a line posted among the last few.
    InPost,
}

/// Lines `post` remembers.
const POSTED_LINES: usize = 256;

/// A state of the main thread, and the valid pointers posted with it.
struct Held<S> {
    state: Option<S>,
    pointers: usize,
}

/// The main thread's view of the set.
///
/// States never move: `post` swaps indices into a pool with one state more than there are slots,
/// the one at hand. (Copying a cursor through `post` cost more than the step itself: a 16-byte load
/// of what was just written in pieces waits for the store.)
pub struct WorkAheadSet<'s, A, S> {
    slots: &'s Slots<A>,
    pool: Box<[Held<S>]>,
    /// Which state each slot holds.
    held: Box<[u32]>,
    hand: usize,
    next: usize,
    /// `N`: valid pointers in the set.
    valid: usize,
    /// `t`: no new work is admitted at or above it.
    threshold: usize,
    posted: Box<[usize]>,
}

impl<'s, A: References, S> WorkAheadSet<'s, A, S> {
    /// An empty set over `slots` that admits new work below `threshold` valid pointers.
    #[must_use]
    pub fn new(slots: &'s Slots<A>, threshold: usize, deduplicate: Deduplicate) -> Self {
        let posted = match deduplicate {
            Deduplicate::Nothing => 0,
            Deduplicate::InPost => POSTED_LINES,
        };
        let entries = slots.entries();
        Self {
            slots,
            pool: (0..=entries).map(|_| Held { state: None, pointers: 0 }).collect(),
            held: (0..entries as u32).collect(),
            hand: entries,
            next: 0,
            valid: 0,
            threshold,
            posted: vec![0; posted].into(),
        }
    }

    /// Valid pointers in the set: the paper's `N`.
    #[must_use]
    pub fn valid(&self) -> usize {
        self.valid
    }

    /// Whether the set takes a new row: `N < t`.
    #[inline(always)]
    #[must_use]
    pub fn admits(&self) -> bool {
        self.valid < self.threshold
    }

    /// The state at hand: what the last `post` gave back, or what the next will put in.
    #[inline(always)]
    pub fn hand(&mut self) -> &mut Option<S> {
        &mut self.pool[self.hand].state
    }

    /// Posts the state at hand with what it asks for to the next slot, round-robin, and takes the
    /// slot's previous state to hand. `None` posts dummies and clears the state.
    #[inline(always)]
    pub fn post<B: References>(&mut self, asks: Option<&B>) {
        let entry = self.next;
        self.next = if entry + 1 == self.held.len() { 0 } else { entry + 1 };
        let posting = &mut self.pool[self.hand];
        posting.pointers = asks.map_or(0, B::count);
        if asks.is_none() {
            posting.state = None;
        }
        self.valid += posting.pointers;
        if self.posted.is_empty() {
            self.slots.put(entry, asks, |_| true);
        } else {
            let posted = &mut self.posted;
            self.slots.put(entry, asks, |place| !repeated(posted, place));
        }
        let taken = std::mem::replace(&mut self.held[entry], self.hand as u32);
        self.hand = taken as usize;
        self.valid -= self.pool[self.hand].pointers;
    }
}

/// Whether a line was posted a moment ago; remembers it.
fn repeated(posted: &mut [usize], place: Place) -> bool {
    let line = place.address().addr() / LINE_BYTES;
    let seen = &mut posted[line % POSTED_LINES];
    std::mem::replace(seen, line) == line
}

/// What the set holds for a row.
#[derive(Clone, Copy)]
pub enum Stage<C> {
    /// The row's input was posted; the walk has not started. A stage of its own where the input is
    /// behind a row id, since a reference that depends on another begins a new stage (§5).
    Input(Row),
    /// The walk waits for what it asked for.
    Walk(C),
}

/// Runs every row of a walk through the set.
///
/// One turn: step what is at hand, post it with what it asks for, which brings the next slot's
/// state to hand. A finished row is replaced by a new one if the set admits it; otherwise the slot
/// is filled with dummies. When the rows run out, dummies drain the set.
#[inline(always)]
pub fn drive<W: Walk, S: Sink<W::Hit>>(
    walk: &mut W,
    rows: &mut Rows,
    set: &mut WorkAheadSet<'_, W::Asks, Stage<W::Cursor>>,
    sink: &mut S,
) {
    let memory = &mut Direct;
    let mut in_flight = 0usize;
    loop {
        match set.hand() {
            Some(Stage::Walk(cursor)) => {
                if let Some(asks) = walk.step(cursor, memory, sink) {
                    set.post(Some(&asks));
                    continue;
                }
                in_flight -= 1;
            }
            &mut Some(Stage::Input(row)) => {
                let (cursor, asks) = walk.start(row, memory);
                *set.hand() = Some(Stage::Walk(cursor));
                set.post(Some(&asks));
                continue;
            }
            None => {}
        }
        let admitted = if set.admits() { rows.next() } else { None };
        if let Some(row) = admitted {
            in_flight += 1;
            if let Some(place) = walk.input(row) {
                *set.hand() = Some(Stage::Input(row));
                set.post(Some(&place));
            } else {
                let (cursor, asks) = walk.start(row, memory);
                *set.hand() = Some(Stage::Walk(cursor));
                set.post(Some(&asks));
            }
        } else if in_flight == 0 {
            return;
        } else {
            set.post::<W::Asks>(None);
        }
    }
}
