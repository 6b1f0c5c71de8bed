//! Where the states of a set lie.

use std::marker::PhantomData;

use super::slots::Slots;
use crate::place::References;

/// The places of the states: in the slots, or in an array of the set's own.
pub(super) struct StateRing<'s, S> {
    own: Vec<Option<S>>,
    first: *mut Option<S>,
    /// Bytes from a state to the next.
    stride: usize,
    pub(super) count: usize,
    slots: PhantomData<&'s S>,
}

impl<'s, S> StateRing<'s, S> {
    pub(super) fn of<A: References>(slots: &'s Slots<A>) -> Self {
        let entries = slots.entries();
        let Some((first, words)) = slots.states::<S>() else {
            let mut own: Vec<_> = (0..=entries).map(|_| None).collect();
            let (first, stride, count) = (own.as_mut_ptr(), size_of::<Option<S>>(), own.len());
            return Self { own, first, stride, count, slots: PhantomData };
        };
        let stride = words * size_of::<usize>();
        let ring = Self { own: Vec::new(), first, stride, count: entries, slots: PhantomData };
        for at in 0..ring.count {
            // SAFETY: the words of a slot behind its pointers, which nobody else accesses.
            unsafe { ring.at(at).write(None) };
        }
        ring
    }

    /// Where a state lies.
    #[inline(always)]
    fn at(&self, at: usize) -> *mut Option<S> {
        debug_assert!(at < self.count);
        // SAFETY: `count` states lie there, `stride` bytes from each other.
        unsafe { self.first.byte_add(at * self.stride) }
    }

    /// `count` states from one on.
    #[inline(always)]
    pub(super) fn from(
        &mut self,
        from: usize,
        count: usize,
    ) -> impl Iterator<Item = &mut Option<S>> {
        assert!(from + count <= self.count);
        let (first, stride) = (self.at(from), self.stride);
        // SAFETY: they lie in the ring and are distinct; the set is borrowed for as long as they
        // are, and a helper that has the slots reads the words of pointers only.
        (0..count).map(move |at| unsafe { &mut *first.byte_add(at * stride) })
    }
}

impl<S> Drop for StateRing<'_, S> {
    fn drop(&mut self) {
        if self.own.is_empty() && std::mem::needs_drop::<S>() {
            for at in 0..self.count {
                // SAFETY: it was written when the ring was made, and is not used any more.
                unsafe { self.at(at).drop_in_place() };
            }
        }
    }
}
