//! The least-squares fit of a latency curve: a ground, three steps, and the slope of memory.
//!
//! `latency(S) = ground + Σ heightₖ · missₖ(S) + slope · octaves beyond the last step`, where
//! `missₖ` is the share of accesses that level k does not hold:
//!
//! ```text
//! cyclic walk, oldest line replaced     all or nothing at the cache's size     steep
//! random replacement                    1 − C/S beyond it, half of it at 2 C   random
//! either, disturbed                     anything between                       soft
//! ```
//!
//! For given places and shapes this is linear in the heights: five unknowns, solved by the normal
//! equations. Errors count as shares of the latency, or the first levels would not count at all.

/// Where the steps may lie, in bytes. No processor has a first-level data cache outside the first
/// range, or a private second level outside the second.
const L1: (usize, usize) = (12 << 10, 160 << 10);
const L2: (usize, usize) = (128 << 10, 24 << 20);
const LLC: (usize, usize) = (512 << 10, 1 << 30);
/// Places tried in an octave.
const PER_OCTAVE: f64 = 4.0;
/// Levels are at least a given number of octaves apart.
const APART: f64 = 1.5;
/// Memory slows down by no larger share in an octave beyond the last step.
const SLOPE_MOST: f64 = 0.2;
/// Unknowns of a fit: the ground, three steps, and the slope of memory.
const UNKNOWNS: usize = 5;

/// A fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ladder {
    /// Where the steps are; infinite for a last step that is not there.
    pub(super) bytes: [f64; 3],
    ground: f64,
    heights: [f64; 3],
    error: f64,
}

/// How a step goes from all hits to none.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Logistic around the size.
    Steep,
    /// Logistic and soft. Its middle may be the size or, of random replacement, twice that: half
    /// an octave between the two is off by at most √2.
    Soft,
    /// The share of lines that random replacement has not kept.
    Random,
}

const SHAPES: [Shape; 3] = [Shape::Steep, Shape::Soft, Shape::Random];

impl Shape {
    /// The share of misses, by octaves beyond the size.
    fn misses(self, octaves: f64) -> f64 {
        let logistic = |octaves: f64| 1.0 / (1.0 + (-octaves).exp());
        match self {
            Self::Steep => logistic(octaves / 0.1),
            Self::Soft => logistic((octaves - 0.5) / 0.4),
            Self::Random => 1.0 - (-octaves).exp2().min(1.0),
        }
    }
}

/// A candidate for a step: its place (log2 bytes), and what it would add to each point.
struct Step {
    place: f64,
    column: Vec<f64>,
}

impl Ladder {
    /// The best fit of a curve of `(bytes, ns)`, smallest first.
    pub(super) fn fitted(curve: &[(f64, f64)]) -> Option<Self> {
        let l1 = steps(curve, L1, &SHAPES[1..2]);
        let l2 = steps(curve, L2, &SHAPES);
        let mut llc = steps(curve, LLC, &SHAPES);
        // Or none at all: the curve ends before it, or there is none.
        llc.push(Step { place: f64::INFINITY, column: vec![0.0; curve.len()] });
        let mut ladders = Vec::new();
        for third in &llc {
            let slope = weighted(curve, |size| (size - third.place - 1.0).max(0.0));
            for second in l2.iter().filter(|second| second.place + APART <= third.place) {
                for first in l1.iter().filter(|first| first.place + APART <= second.place) {
                    ladders.extend(Self::at(curve, [first, second, third], &slope));
                }
            }
        }
        Self::middle(&ladders, curve.len())
    }

    /// The best fit, its places moved to the middle of all that are about as good: each counts by
    /// its likelihood, errors taken as normal with the variance that the best leaves.
    fn middle(ladders: &[Self], points: usize) -> Option<Self> {
        let best = *ladders.iter().min_by(|one, other| one.error.total_cmp(&other.error))?;
        let variance = best.error / (points.saturating_sub(UNKNOWNS + 3)).max(1) as f64;
        let alike = ladders.iter().filter(|ladder| ladder.has_third() == best.has_third());
        let mut weights = 0.0;
        let mut logs = [0.0; 3];
        for ladder in alike {
            let weight = (-(ladder.error - best.error) / (2.0 * variance)).exp();
            if weight > 1e-6 {
                weights += weight;
                for (log, bytes) in logs.iter_mut().zip(ladder.bytes) {
                    *log += weight * bytes.ln();
                }
            }
        }
        // A perfect fit leaves no variance, and weighs nothing against itself.
        let is_weighed = weights > 0.0 && weights.is_finite();
        let bytes = if is_weighed { logs.map(|log| (log / weights).exp()) } else { best.bytes };
        Some(Self { bytes, ..best })
    }

