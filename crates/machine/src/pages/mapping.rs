//! A piece of address space that starts at a huge-page boundary and has been given its advice.

use std::ptr::NonNull;

use super::{AllocationError, HUGE_PAGE_BYTES, Pages};

/// Memory from the system, given back on drop.
///
/// ```text
/// raw ──────┬───────────────────────────────┬────────
///   no advice│ start … start + bytes, advised │ no advice     (2 MiB of address space to align,
/// ──────────┴───────────────────────────────┴────────         never touched)
/// ```
/// The rest at the end also keeps the kernel from merging the advised areas of two neighbours,
/// whose huge pages could then not be counted apart.
pub(super) struct Mapping {
    raw: NonNull<libc::c_void>,
    raw_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
    pages: Pages,
}

// SAFETY: the mapping is this value's alone, and no thread owns address space.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference only numbers and an address are available.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Bytes that a mapping for a given number of bytes holds: whole huge pages, at least one.
    pub(super) fn rounded(bytes: usize) -> Option<usize> {
        bytes.max(1).checked_next_multiple_of(HUGE_PAGE_BYTES)
    }

    /// Zeroed memory. Not reserved against later shortage, but refused if it could never be
    /// available.
    pub(super) fn new(bytes: usize, pages: Pages) -> Result<Self, AllocationError> {
        let refused = AllocationError::Refused { bytes };
        let sizes = Self::rounded(bytes)
            .and_then(|rounded| Some((rounded, rounded.checked_add(HUGE_PAGE_BYTES)?)));
        let Some((rounded, raw_bytes)) = sizes else { return Err(refused) };
        // SAFETY: an anonymous private mapping at an address of the kernel's choice.
        let raw = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                raw_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if raw == libc::MAP_FAILED {
            return Err(refused);
        }
        let Some(raw) = NonNull::new(raw) else { return Err(refused) };
        let address = raw.as_ptr().addr();
        let skip = address.next_multiple_of(HUGE_PAGE_BYTES) - address;
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: `skip + rounded` lies inside the mapping made above. The advice may be refused
        // (a kernel without huge pages): the memory is then ordinary, and still correct.
        let start = unsafe {
            let start = raw.byte_add(skip);
            // Miri knows mappings but no advice.
            if !cfg!(miri) {
                libc::madvise(start.as_ptr(), rounded, advice);
            }
            start.cast()
        };
        Ok(Self { raw, raw_bytes, start, bytes: rounded, pages })
    }

    /// Aligned to a huge page.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Usable bytes from the start.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The requested pages.
    pub(super) fn pages(&self) -> Pages {
        self.pages
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range mapped in `new`, which nothing borrows any more.
        unsafe { libc::munmap(self.raw.as_ptr(), self.raw_bytes) };
    }
}
