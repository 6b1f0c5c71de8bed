//! A work-ahead set in hardware (L4.1): posts go to a queue beside the core, which loads them as
//! soon as a fill buffer is free.
//!
//! ```text
//!   main ── post, one micro-operation ──► │p│p│p│p│ ── loads, in order ──► the cache they share
//! ```
//!
//! It runs as the only thread of a core that computes nothing: it takes no slot of the pipeline and
//! reads no line that the main thread writes, so it clears nothing.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::SharedState;
use crate::op::{Dependence, Op, Script};
use crate::ticks::Ticks;

/// Cycles between two polls of an empty queue.
const LOOK: u32 = 10;

/// PostTarget not loaded yet.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<u64>,
    most: usize,
}

impl Queue {
    pub(super) fn of(most: usize) -> Self {
        Self { waiting: VecDeque::new(), most: most.max(1) }
    }

    /// Adds a post unless it is padding; a full queue drops its oldest.
    pub(super) fn post(&mut self, pointer: u64, dummy: u64) {
        if pointer == dummy {
            return;
        }
        if self.waiting.len() == self.most {
            self.waiting.pop_front();
        }
        self.waiting.push_back(pointer);
    }
}

/// Loads the posts of the queue.
pub(super) struct HardwareScript {
    queue: Rc<RefCell<Queue>>,
    shared: SharedState,
}

impl HardwareScript {
    pub(super) fn new(queue: Rc<RefCell<Queue>>, shared: SharedState) -> Self {
        Self { queue, shared }
    }
}

impl Script for HardwareScript {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        let Some(address) = self.queue.borrow_mut().waiting.pop_front() else {
            return Some(Op::Idle { cycles: LOOK });
        };
        self.shared.helper_counts.borrow_mut().entries += 1;
        let load = Op::Load { address, bytes: 1, after: Dependence::None };
        Some(self.shared.pages.borrow_mut().placed(load))
    }
}
