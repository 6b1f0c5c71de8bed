//! Levels of recursive partitioning.

/// A level of recursive partitioning. Each uses bits of the key's hash of its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Level {
    /// Levels above this one.
    pub(crate) depth: u32,
    /// Bits of the hash used by the levels above.
    pub(crate) bits_used: u32,
}

impl Level {
    /// The level below, if this one uses `bits` bits.
    pub(crate) fn below(self, bits: u32) -> Self {
        Self { depth: self.depth + 1, bits_used: self.bits_used + bits }
    }

    /// Whether this level partitions the inputs of the join.
    pub(crate) fn is_top(self) -> bool {
        self.depth == 0
    }
}
