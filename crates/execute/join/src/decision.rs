//! What the build side's table will be: decided once, when all rows of it are known.
//!
//! ```text
//! all batches pushed ─► decide ─► memory for it is charged ─► finish, or rows are spilled
//! ```

use workahead_walks::direct;

use crate::keys::EncodingKind;
use crate::table_build::Span;
use crate::{LayoutChoice, TableLayout};

/// What a table will be like.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) kind: EncodingKind,
    /// Where the words of keys lie, if they are not hashes.
    pub(crate) span: Option<Span>,
    /// Rows with a key, and different keys, about.
    pub(crate) keyed: usize,
    pub(crate) distinct: usize,
    /// How many entries the table should have room for.
    pub(crate) entries: usize,
    pub(crate) layout: LayoutChoice,
    /// Whether there is memory for building by parts, or by several threads.
    pub(crate) partitioned: bool,
}

impl Decision {
    /// The range of a dense table, if it is to be one.
    pub(crate) fn dense_span(&self) -> Option<Span> {
        self.span.filter(|_| self.layout.layout == TableLayout::Dense)
    }

    /// Bytes of a dense table, if it is to be one.
    pub(crate) fn dense_bytes(&self) -> Option<usize> {
        self.dense_span().and_then(|span| direct::Table::bytes_for(span.width))
    }
}
