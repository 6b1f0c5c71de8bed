//! One pass over a block.
//!
//! Loads and stores are relaxed atomics: on every machine that we run on these are the plain
//! instructions, one for each element, which the compiler neither merges nor drops. What was read
//! is combined and handed out, at one more instruction an element than sysbench has.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::Zeroable;

use super::Operation;
use crate::random::Random;

/// An element of a block.
pub(super) trait Element: Zeroable + Send + Sync {
    /// Reads it.
    fn get(&self) -> u64;
    /// Writes it.
    fn put(&self, value: u64);
    /// The value that a pass writes at a place.
    fn written(at: usize, len: usize) -> u64;
    /// A pass at random.
    fn random(block: &[Self], operation: Operation, places: &mut Random) -> u64
    where
        Self: Sized;
}

/// 1.0: writes what is left to the end; every element at random has a place of its own.
impl Element for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    #[inline(always)]
    fn put(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    #[inline(always)]
    fn written(at: usize, len: usize) -> u64 {
        (len - at) as u64
    }
    fn random(block: &[Self], operation: Operation, places: &mut Random) -> u64 {
        (0..block.len()).fold(0, |sum, at| {
            let place = (places.unit() * block.len() as f64) as usize;
            sum ^ touch(&block[place], operation, at as u64)
        })
    }
}

/// 0.4: writes the same everywhere (zero; here one, so that it can be seen); at random one place a
/// pass, as often as the block has bytes.
impl Element for AtomicU32 {
    #[inline(always)]
    fn get(&self) -> u64 {
        u64::from(self.load(Ordering::Relaxed))
    }
    #[inline(always)]
    fn put(&self, value: u64) {
        self.store(value as u32, Ordering::Relaxed);
    }
    #[inline(always)]
    fn written(_at: usize, _len: usize) -> u64 {
        1
    }
    fn random(block: &[Self], operation: Operation, places: &mut Random) -> u64 {
        let place = &block[places.within(0, block.len() as i64 - 1) as usize];
        let times = size_of_val(block);
        (0..times).fold(0, |sum, _| sum ^ touch(place, operation, 1))
    }
}

#[inline(always)]
fn touch<E: Element>(element: &E, operation: Operation, value: u64) -> u64 {
    match operation {
        Operation::Read => element.get(),
        Operation::Write => {
            element.put(value);
            0
        }
        Operation::None => black_box(0),
    }
}

/// Front to back. A function of its own for each operation, so that the loop has no choice in it.
pub(super) fn sequential<E: Element>(block: &[E], operation: Operation) -> u64 {
    match operation {
        Operation::Read => black_box(block.iter().fold(0, |sum, element| sum ^ element.get())),
        Operation::Write => {
            let len = block.len();
            for (at, element) in block.iter().enumerate() {
                element.put(E::written(at, len));
            }
            0
        }
        Operation::None => {
            for at in 0..block.len() {
                black_box(at);
            }
            0
        }
    }
}

/// At random.
pub(super) fn random<E: Element>(block: &[E], operation: Operation, places: &mut Random) -> u64 {
    black_box(E::random(block, operation, places))
}
