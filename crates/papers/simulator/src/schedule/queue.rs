//! The queue of a CPU: runnable threads that don't run, in ascending vruntime.

use std::collections::BTreeSet;

use crate::ticks::Ticks;

/// Where a thread stands: of equal vruntimes, the first that came is first.
pub(super) type Key = (Ticks, u64, usize);

/// A queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    order: BTreeSet<Key>,
    /// Weights of all in it.
    pub(super) load: u64,
    /// `min_vruntime`: never less than before. Who comes is placed by it.
    pub(super) least: Ticks,
    arrivals: u64,
}

impl Queue {
    /// Puts a thread in; returns its key.
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

    /// Time went on for the thread that runs.
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
