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

/// What a slot holds for the main thread: a row to resume, and how many valid pointers it posted.
#[derive(Clone, Copy)]
struct Held<C> {
    cursor: C,
    pointers: usize,
}

/// The main thread's view of the set.
pub struct WorkAheadSet<'s, C> {
    slots: &'s Slots,
    states: Box<[Option<Held<C>>]>,
    next: usize,
    /// `N`: valid pointers in the set.
    valid: usize,
    /// `t`: no new work is admitted at or above it.
    threshold: usize,
    posted: Box<[usize]>,
}

impl<'s, C: Copy> WorkAheadSet<'s, C> {
    /// An empty set over `slots` that admits new work below `threshold` valid pointers.
    #[must_use]
    pub fn new(slots: &'s Slots, threshold: usize, deduplicate: Deduplicate) -> Self {
        let posted = match deduplicate {
            Deduplicate::Nothing => 0,
            Deduplicate::InPost => POSTED_LINES,
        };
        Self {
            slots,
            states: vec![None; slots.entries()].into(),
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

    /// Writes `work` (or, for `None`, dummies and no state) to the next slot of the array and
    /// returns the state the slot held.
    #[inline(always)]
    pub fn post<A: References>(&mut self, work: Option<(A, C)>) -> Option<C> {
        let entry = self.next;
        self.next = if entry + 1 == self.slots.entries() { 0 } else { entry + 1 };
        let (asks, held) = match work {
            Some((asks, cursor)) => (Some(asks), Some(Held { cursor, pointers: asks.count() })),
            None => (None, None),
        };
        self.valid += held.map_or(0, |held| held.pointers);
        let posted = &mut self.posted;
        if posted.is_empty() {
            self.slots.put(entry, asks.as_ref(), |_| true);
        } else {
            self.slots.put(entry, asks.as_ref(), |place| !repeated(posted, place));
        }
        let previous = std::mem::replace(&mut self.states[entry], held);
        previous.map(|held| {
            self.valid -= held.pointers;
            held.cursor
        })
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
/// One turn: post what is at hand, take back what the slot held, step it. A finished row is
/// replaced by a new one if the set admits it; otherwise the slot is filled with dummies. When the
/// rows run out, dummies drain the set.
#[inline(always)]
pub fn drive<W: Walk, S: Sink<W::Hit>>(
    walk: &mut W,
    rows: &mut Rows,
    set: &mut WorkAheadSet<'_, Stage<W::Cursor>>,
    sink: &mut S,
) {
    let memory = &mut Direct;
    let mut in_flight = 0usize;
    let mut at_hand: Option<(W::Asks, W::Cursor)> = None;
    loop {
        let previous = if let Some((asks, cursor)) = at_hand.take() {
            set.post(Some((asks, Stage::Walk(cursor))))
        } else {
            match if set.admits() { rows.next() } else { None } {
                Some(row) => {
                    in_flight += 1;
                    if let Some(place) = walk.input(row) {
                        set.post(Some((place, Stage::Input(row))))
                    } else {
                        let (cursor, asks) = walk.start(row, memory);
                        set.post(Some((asks, Stage::Walk(cursor))))
                    }
                }
                None if in_flight == 0 => return,
                None => set.post::<W::Asks>(None),
            }
        };
        match previous {
            Some(Stage::Walk(mut cursor)) => match walk.step(&mut cursor, memory, sink) {
                Some(asks) => at_hand = Some((asks, cursor)),
                None => in_flight -= 1,
            },
            Some(Stage::Input(row)) => {
                let (cursor, asks) = walk.start(row, memory);
                at_hand = Some((asks, cursor));
            }
            None => {}
        }
    }
}
