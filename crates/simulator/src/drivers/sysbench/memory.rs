//! The memory program: every thread passes over a block, until all of them did so often enough.

use std::cell::Cell;
use std::rc::Rc;

use crate::op::{After, Op, Script};
use crate::ticks::Ticks;

/// Micro-operations of an element: its access, the addition, and the loop's two.
const ELEMENT_UOPS: u32 = 4;

/// Lines as elements are taken together: of 64 bytes, or a shorter line's own accesses.
const LINE: u64 = 64;

/// Whose block a thread passes over (S3.23).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One of all threads.
    Global,
    /// One each.
    Local,
}

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Where its first block begins.
    pub base: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of an element: 4 in sysbench 0.4, 8 in 1.0.
    pub element_bytes: u32,
    /// Whose blocks.
    pub scope: Scope,
    /// Whether elements are written, or read.
    pub writes: bool,
    /// Passes of all threads together.
    pub passes: u64,
}

/// A thread of a program.
struct Thread {
    program: Memory,
    /// Passes that nobody has begun.
    left: Rc<Cell<u64>>,
    /// What it passes over, from where it is to its end.
    next: u64,
    end: u64,
    begin: u64,
    /// The access that follows its computation.
    access: Option<Op>,
}

impl Memory {
    /// Its threads.
    pub fn threads(self, number: usize) -> impl Iterator<Item = Box<dyn Script>> {
        let left = Rc::new(Cell::new(self.passes));
        (0..number).map(move |thread| {
            let begin = match self.scope {
                Scope::Global => self.base,
                Scope::Local => self.base + thread as u64 * self.block_bytes,
            };
            let left = Rc::clone(&left);
            let thread = Thread { program: self, left, next: 0, end: 0, begin, access: None };
            Box::new(thread) as Box<dyn Script>
        })
    }

    /// Bytes that so many threads touch (S3.23).
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
            let left = self.left.get().checked_sub(1)?;
            self.left.set(left);
            (self.next, self.end) = (self.begin, self.begin + self.program.block_bytes);
        }
        let address = self.next;
        let until = (address / LINE * LINE + LINE).min(self.end);
        let bytes = until - address;
        self.next = until;
        let bytes_of_line = bytes as u16;
        self.access = Some(match self.program.writes {
            true => Op::Store { address, bytes: bytes_of_line },
            false => Op::Load { address, bytes: bytes_of_line, after: After::Nothing },
        });
        let elements = (bytes as u32).div_ceil(self.program.element_bytes.max(1));
        Some(Op::Compute { uops: elements * ELEMENT_UOPS - 1 })
    }
}
