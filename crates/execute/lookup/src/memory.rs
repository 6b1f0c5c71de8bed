//! Zeroed memory that begins with a cache line, on huge pages if they are wished for.
//!
//! The allocator gives what it has zeroed, which for large tables are pages that nobody has touched
//! yet: the wish for huge pages must come before that. It goes to the system by its own call, so
//! that no crate is needed for one line.

use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::ptr::NonNull;

use workahead_walks::place::LINE_BYTES;

/// Which pages an index lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pages {
    /// The allocator's default.
    #[default]
    Usual,
    /// Huge pages (2 MiB), where an index is at least that large, the system is Linux and gives
    /// them on request (`madvise`), and the feature `std` is on. A wish: it may not be met.
    Huge,
}

/// Size and alignment of a huge page.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed bytes of its own.
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    /// The block from the allocator: `start` lies inside.
    allocated: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// `bytes` bytes from a multiple of `align` on.
    ///
    /// # Panics
    /// If they are more than an address space has.
    pub(crate) fn zeroed(bytes: usize, align: usize, pages: Pages) -> Self {
        let is_huge = pages == Pages::Huge && bytes >= HUGE_PAGE_BYTES;
        let align = align.max(if is_huge { HUGE_PAGE_BYTES } else { LINE_BYTES });
        // Aligned by hand: given an alignment, the system's allocator clears memory itself, and
        // touches all of it.
        let layout = bytes.checked_add(align).and_then(|all| Layout::from_size_align(all, 16).ok());
        let layout = layout.expect("capacity overflow");
        // SAFETY: the size is not zero, since `align` is not.
        let Some(allocated) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let skipped = allocated.as_ptr().align_offset(align);
        assert!(skipped <= align, "an address can always be aligned");
        // SAFETY: `skipped <= align`, and `bytes + align` were allocated.
        let start = unsafe { allocated.add(skipped) };
        if is_huge {
            advise_huge(start, bytes);
        }
        Self { start, bytes, allocated, layout }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Drops the entries of `owner` by `drop_left`, which drops one after the other and counts each as
/// gone before. If one panics, the others are dropped all the same, as those of a `Vec` are.
pub(crate) fn drop_entries<T>(owner: &mut T, drop_left: fn(&mut T)) {
    struct Remainder<'o, T>(&'o mut T, fn(&mut T));
    impl<T> Drop for Remainder<'_, T> {
        fn drop(&mut self) {
            (self.1)(self.0);
        }
    }
    let left = Remainder(owner, drop_left);
    drop_left(left.0);
    core::mem::forget(left);
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with this layout, and freed only here.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) };
    }
}

#[cfg(all(feature = "std", target_os = "linux", not(miri)))]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    use core::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    }
    const MADV_HUGEPAGE: c_int = 14;
    // SAFETY: the range is allocated and whole pages of it are ours; the advice changes no
    // contents. That it may be refused is part of the promise, so its result says nothing.
    let _ =
        unsafe { madvise(start.as_ptr().cast(), bytes & !(HUGE_PAGE_BYTES - 1), MADV_HUGEPAGE) };
}

#[cfg(not(all(feature = "std", target_os = "linux", not(miri))))]
fn advise_huge(_: NonNull<u8>, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_with_a_line_or_a_huge_page() {
        for (bytes, pages, align) in [
            (64, Pages::Usual, 64),
            (1000, Pages::Huge, 64),
            (5 << 20, Pages::Huge, HUGE_PAGE_BYTES),
        ] {
            let memory = Memory::zeroed(bytes, 8, pages);
            assert_eq!(memory.start().as_ptr().addr() % align, 0);
            assert_eq!(memory.bytes(), bytes);
        }
    }
}
