//! How a server is asked for its plan of a statement.

/// How a plan is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explain {
    /// What the planner would do.
    Planned,
    /// The statement is run: rows, times, buffers and loops of every node too.
    Run,
}
