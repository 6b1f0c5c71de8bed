//! The shared half of the set: pointers, and the flag that ends the helper.

#[cfg(loom)]
use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::place::{Place, References};

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

/// The shared array: `entries` slots of `most` pointers each.
///
/// Everything in it is atomic and written by the main thread only.
pub struct Slots {
    pointers: Box<[AtomicUsize]>,
    /// One a slot under [`Guard::Mutex`], none otherwise.
    locks: Box<[Mutex<()>]>,
    entries: usize,
    most: usize,
    finished: AtomicBool,
}

impl Slots {
    /// The paper's geometry for a walk that asks for `A` a step: a set of `size` pointers has
    /// `size / m` entries of `M` pointers each (§4.1).
    ///
    /// # Panics
    /// If the set would have no entry or more than [`ENTRIES_MAX`].
    #[must_use]
    pub fn for_asks<A: References>(size: usize, guard: Guard) -> Self {
        Self::new(size / A::LEAST, A::MOST, guard)
    }

    /// `entries` slots of `most` pointers each, all of them the dummy's.
    ///
    /// # Panics
    /// If there would be no entry, no pointer in one, or more than [`ENTRIES_MAX`] entries.
    #[must_use]
    pub fn new(entries: usize, most: usize, guard: Guard) -> Self {
        assert!((1..=ENTRIES_MAX).contains(&entries), "{entries} entries: 1 to {ENTRIES_MAX}");
        assert!(most >= 1);
        let locks = match guard {
            Guard::None => 0,
            Guard::Mutex => entries,
        };
        Self {
            pointers: (0..entries * most).map(|_| AtomicUsize::new(Self::dummy())).collect(),
            locks: (0..locks).map(|_| Mutex::new(())).collect(),
            entries,
            most,
            finished: AtomicBool::new(false),
        }
    }

    /// Address of the dummy line, which pads entries and is never touched by the main thread.
    #[must_use]
    pub fn dummy() -> usize {
        (&raw const DUMMY.0).addr()
    }

    /// Number of slots.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Pointers a slot holds: the paper's `M`.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Main thread: puts the places of `asks` into a slot, padded with the dummy.
    #[inline(always)]
    pub(super) fn put<A: References>(
        &self,
        entry: usize,
        asks: Option<&A>,
        mut keep: impl FnMut(Place) -> bool,
    ) {
        self.with_lock(entry, || {
            let slot = &self.pointers[entry * self.most..(entry + 1) * self.most];
            let mut used = 0;
            if let Some(asks) = asks {
                asks.each(|place| {
                    let address = if keep(place) { place.address().addr() } else { Self::dummy() };
                    slot[used].store(address, Ordering::Relaxed);
                    used += 1;
                });
            }
            for pointer in &slot[used..] {
                pointer.store(Self::dummy(), Ordering::Relaxed);
            }
        });
    }

    /// Helper: the `k`-th pointer of a slot.
    #[inline(always)]
    pub(super) fn pointer(&self, entry: usize, k: usize) -> usize {
        self.pointers[entry * self.most + k].load(Ordering::Relaxed)
    }

    /// Runs `access` under the slot's lock, if it has one. A poisoned lock is still a lock: a dead
    /// helper must not stop the main thread.
    #[inline(always)]
    pub(super) fn with_lock<R>(&self, entry: usize, access: impl FnOnce() -> R) -> R {
        if self.locks.is_empty() {
            access()
        } else {
            let _held = self.locks[entry].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            access()
        }
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
