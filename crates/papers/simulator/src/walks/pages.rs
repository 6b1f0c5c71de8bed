//! Addresses of this process mapped to the model.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::line_history::fibonacci_hash;
use crate::op::Op;

/// Granularity of the mapping: the alignment of buffers.
const PAGE_SHIFT: u32 = 12;

/// Size of the cache of look-ups.
const RECENT: usize = 4096;

/// Frames by page, in the order in which they are first touched: as an operating system assigns
/// them, and the same wherever this process was loaded.
#[derive(Debug)]
pub(super) struct Pages {
    frames: HashMap<u64, u64, BuildHasherDefault<FibonacciHasher>>,
    recent: Box<[(u64, u64); RECENT]>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { frames: HashMap::default(), recent: Box::new([(u64::MAX, 0); RECENT]) }
    }
}

impl Pages {
    /// The address in the model.
    #[inline(always)]
    pub(super) fn address(&mut self, address: u64) -> u64 {
        let page = address >> PAGE_SHIFT;
        let (held, frame) = self.recent[page as usize % RECENT];
        let frame = if held == page { frame } else { self.look_up(page) };
        frame << PAGE_SHIFT | address & ((1 << PAGE_SHIFT) - 1)
    }

    #[inline(never)]
    fn look_up(&mut self, page: u64) -> u64 {
        // Address 0 is never used.
        let next = self.frames.len() as u64 + 1;
        let frame = *self.frames.entry(page).or_insert(next);
        self.recent[page as usize % RECENT] = (page, frame);
        frame
    }

    /// An operation with its address in the model.
    #[inline(always)]
    pub(super) fn placed(&mut self, mut op: Op) -> Op {
        match &mut op {
            Op::Load { address, .. }
            | Op::Store { address, .. }
            | Op::Announce { address, .. }
            | Op::Fetch { address, .. } => *address = self.address(*address),
            Op::Compute { .. }
            | Op::Branch { .. }
            | Op::Pause { .. }
            | Op::Idle { .. }
            | Op::System(_) => {}
        }
        op
    }
}

/// A hash of page numbers: they need no better one, and are not chosen to collide.
#[derive(Debug, Default)]
struct FibonacciHasher(u64);

impl Hasher for FibonacciHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = fibonacci_hash(self.0 ^ key).rotate_left(32);
    }
}
