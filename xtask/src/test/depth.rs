//! How much `cargo xtask test` runs.

/// How much is run; each contains the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// The default build.
    Usual,
    /// The stages that CI runs.
    All,
    /// By hand: every memory checker there is, four times the property tests' inputs, the model
    /// checker without a bound, joins against DuckDB; the results are kept in `bench/record/`.
    Full,
}
