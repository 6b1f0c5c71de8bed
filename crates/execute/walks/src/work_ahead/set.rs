//! The main thread's half of the set: `post`, admission, and the drive that uses them.

use super::slots::{SharedSlots, Slot, Slots};
use super::states::StateRing;
use crate::memory::Memory;
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
pub const POSTED_LINES: usize = 256;

/// The main thread's view of the set.
///
/// States never move (copying one through a post costs more than the step itself: a wide load of
/// what was just written in pieces waits for the store). With `E` slots, what is posted at turn `t`
/// comes back at turn `t + E` and is posted again at turn `t + E + 1`. So a ring of `E + 1` states
/// that takes one step a turn, beside a ring of `E` slots that does the same, gives every state a
/// place of its own for life:
///
/// ```text
/// slots    0  1  2  3  0  1  2  3  0  1  …     a turn posts the state at hand here
/// states   0  1  2  3  4  0  1  2  3  4  …     … and the next state is what the slot held
/// ```
///
/// Where states lie together with their pointers both are rings of `E + 1`: the pointers of the
/// state at hand stay where they are until the next post, and the helper may load them once more.
pub struct WorkAheadSet<'s, A, S> {
    /// The content of each slot, and the state at hand.
    states: StateRing<'s, S>,
    /// Valid pointers posted with each state, where that is not one for all.
    pointers: Box<[u8]>,
    hand: usize,
    next: usize,
    counts: Counts,
    posting: Posting<'s, A>,
}

/// Valid pointers, and how many there may be.
struct Counts {
    /// Those of all states: the paper's `N`, and those that the state at hand had.
    held: usize,
    /// `t`: no new work is admitted at or above it.
    threshold: usize,
}

impl<'s, A: References, S> WorkAheadSet<'s, A, S> {
    /// An empty set over `slots` that admits new work below `threshold` valid pointers.
    ///
    /// # Panics
    /// If the slots have places for states, and these are not of type `S` or another set's.
    #[must_use]
    pub fn new(slots: &'s Slots<A>, threshold: usize, deduplicate: Deduplicate) -> Self {
        const { assert!(A::MOST <= u8::MAX as usize) };
        let states = StateRing::of(slots);
        Self {
            pointers: vec![0; if Counts::one_each::<A>() { 0 } else { states.count }].into(),
            states,
            hand: 0,
            next: 0,
            counts: Counts { held: 0, threshold },
            posting: Posting::new(slots.shared(), deduplicate),
        }
    }

    /// Takes turns until one ends without a post. Each has at hand what the last one's post took
    /// from its slot: the paper's `post(p, s)` is the end of one turn and the start of the next.
    #[inline(always)]
    pub fn take_turns(&mut self, mut turn: impl FnMut(Turn<'_, '_, A, S>) -> TurnEnd) {
        let (slots, states) = (self.posting.shared.len(), self.states.count);
        loop {
            // As many turns as neither ring begins again in: the loop has no wrap and no bounds.
            let run = (slots - self.next).min(states - self.hand);
            let hands = self.states.from(self.hand, run);
            let targets = self.posting.shared.slots(self.next, run);
            for (at, (state, slot)) in hands.zip(targets).enumerate() {
                let mut one = 1;
                let pointers = match Counts::one_each::<A>() {
                    true => &mut one,
                    false => &mut self.pointers[self.hand + at],
                };
                let (counts, posting) = (&mut self.counts, &mut self.posting);
                let entry = self.next + at;
                if turn(Turn { state, pointers, slot, entry, counts, posting }) == TurnEnd::Nothing
                {
                    self.next += at;
                    self.hand += at;
                    return;
                }
            }
            self.next = if self.next + run == slots { 0 } else { self.next + run };
            self.hand = if self.hand + run == states { 0 } else { self.hand + run };
        }
    }
}

impl Counts {
    /// Whether every state has one pointer, so that none need be counted.
    const fn one_each<A: References>() -> bool {
        A::MOST == 1
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// It posted to its slot.
    One,
    /// It did not: there are no more turns.
    Nothing,
}

/// One turn of the main thread: the state at hand, and the slot to post it to.
pub struct Turn<'t, 's, A, S> {
    state: &'t mut Option<S>,
    pointers: &'t mut u8,
    slot: Slot<'t>,
    entry: usize,
    counts: &'t mut Counts,
    posting: &'t mut Posting<'s, A>,
}

impl<A: References, S> Turn<'_, '_, A, S> {
    /// The state at hand: what the last turn took from its slot.
    #[inline(always)]
    pub fn hand(&mut self) -> Option<&mut S> {
        self.state.as_mut()
    }

    /// Forgets the state at hand: its row is finished.
    #[inline(always)]
    pub fn finish(&mut self) {
        if self.state.take().is_some() {
            self.counts.held -= usize::from(*self.pointers);
        }
    }

    /// Whether the set takes a new row, `N < t`, now that there is none at hand.
    #[inline(always)]
    #[must_use]
    pub fn admits(&self) -> bool {
        self.counts.held < self.counts.threshold
    }

