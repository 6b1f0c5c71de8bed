//! Memory on pages of a chosen size.
//!
//! Transparent huge pages must be requested before the first touch, on a range aligned to 2 MiB;
//! `Vec` does neither, and a table on 4 KiB pages loses 1.5 to 2 times to the same table on huge
//! pages once it is larger than what the TLB covers. Hence one buffer type that does it right, and
//! a control that refuses huge pages, so that the difference can be measured.
//!
//! Asking is not getting: a fragmented machine gives small pages in silence.
//! [`PageBuffer::huge_bytes`] tells what was given. The first touch of a page costs 4 to 10 times a
//! later store; a [`Pool`] keeps touched memory for the next user.

mod mapping;
mod pool;
mod residency;
mod supply;

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use mapping::Mapping;
pub use pool::Pool;
use pool::PoolState;
pub use supply::Supply;

/// Size and alignment of a huge page on the machines we run on.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Which pages a buffer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// Transparent huge pages (2 MiB), advised before the first touch.
    Huge,
    /// 4 KiB pages, huge pages refused: the control.
    Small,
}

/// A buffer could not be allocated.
#[derive(Debug, thiserror::Error)]
pub enum AllocationError {
    /// The system refused.
    #[error("no memory for {bytes} bytes: choose a smaller size or free memory")]
    Refused {
        /// Requested bytes.
        bytes: usize,
    },
    /// The pool's bound does not allow it.
    #[error(
        "no room for {bytes} bytes in a pool of {limit_bytes} bytes, {lent_bytes} of them in use: \
         choose a smaller size or a larger pool"
    )]
    PoolFull {
        /// Requested bytes, in whole huge pages.
        bytes: usize,
        /// The pool's bound.
        limit_bytes: usize,
        /// Bytes that others hold.
        lent_bytes: usize,
    },
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
    /// Taken only on drop.
    mapping: Option<Mapping>,
    /// Where the mapping goes when the buffer is dropped; unmapped when there is none.
    home: Option<Arc<PoolState>>,
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
        let mapping = Mapping::new(bytes_of::<T>(len)?, pages)?;
        // SAFETY: a new mapping is zeroed, and zeros are valid values of `T`.
        Ok(unsafe { Self::over(mapping, len) })
    }
}

fn bytes_of<T>(len: usize) -> Result<usize, AllocationError> {
    len.checked_mul(size_of::<T>()).ok_or(AllocationError::Refused { bytes: usize::MAX })
}

impl<T> PageBuffer<T> {
    /// The first `len` values of a mapping that is large enough for them.
    ///
    /// # Safety
    /// The first `len * size_of::<T>()` bytes of the mapping are valid values of `T`.
    unsafe fn over(mapping: Mapping, len: usize) -> Self {
        const { assert!(align_of::<T>() <= HUGE_PAGE_BYTES) };
        assert!(len * size_of::<T>() <= mapping.bytes());
        let start = mapping.start().cast();
        Self { start, len, mapping: Some(mapping), home: None, _owns: PhantomData }
    }

    /// Bytes of the values held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Bytes of this buffer that really lie on huge pages now, as the kernel counts them
    /// (`AnonHugePages` in `/proc/self/smaps`): only touched memory lies anywhere. At most
    /// [`PageBuffer::bytes`], rounded up to a huge page. `None` where the kernel does not say.
    #[must_use]
    pub fn huge_bytes(&self) -> Option<usize> {
        let mapping = self.mapping.as_ref()?;
        residency::huge_bytes(mapping.start().as_ptr().addr(), mapping.bytes())
    }
}

impl<T> Drop for PageBuffer<T> {
    fn drop(&mut self) {
        const { assert!(!std::mem::needs_drop::<T>()) };
        if let (Some(home), Some(mapping)) = (&self.home, self.mapping.take()) {
            home.put_back(mapping);
        }
    }
}

impl<T> Deref for PageBuffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` valid values lie at `start` (`over`), aligned, owned by this buffer.
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

impl<T: std::fmt::Debug> std::fmt::Debug for PageBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
