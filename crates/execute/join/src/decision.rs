//! The decision on the build side's table, made once when all its rows are known.
//!
//! ```text
//! all batches pushed ─► decide ─► reserve memory ─► finish, or spill
//! ```

use workahead_walks::perfect_hash;

use crate::keys::EncodingKind;
use crate::table_build::Span;
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
    /// Whether there is memory for a partitioned or parallel build.
    pub(crate) partitioned: bool,
}

impl Decision {
    /// The key range, if the table is dense.
    pub(crate) fn dense_span(&self) -> Option<Span> {
        self.span.filter(|_| self.layout.layout == TableLayout::Dense)
    }

    /// Bytes of the table, if it is dense.
    pub(crate) fn dense_bytes(&self) -> Option<usize> {
        self.dense_span().and_then(|span| perfect_hash::Table::bytes_for(span.width))
    }
}
