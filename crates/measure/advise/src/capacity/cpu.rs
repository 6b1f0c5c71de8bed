//! Busy CPUs against load: at which load all are busy.
//!
//! ```text
//! busy = idle work + load · (cost + contention · busy)
//! ```
//!
//! *Cost* is what a transaction takes on a machine with nothing else to do. *Contention* is what it
//! takes more for each CPU that is busy: siblings share a core, threads spin, lines of cache move
//! between them; below zero it takes less, since a busy server is woken more seldom. It is the
//! first term of the universal scalability law (Gunther 2007, chapter 4): solved for the load, at
//! n busy CPUs, (n - idle work) / (cost + contention · n). With all of them busy that is the
//! ceiling.
//!
//! The law's second term, coherence, grows with the square, and can't be distinguished from the
//! first by half of the range. It is tried in place of the first for the lower end of the interval.
//!
//! Least squares, with the busy CPUs on the right side replaced by a smooth curve of the load
//! first, so that their noise is not on both sides (two-stage least squares, Theil 1953). Work
//! without load can't be negative: where the fit has it so, it is none.

use super::Law;

/// The load at which `cpus` are busy, by points of load and busy CPUs; infinite where a
/// transaction would take nothing.
pub(super) fn ceiling(points: &[(f64, f64)], cpus: f64, law: Law) -> f64 {
    let largest = points.iter().fold(0.0, |largest: f64, point| largest.max(point.0));
    let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    if mean <= 0.0 {
        return f64::INFINITY;
    }
    let power = if law == Law::Sooner { 2 } else { 1 };
    let curve = Curve::of(points, mean, power).or_else(|| Curve::straight(points, mean));
    let Some(curve) = curve else { return f64::INFINITY };
    let cost = curve.cost + curve.contention * cpus.powi(power);
    match cost > 0.0 && cpus > curve.idle {
        true => ((cpus - curve.idle) / cost * mean).max(largest),
        false => f64::INFINITY,
    }
}

/// Its terms, of loads over the mean load.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Curve {
    idle: f64,
    cost: f64,
    contention: f64,
}

impl Curve {
    fn of(points: &[(f64, f64)], mean: f64, power: i32) -> Option<Curve> {
        let loads: Vec<f64> = points.iter().map(|point| point.0 / mean).collect();
        let busy: Vec<f64> = points.iter().map(|point| point.1).collect();
        let smooth = least_squares(loads.iter().map(|x| [1.0, *x, x * x]), &busy)?;
        let smoothed = |x: f64| (smooth[0] + smooth[1] * x + smooth[2] * x * x).powi(power);
        let [idle, cost, contention] =
            least_squares(loads.iter().map(|x| [1.0, *x, x * smoothed(*x)]), &busy)?;
        if idle >= 0.0 {
            return Some(Curve { idle, cost, contention });
        }
        let [cost, contention] =
            least_squares(loads.iter().map(|x| [*x, x * smoothed(*x)]), &busy)?;
        Some(Curve { idle: 0.0, cost, contention })
    }

    /// Of a resample in which loads are too alike for a curve.
    fn straight(points: &[(f64, f64)], mean: f64) -> Option<Curve> {
        let busy: Vec<f64> = points.iter().map(|point| point.1).collect();
        let rows = points.iter().map(|point| [1.0, point.0 / mean]);
        let [idle, cost] = least_squares(rows, &busy)?;
        Some(Curve { idle, cost, contention: 0.0 })
    }
}

/// The coefficients that leave the smallest squares, by the normal equations; none where columns
/// depend on each other.
fn least_squares<const N: usize>(
    rows: impl Iterator<Item = [f64; N]>,
    values: &[f64],
) -> Option<[f64; N]> {
    let (mut matrix, mut right) = ([[0.0; N]; N], [0.0; N]);
    for (row, value) in rows.zip(values) {
        for i in 0..N {
            right[i] += row[i] * value;
            for j in 0..N {
                matrix[i][j] += row[i] * row[j];
            }
        }
    }
    solve(matrix, right)
}

/// Gauss's elimination, with the largest pivot of each column.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let size = |row: &usize| matrix[*row][column].abs();
        let pivot = (column..N).max_by(|one, other| size(one).total_cmp(&size(other)))?;
        let scale: f64 = matrix[pivot].iter().map(|value| value.abs()).sum();
        if size(&pivot) <= scale * 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..N {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(column) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|at| matrix[row][at] * right[at]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right.iter().all(|value| value.is_finite()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(busy: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (20..=60).map(|load| (f64::from(load), busy(f64::from(load)))).collect()
    }

    #[test]
    fn a_straight_line_is_extended() {
        let found = ceiling(&points(|load| 0.5 + 0.05 * load), 8.0, Law::Usual);
        assert!((found - 150.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn contention_is_found_and_extended() {
        // busy = load · (0.05 + 0.01 · busy), so at 8 busy CPUs 8 / 0.13.
        let found = ceiling(&points(|load| 0.05 * load / (1.0 - 0.01 * load)), 8.0, Law::Usual);
        assert!((found - 8.0 / 0.13).abs() < 0.5, "{found}");
    }

    #[test]
    fn what_was_served_is_below_the_ceiling() {
        let found = ceiling(&points(|load| 0.2 * load), 8.0, Law::Usual);
        assert_eq!(found, 60.0);
        assert_eq!(ceiling(&points(|_| 1.0), 8.0, Law::Usual), f64::INFINITY);
        assert_eq!(ceiling(&[(0.0, 1.0); 9], 8.0, Law::Usual), f64::INFINITY);
    }
}
