//! Multiple comparisons: p values adjusted so that one wrong "faster" among all is as unlikely as
//! for a single comparison.
//!
//! Holm (1979): the smallest p value times m, the next times m - 1, …, none smaller than the one
//! before it, none above 1. With 22 queries and a limit of 0.05, one query in 20 would otherwise
//! differ by chance alone.

/// Adjusted p values in the given order; missing ones do not count and stay missing.
pub fn holm(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(at, p)| Some((at, (*p)?))).collect();
    order.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut adjusted = vec![None; values.len()];
    let mut least: f64 = 0.0;
    for (rank, (at, p)) in order.iter().enumerate() {
        least = least.max(p * (order.len() - rank) as f64).min(1.0);
        adjusted[*at] = Some(least);
    }
    adjusted
}
