//! How a server explains a statement.

/// How a statement is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explain {
    /// The planner's estimate.
    Planned,
    /// The statement is run: rows, times, buffers and loops of every node too.
    Run,
}
