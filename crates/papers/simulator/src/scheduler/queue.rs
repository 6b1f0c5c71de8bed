//! The run queue of a CPU: runnable threads that don't run, by ascending vruntime.

use std::collections::BTreeSet;

use crate::ticks::Ticks;

/// Order in a queue: vruntime, then arrival.
pub(super) type Key = (Ticks, u64, usize);

/// A run queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    order: BTreeSet<Key>,
    /// Total weight of its threads.
    pub(super) load: u64,
    /// `min_vruntime`: never decreases. Arriving threads are placed by it.
    pub(super) least: Ticks,
    arrivals: u64,
}

impl Queue {
    /// Inserts a thread; returns its key.
    pub(super) fn insert(&mut self, task: usize, vruntime: Ticks, weight: u32) -> Key {
        self.arrivals += 1;
        let key = (vruntime, self.arrivals, task);
        self.order.insert(key);
        self.load += u64::from(weight);
        key
    }

    pub(super) fn remove(&mut self, key: &Key, weight: u32) {
        if self.order.remove(key) {
            self.load -= u64::from(weight);
        }
    }

    /// Tasks, the least vruntime first.
    pub(super) fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().map(|key| key.2)
    }

    pub(super) fn head(&self) -> Option<Key> {
        self.order.first().copied()
    }

    pub(super) fn len(&self) -> u64 {
        self.order.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Advances `min_vruntime` for the running thread.
    pub(super) fn advance(&mut self, current: Option<Ticks>) {
        let head = self.head().map(|key| key.0);
        let now = match (current, head) {
            (Some(current), Some(head)) => current.min(head),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        self.least = self.least.max(now);
    }
}
