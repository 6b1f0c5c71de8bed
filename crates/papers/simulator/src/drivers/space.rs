//! Address space of an engine in the model: consecutive allocations, each on its own pages.

/// Bytes of a machine's page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// An address allocator.
#[derive(Debug)]
pub(super) struct Space(u64);

impl Space {
    /// Address 0 is never used.
    pub(super) fn new() -> Self {
        Self(1 << 20)
    }

    /// Allocates whole pages.
    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let at = self.0;
        self.0 += bytes.max(1).next_multiple_of(PAGE_BYTES);
        at
    }
}
