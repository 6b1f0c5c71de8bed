//! An allocator that counts, so that law 4 can be seen to be kept.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// Allocations of the calling thread so far.
pub(crate) fn allocations() -> u64 {
    MADE.get()
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all requests go to the system's allocator as they came; the count allocates nothing and
// has no destructor, so it can be reached at any time of a thread's life.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.set(MADE.get() + 1);
        // SAFETY: the caller's promises, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        MADE.set(MADE.get() + 1);
        // SAFETY: the caller's promises, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        MADE.set(MADE.get() + 1);
        // SAFETY: the caller's promises, passed on.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises, passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[test]
fn allocations_of_this_thread_are_counted() {
    let before = allocations();
    let made = std::hint::black_box(vec![1_u8; 100]);
    assert_eq!(allocations(), before + 1);
    drop(made);
    std::thread::spawn(|| drop(vec![2_u8; 100])).join().unwrap();
    let before = allocations();
    assert_eq!(allocations(), before);
}
