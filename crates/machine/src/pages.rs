//! Memory on pages of a chosen size.
//!
//! Transparent huge pages must be asked for before the first touch, on a range aligned to 2 MiB;
//! `Vec` does neither, and a table on 4 KiB pages loses 1.5 to 2 times to the same table on huge
//! pages once it is larger than what the TLB covers. Hence one buffer type that does it right, and
//! a control that refuses huge pages, so that the difference can be measured.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::{Pod, Zeroable};

/// Size and alignment of a huge page on the machines we run on.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Which pages a buffer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pages {
    /// Transparent huge pages (2 MiB), advised before the first touch.
    Huge,
    /// 4 KiB pages, huge pages refused: the control.
    Small,
}

/// A buffer could not be had.
#[derive(Debug, thiserror::Error)]
#[error("no memory for {bytes} bytes: choose a smaller size or free memory")]
pub struct AllocationError {
    /// Bytes asked for.
    pub bytes: usize,
}

/// A fixed-length slice of `T` in memory of its own, zeroed, on the pages asked for.
///
/// ```
/// use workahead_machine::pages::{PageBuffer, Pages};
/// let mut squares = PageBuffer::<u64>::zeroed(1000, Pages::Huge).unwrap();
/// for (i, square) in squares.iter_mut().enumerate() {
///     *square = (i * i) as u64;
/// }
/// assert_eq!(squares[999], 998_001);
/// ```
pub struct PageBuffer<T> {
    start: NonNull<T>,
    len: usize,
    mapping: NonNull<libc::c_void>,
    mapping_bytes: usize,
    _owns: PhantomData<T>,
}

// SAFETY: the buffer owns its mapping and hands out only ordinary borrows of it.
unsafe impl<T: Send> Send for PageBuffer<T> {}
// SAFETY: as above; shared access is `&[T]`.
unsafe impl<T: Sync> Sync for PageBuffer<T> {}

impl<T: Zeroable> PageBuffer<T> {
    /// Maps `len` zeroed values.
    ///
    /// # Errors
    /// When the system refuses the mapping or its size overflows.
    pub fn zeroed(len: usize, pages: Pages) -> Result<Self, AllocationError> {
        const { assert!(align_of::<T>() <= 4096) };
        let refused = |bytes| AllocationError { bytes };
        let bytes = len.checked_mul(size_of::<T>()).ok_or(refused(usize::MAX))?;
        let rounded = bytes.max(1).next_multiple_of(HUGE_PAGE_BYTES);
        let mapping_bytes = rounded.checked_add(HUGE_PAGE_BYTES).ok_or(refused(bytes))?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapping_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(refused(bytes));
        }
        let mapping = NonNull::new(mapping).ok_or(refused(bytes))?;
        let skip =
            mapping.as_ptr().addr().next_multiple_of(HUGE_PAGE_BYTES) - mapping.as_ptr().addr();
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: `skip + rounded` lies inside the mapping made above. The advice may be refused
        // (a kernel without huge pages): the memory is then ordinary, and still correct.
        let start = unsafe {
            let start = mapping.byte_add(skip);
            libc::madvise(start.as_ptr(), rounded, advice);
            start.cast::<T>()
        };
        Ok(Self { start, len, mapping, mapping_bytes, _owns: PhantomData })
    }
}

impl<T> PageBuffer<T> {
    /// Bytes of the values held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> Drop for PageBuffer<T> {
    fn drop(&mut self) {
        const { assert!(!std::mem::needs_drop::<T>()) };
        // SAFETY: exactly the range mapped in `zeroed`, which nothing borrows any more.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapping_bytes) };
    }
}

impl<T> Deref for PageBuffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` zeroed (hence valid) values lie at `start`, aligned, owned by this buffer.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PageBuffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes the borrow unique.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> PageBuffer<T> {
    /// Copies a slice into a buffer of its own.
    ///
    /// # Errors
    /// As [`PageBuffer::zeroed`].
    pub fn copied(values: &[T], pages: Pages) -> Result<Self, AllocationError> {
        let mut buffer = Self::zeroed(values.len(), pages)?;
        buffer.copy_from_slice(values);
        Ok(buffer)
    }
}
