//! Time in the model: whole ticks, so that it adds up the same on every computer.

/// A sixtieth of a cycle: widths of 1 to 6 micro-operations divide a cycle evenly, and calibrated
/// latencies are met to a hundredth.
pub type Ticks = u64;

/// Ticks per cycle.
pub const CYCLE: Ticks = 60;

/// Cycles in ticks, rounded.
#[must_use]
pub fn ticks(cycles: f64) -> Ticks {
    (cycles * CYCLE as f64).round() as Ticks
}

/// Ticks in cycles.
#[must_use]
pub fn cycles(ticks: Ticks) -> f64 {
    ticks as f64 / CYCLE as f64
}
