//! Where an engine's memory lies in the model: one thing after the other, each on pages of its own.

/// Bytes of a page as machines translate them.
pub(super) const PAGE_BYTES: u64 = 4096;

/// Gives out addresses.
#[derive(Debug)]
pub(super) struct Space(u64);

impl Space {
    /// Nothing lies at 0, as ever.
    pub(super) fn new() -> Self {
        Self(1 << 20)
    }

    /// Whole pages.
    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let at = self.0;
        self.0 += bytes.max(1).next_multiple_of(PAGE_BYTES);
        at
    }
}
