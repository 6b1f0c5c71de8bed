//! The memory program: all threads pass over blocks until the passes are done.

use std::cell::Cell;
use std::rc::Rc;

use crate::op::{Call, Dependence, Op, Script};
use crate::ticks::Ticks;

/// Micro-operations of an element: its access, the addition, and the loop's two.
pub(super) const ELEMENT_UOPS: u32 = 4;

/// Lines over which elements are grouped: of 64 bytes, or a shorter line's own accesses.
pub(super) const LINE: u64 = 64;

/// Sharing of blocks (S3.23).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One block for all threads.
    Global,
    /// One block per thread.
    Local,
}

/// A memory program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Address of its first block.
    pub base: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of an element: 4 in sysbench 0.4, 8 in 1.0.
    pub element_bytes: u32,
    /// Sharing of blocks.
    pub scope: Scope,
    /// Whether elements are written, or else read.
    pub writes: bool,
    /// System call after a pass: the paper's yields.
    pub then: Option<Call>,
}

/// Passes left, of one program or of several.
pub type Passes = Rc<Cell<u64>>;

/// A thread of a program.
struct Thread {
    program: Memory,
    left: Passes,
    /// The rest of its current pass.
    next: u64,
    end: u64,
    begin: u64,
    /// The access after its computation.
    access: Option<Op>,
    /// Whether the system call after a pass is due.
    asks: bool,
}

impl Memory {
    /// Its threads, which share the passes left.
    pub fn threads(self, number: usize, left: &Passes) -> impl Iterator<Item = Box<dyn Script>> {
        let left = Rc::clone(left);
        (0..number).map(move |thread| {
            let begin = match self.scope {
                Scope::Global => self.base,
                Scope::Local => self.base + thread as u64 * self.block_bytes,
            };
            let left = Rc::clone(&left);
            let (next, end, access, asks) = (0, 0, None, false);
            let thread = Thread { program: self, left, next, end, begin, access, asks };
            Box::new(thread) as Box<dyn Script>
        })
    }

    /// Bytes that `threads` threads touch (S3.23).
    #[must_use]
    pub fn working_set_bytes(&self, threads: usize) -> u64 {
        match self.scope {
            Scope::Global => self.block_bytes,
            Scope::Local => self.block_bytes * threads as u64,
        }
    }
}

impl Script for Thread {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        if let Some(access) = self.access.take() {
            return Some(access);
        }
        if self.next >= self.end {
            if let Some(call) = self.program.then.filter(|_| std::mem::take(&mut self.asks)) {
                return Some(Op::System(call));
            }
            let left = self.left.get().checked_sub(1)?;
            self.left.set(left);
            (self.next, self.end) = (self.begin, self.begin + self.program.block_bytes);
            self.asks = true;
        }
        let address = self.next;
        let until = (address / LINE * LINE + LINE).min(self.end);
        let bytes = until - address;
        self.next = until;
        let bytes_of_line = bytes as u16;
        self.access = Some(match self.program.writes {
            true => Op::Store { address, bytes: bytes_of_line },
            false => Op::Load { address, bytes: bytes_of_line, after: Dependence::None },
        });
        let elements = (bytes as u32).div_ceil(self.program.element_bytes.max(1));
        Some(Op::Compute { uops: elements * ELEMENT_UOPS - 1 })
    }
}