    /// Valid pointers in the set, the paper's `N`, now that there is no state at hand.
    #[must_use]
    pub fn valid(&self) -> usize {
        self.counts.held
    }

    /// Ends the turn: posts a new state, there being none at hand, with what it asks for.
    #[inline(always)]
    pub fn post<B: References>(self, state: S, asks: B) -> TurnEnd {
        debug_assert!(self.state.is_none(), "a state is at hand");
        *self.state = Some(state);
        self.counts.held += asks.count();
        if !Counts::one_each::<A>() {
            *self.pointers = asks.count() as u8;
        }
        self.posting.put((self.slot, self.entry), Some(asks))
    }

    /// Ends the turn: posts the state at hand with what it asks for now.
    #[inline(always)]
    pub fn post_again<B: References>(self, asks: B) -> TurnEnd {
        debug_assert!(self.state.is_some(), "no state is at hand");
        if !Counts::one_each::<A>() {
            let before = std::mem::replace(self.pointers, asks.count() as u8);
            self.counts.held = self.counts.held + asks.count() - usize::from(before);
        }
        self.posting.put((self.slot, self.entry), Some(asks))
    }

    /// Ends the turn: posts dummies, there being no state at hand.
    #[inline(always)]
    pub fn post_dummies(self) -> TurnEnd {
        debug_assert!(self.state.is_none(), "a state is at hand");
        self.posting.put((self.slot, self.entry), None::<A>)
    }
}

/// How pointers get into slots.
struct Posting<'s, A> {
    shared: SharedSlots<'s, A>,
    /// Whether there are locks to take or lines to leave out.
    careful: bool,
    /// Lines posted among the last few, under [`Deduplicate::InPost`].
    posted: Box<[usize]>,
}

impl<'s, A: References> Posting<'s, A> {
    fn new(shared: SharedSlots<'s, A>, deduplicate: Deduplicate) -> Self {
        let posted = match deduplicate {
            Deduplicate::Nothing => 0,
            Deduplicate::InPost => POSTED_LINES,
        };
        let careful = posted > 0 || shared.has_locks();
        Self { shared, careful, posted: vec![0; posted].into() }
    }

    #[inline(always)]
    fn put<B: References>(&mut self, (slot, entry): (Slot<'_>, usize), asks: Option<B>) -> TurnEnd {
        if self.careful {
            self.put_with_care((slot, entry), asks);
        } else {
            slot.store(asks, |_| true);
        }
        TurnEnd::One
    }

    /// Under a lock, or only what was not posted a moment ago: out of the way of the usual loop.
    #[cold]
    #[inline(never)]
    fn put_with_care<B: References>(&mut self, (slot, entry): (Slot<'_>, usize), asks: Option<B>) {
        let _held = self.shared.hold(entry);
        let posted = &mut self.posted;
        slot.store(asks, |place| posted.is_empty() || !repeated(posted, place));
    }
}

/// Whether a line was posted a moment ago; remembers it.
fn repeated(posted: &mut [usize], place: Place) -> bool {
    let line = place.address().addr() / LINE_BYTES;
    let seen = &mut posted[line % POSTED_LINES];
    std::mem::replace(seen, line) == line
}

/// The state of a row in the set.
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
pub fn drive<W: Walk, M: Memory, S: Sink<W::Hit>>(
    walk: &mut W,
    rows: &mut Rows,
    // By value: behind a borrow, every turn would store its counters to memory.
    mut set: WorkAheadSet<'_, W::Asks, Stage<W::Cursor>>,
    memory: &mut M,
    sink: &mut S,
) {
    let mut in_flight = 0usize;
    set.take_turns(
        #[inline(always)]
        |mut turn| {
            match turn.hand() {
                Some(Stage::Walk(cursor)) => {
                    if let Some(asks) = walk.step(cursor, memory, sink) {
                        memory.posted::<W::Asks, _>(turn.entry, Some(&asks));
                        return turn.post_again(asks);
                    }
                    turn.finish();
                    in_flight -= 1;
                }
                Some(input @ &mut Stage::Input(row)) => {
                    let (cursor, asks) = walk.start(row, memory);
                    *input = Stage::Walk(cursor);
                    memory.posted::<W::Asks, _>(turn.entry, Some(&asks));
                    return turn.post_again(asks);
                }
                None => {}
            }
            let Some(row) = (if turn.admits() { rows.next() } else { None }) else {
                if in_flight == 0 {
                    return TurnEnd::Nothing;
                }
                memory.posted::<W::Asks, W::Asks>(turn.entry, None);
                return turn.post_dummies();
            };
            in_flight += 1;
            if let Some(place) = walk.input(row) {
                let input = <W::Asks as References>::Input::from(place);
                memory.posted::<W::Asks, _>(turn.entry, Some(&input));
                return turn.post(Stage::Input(row), input);
            }
            let (cursor, asks) = walk.start(row, memory);
            memory.posted::<W::Asks, _>(turn.entry, Some(&asks));
            turn.post(Stage::Walk(cursor), asks)
        },
    );
}
