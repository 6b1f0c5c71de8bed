//! What the build side's table will be: decided once, when all rows of it are known.
//!
//! ```text
//! all batches pushed ─► decide ─► memory for it is charged ─► finish, or rows are spilled
//! ```

use workahead_walks::direct;

use crate::fill::Span;
use crate::keys::MappingKind;
use crate::{Choice, Design};

/// What a table will be like.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) kind: MappingKind,
    /// Where the words of keys lie, if they are not hashes.
    pub(crate) span: Option<Span>,
    /// Rows with a key, and different keys, about.
    pub(crate) keyed: usize,
    pub(crate) distinct: usize,
    /// How many entries the table should have room for.
    pub(crate) entries: usize,
    pub(crate) design: Choice,
    /// Whether there is memory for building by parts, or by several threads.
    pub(crate) spreads: bool,
}

impl Decision {
    /// The range of a dense table, if it is to be one.
    pub(crate) fn dense_span(&self) -> Option<Span> {
        self.span.filter(|_| self.design.design == Design::Dense)
    }

    /// Bytes of a dense table, if it is to be one.
    pub(crate) fn dense_bytes(&self) -> Option<usize> {
        self.dense_span().and_then(|span| direct::Table::bytes_for(span.width))
    }
}
