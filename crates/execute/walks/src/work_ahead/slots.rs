//! The shared half of the set: pointers, and the flag that ends the helper.

use std::marker::PhantomData;

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::place::{Place, References};

/// Address of the dummy line, which pads entries and is never touched by the main thread.
#[must_use]
pub fn dummy() -> usize {
    (&raw const DUMMY.0).addr()
}

/// Most slots of a set: 8,192 pointers is the end of the paper's sweep, doubled for its outer join.
pub const ENTRIES_MAX: usize = 1 << 15;

/// Whether slots are read and written under a lock: the paper's finding is that the lock costs more
/// than the helper saves (§6), and this is how to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Relaxed atomics: a torn multi-pointer entry only loses a preload.
    None,
    /// A mutex a slot: the one way in which the main thread may have to wait for the helper.
    Mutex,
}

/// Where a set's states lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// Each behind its pointers, in the slot, as the paper has it: "a collection of pairs (p, s)"
    /// (§4).
    Together,
    /// In an array of the main thread's own: fewer lines are touched by both threads.
    Apart,
}

/// A line of its own, so that the dummy shares nothing with what the main thread touches.
#[repr(C, align(128))]
struct DummyLine([u8; 128]);

static DUMMY: DummyLine = DummyLine([0; 128]);

/// Pointers in a line of the array. (Two lines: the second is often fetched with the first.)
const LINE_POINTERS: usize = 128 / size_of::<usize>();

/// Slots of a set of `size` pointers.
fn entries_of<A: References>(size: usize) -> usize {
    let entries = (size / A::LEAST).max(1);
    assert!(entries <= ENTRIES_MAX, "{entries} entries: at most {ENTRIES_MAX}");
    entries
}

const fn words_of<T>() -> usize {
    size_of::<T>().div_ceil(size_of::<usize>())
}

/// The shared array of a walk that asks for `A` a step: slots of `A::MOST` pointers each, and of a
/// state if states lie together with them.
///
/// Pointers are atomic. Everything is written by the main thread only, and states are read by it
/// only.
///
/// It keeps to its own lines: the helper looks at it all the time, and a neighbour that the main
/// thread writes would travel back and forth with every look.
#[repr(align(128))]
pub struct Slots<A> {
    /// The slots from `first` on, and unused pointers before and after.
    pointers: Box<[AtomicUsize]>,
    first: usize,
    entries: usize,
    /// Words from a slot to the next.
    stride: usize,
    /// One a slot under [`Guard::Mutex`], none otherwise.
    locks: Box<[Mutex<()>]>,
    finished: AtomicBool,
    /// Whether a set has the places of the states.
    lent: AtomicBool,
    asks: PhantomData<fn(A)>,
}

impl<A: References> Slots<A> {
    /// The paper's geometry: a set of `size` pointers has `size / m` entries of `M` pointers each
    /// (§4.1), at least one. All of them hold the dummy.
    ///
    /// # Panics
    /// Above [`ENTRIES_MAX`] entries.
    #[must_use]
    pub fn of_size(size: usize, guard: Guard) -> Self {
        Self::with(entries_of::<A>(size), A::MOST, guard)
    }

    /// The same with states of type `S` in the slots: one slot more, for the state at hand, which
    /// has its place there too. States that want more than a pointer's alignment lie apart.
    ///
    /// # Panics
    /// As [`of_size`](Self::of_size).
    #[must_use]
    pub fn of_pairs<S>(size: usize, guard: Guard) -> Self {
        // The model checker's atomics are not words of memory.
        if cfg!(loom) || align_of::<Option<S>>() > align_of::<usize>() {
            return Self::of_size(size, guard);
        }
        Self::with(entries_of::<A>(size) + 1, A::MOST + words_of::<Option<S>>(), guard)
    }

    fn with(entries: usize, stride: usize, guard: Guard) -> Self {
        let locks = match guard {
            Guard::None => 0,
            Guard::Mutex => entries,
        };
        let needed = entries.checked_mul(stride).expect("slots fit memory") + 2 * LINE_POINTERS;
        let pointers: Box<[_]> = (0..needed).map(|_| AtomicUsize::new(dummy())).collect();
        Self {
            first: pointers.as_ptr().align_offset(128).min(LINE_POINTERS),
            pointers,
            entries,
            stride,
            locks: (0..locks).map(|_| Mutex::new(())).collect(),
            finished: AtomicBool::new(false),
            lent: AtomicBool::new(false),
            asks: PhantomData,
        }
    }

