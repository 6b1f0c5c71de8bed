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
    /// A mutex a slot.
    Mutex,
}

/// A line of its own, so that the dummy shares nothing with what the main thread touches.
#[repr(C, align(128))]
struct DummyLine([u8; 128]);

static DUMMY: DummyLine = DummyLine([0; 128]);

/// The shared array of a walk that asks for `A` a step: slots of `A::MOST` pointers each.
///
/// Everything in it is atomic and written by the main thread only.
pub struct Slots<A> {
    pointers: Box<[AtomicUsize]>,
    /// One a slot under [`Guard::Mutex`], none otherwise.
    locks: Box<[Mutex<()>]>,
    finished: AtomicBool,
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
        let entries = (size / A::LEAST).max(1);
        assert!(entries <= ENTRIES_MAX, "{entries} entries: at most {ENTRIES_MAX}");
        let locks = match guard {
            Guard::None => 0,
            Guard::Mutex => entries,
        };
        Self {
            pointers: (0..entries * A::MOST).map(|_| AtomicUsize::new(dummy())).collect(),
            locks: (0..locks).map(|_| Mutex::new(())).collect(),
            finished: AtomicBool::new(false),
            asks: PhantomData,
        }
    }

    /// Number of slots.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.pointers.len() / A::MOST
    }

    /// Main thread: puts places into a slot, padded with the dummy. `B` is `A`, or the single place
    /// of an input.
    #[inline(always)]
    pub(super) fn put<B: References>(
        &self,
        entry: usize,
        asks: Option<&B>,
        mut keep: impl FnMut(Place) -> bool,
    ) {
        const { assert!(B::MOST <= A::MOST) };
        let _held = self.hold(entry);
        let slot = &self.pointers[entry * A::MOST..][..A::MOST];
        let mut used = 0;
        if let Some(asks) = asks {
            asks.each(|place| {
                let address = if keep(place) { place.address().addr() } else { dummy() };
                slot[used].store(address, Ordering::Relaxed);
                used += 1;
            });
        }
        for pointer in &slot[used..] {
            pointer.store(dummy(), Ordering::Relaxed);
        }
    }

    /// Helper: the `k`-th pointer of a slot.
    #[inline(always)]
    pub(super) fn pointer(&self, entry: usize, k: usize) -> usize {
        self.pointers[entry * A::MOST + k].load(Ordering::Relaxed)
    }

    /// Holds the slot's lock, if it has one. A poisoned lock is still a lock: a dead helper must
    /// not stop the main thread.
    #[inline(always)]
    pub(super) fn hold(&self, entry: usize) -> Option<MutexGuard<'_, ()>> {
        if self.locks.is_empty() {
            return None;
        }
        Some(self.locks[entry].lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
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