    fn has_third(&self) -> bool {
        self.bytes[2].is_finite()
    }

    /// The latency after a step, as a multiple of that before it.
    pub(super) fn factor(&self, step: usize) -> f64 {
        let before = self.ground + self.heights[..step].iter().sum::<f64>();
        (before + self.heights[step]) / before
    }

    /// The least-squares fit with these steps; `None` if one would go down.
    fn at(curve: &[(f64, f64)], steps: [&Step; 3], slope: &[f64]) -> Option<Self> {
        let row = |i: usize| {
            let ground = 1.0 / curve[i].1;
            [ground, steps[0].column[i], steps[1].column[i], steps[2].column[i], slope[i]]
        };
        let mut normal = [[0.0; UNKNOWNS + 1]; UNKNOWNS];
        // A step that the curve does not show gets no height rather than no solution.
        for (i, row) in normal.iter_mut().enumerate() {
            row[i] = 1e-9;
        }
        for point in 0..curve.len() {
            let row = row(point);
            for i in 0..UNKNOWNS {
                for j in 0..UNKNOWNS {
                    normal[i][j] += row[i] * row[j];
                }
                // Each point is 1 in units of its own latency.
                normal[i][UNKNOWNS] += row[i];
            }
        }
        let found = solved(normal)?;
        if found[0] <= 0.0 || found[1..].iter().any(|&height| height < -1e-6) {
            return None;
        }
        // A soft step must not pass for the slope beyond a small one.
        if found[4] > SLOPE_MOST * found[..4].iter().sum::<f64>() {
            return None;
        }
        let reported = |i| row(i).iter().zip(found).map(|(factor, x)| factor * x).sum::<f64>();
        let error = (0..curve.len()).map(|i| (reported(i) - 1.0).powi(2)).sum();
        let bytes = steps.map(|step| step.place.exp2());
        Some(Self { bytes, ground: found[0], heights: [found[1], found[2], found[3]], error })
    }
}

/// All steps within a range that have some of the curve on both sides.
fn steps(curve: &[(f64, f64)], range: (usize, usize), shapes: &[Shape]) -> Vec<Step> {
    let (first, last) = (curve[0].0.log2(), curve[curve.len() - 1].0.log2());
    let (least, most) = ((range.0 as f64).log2(), (range.1 as f64).log2());
    let mut steps = Vec::new();
    for i in 0..=((most - least) * PER_OCTAVE) as usize {
        let place = least + i as f64 / PER_OCTAVE;
        if (first + 0.5..=last - 1.0).contains(&place) {
            steps.extend(shapes.iter().map(|shape| {
                let column = weighted(curve, |size| shape.misses(size - place));
                Step { place, column }
            }));
        }
    }
    steps
}

/// A function of log2 bytes at each point, in units of the point's latency.
fn weighted(curve: &[(f64, f64)], of: impl Fn(f64) -> f64) -> Vec<f64> {
    curve.iter().map(|&(bytes, ns)| of(bytes.log2()) / ns).collect()
}

/// Gauss's elimination with the largest pivot first; `None` for a system without one solution.
fn solved(mut rows: [[f64; UNKNOWNS + 1]; UNKNOWNS]) -> Option<[f64; UNKNOWNS]> {
    for column in 0..UNKNOWNS {
        let size = |&row: &usize| rows[row][column].abs();
        let pivot = (column..UNKNOWNS).max_by(|one, other| size(one).total_cmp(&size(other)))?;
        if rows[pivot][column].abs() < 1e-14 {
            return None;
        }
        rows.swap(column, pivot);
        let pivot = rows[column];
        for row in &mut rows[column + 1..] {
            let factor = row[column] / pivot[column];
            for (value, of_pivot) in row.iter_mut().zip(pivot) {
                *value -= factor * of_pivot;
            }
        }
    }
    let mut found = [0.0; UNKNOWNS];
    for row in (0..UNKNOWNS).rev() {
        let known: f64 = (row + 1..UNKNOWNS).map(|i| rows[row][i] * found[i]).sum();
        found[row] = (rows[row][UNKNOWNS] - known) / rows[row][row];
    }
    Some(found)
}