    /// Number of slots.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The slots themselves, for a loop to keep at hand.
    #[must_use]
    pub(super) fn shared(&self) -> SharedSlots<'_, A> {
        let pointers = &self.pointers[self.first..][..self.entries * self.stride];
        SharedSlots { pointers, stride: self.stride, locks: &self.locks, asks: PhantomData }
    }

    /// The first slot's state, and the words from one to the next, if states lie in the slots: they
    /// are the caller's from then on.
    ///
    /// # Panics
    /// If they are of another size, or another caller's.
    #[cfg(not(loom))]
    pub(super) fn states<S>(&self) -> Option<(*mut Option<S>, usize)> {
        let words = self.stride - A::MOST;
        if words == 0 {
            return None;
        }
        let fits = align_of::<Option<S>>() <= align_of::<usize>();
        assert!(fits && words == words_of::<Option<S>>(), "slots of another state");
        assert!(!self.lent.swap(true, Ordering::Relaxed), "slots of another set");
        // With the provenance of the whole array: every slot is reached from it.
        let places = self.pointers[self.first + A::MOST..].as_ptr();
        Some((places.cast_mut().cast(), self.stride))
    }

    #[cfg(loom)]
    pub(super) fn states<S>(&self) -> Option<(*mut Option<S>, usize)> {
        None
    }

    /// Main thread: tells the helper to stop.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Whether the main thread has finished.
    #[inline(always)]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // Acquire pairs with `finish`: what the helper loads last was still mapped by its owner.
        self.finished.load(Ordering::Acquire)
    }
}

/// [`Slots`], borrowed: the addresses that would otherwise be read again after every store.
pub(super) struct SharedSlots<'s, A> {
    pointers: &'s [AtomicUsize],
    stride: usize,
    locks: &'s [Mutex<()>],
    asks: PhantomData<fn(A)>,
}

impl<'s, A: References> SharedSlots<'s, A> {
    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.pointers.len() / self.stride
    }

    /// Whether slots have locks.
    pub(super) fn has_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    /// Main thread: `count` slots from `first` on.
    #[inline(always)]
    pub(super) fn slots(
        &self,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = Slot<'s>> + use<'s, A> {
        let words = &self.pointers[first * self.stride..][..count * self.stride];
        words.chunks_exact(self.stride).map(|words| Slot(&words[..A::MOST]))
    }

    /// Helper: the `k`-th pointer of a slot.
    #[inline(always)]
    pub(super) fn pointer(&self, entry: usize, k: usize) -> usize {
        self.pointers[entry * self.stride + k].load(Ordering::Relaxed)
    }

    /// Where a slot lies, to be watched.
    pub(super) fn address(&self, entry: usize) -> *const u8 {
        (&raw const self.pointers[entry * self.stride]).cast()
    }

    /// Holds the slot's lock, if it has one. A poisoned lock is still a lock: a dead helper must
    /// not stop the main thread.
    #[inline(always)]
    pub(super) fn hold(&self, entry: usize) -> Option<MutexGuard<'s, ()>> {
        if self.locks.is_empty() {
            return None;
        }
        Some(self.locks[entry].lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// One slot, to be written by the main thread.
#[derive(Clone, Copy)]
pub(super) struct Slot<'s>(&'s [AtomicUsize]);

impl Slot<'_> {
    /// Puts places into the slot, the dummy for those not to be kept, and pads with it.
    #[inline(always)]
    pub(super) fn store<B: References>(self, asks: Option<B>, mut keep: impl FnMut(Place) -> bool) {
        let mut pointers = self.0.iter();
        if let Some(asks) = asks {
            asks.each(|place| {
                let address = if keep(place) { place.address().addr() } else { dummy() };
                // An input has one place, a step at most as many as a slot has pointers.
                if let Some(pointer) = pointers.next() {
                    pointer.store(address, Ordering::Relaxed);
                }
            });
        }
        for pointer in pointers {
            pointer.store(dummy(), Ordering::Relaxed);
        }
    }
}
