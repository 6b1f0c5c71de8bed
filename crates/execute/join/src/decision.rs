//! The decision on the build side's table, made once when all its rows are known.
//!
//! ```text
//! all batches pushed ─► decide ─► reserve memory ─► finish, or spill
//! ```

use crate::keys::EncodingKind;
use crate::table_build::Span;
use crate::table_layout::dense_bytes;
use crate::{LayoutChoice, TableLayout};

/// The planned table.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) kind: EncodingKind,
    /// The range of the normalized keys, unless they are hashes.
    pub(crate) span: Option<Span>,
    /// Rows with a key, and the estimated number of distinct keys.
    pub(crate) keyed: usize,
    pub(crate) distinct: usize,
    /// Entries the table has room for.
    pub(crate) entries: usize,
    pub(crate) layout: LayoutChoice,
    /// Whether only the presence of a key counts: a dense table is a set.
    pub(crate) existence_only: bool,
    /// Whether there is memory for a partitioned or parallel build.
    pub(crate) partitioned: bool,
}

impl Decision {
    /// The key range, if the table is dense.
    pub(crate) fn dense_span(&self) -> Option<Span> {
        self.span.filter(|_| self.layout.layout == TableLayout::Dense)
    }

    /// How many of a number of threads build: all that need no memory of their own, or have it.
    pub(crate) fn threads(&self, threads: usize) -> usize {
        let is_set = self.existence_only && self.dense_span().is_some();
        if self.partitioned || is_set { threads } else { 1 }
    }

    /// Bytes of the table, if it is dense.
    pub(crate) fn dense_bytes(&self) -> Option<usize> {
        self.dense_span().and_then(|span| dense_bytes(span.width, self.existence_only))
    }
}
