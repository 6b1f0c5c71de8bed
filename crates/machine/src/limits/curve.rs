//! The latency curve: many short passes over every footprint, all footprints in turn.
//!
//! A burst of other work on the machine lasts longer than a pass. When a footprint's time is one
//! long sample, the burst spoils the footprint; when it is many short ones, spread over the whole
//! phase, it spoils a few passes of each. Two figures are kept of them:
//!
//! ```text
//! best pass      what the machine can do, undisturbed, and on pages that by the luck of the draw
//!                are spread evenly over the sets of a small cache (a host may give 4 KiB frames)
//! median pass    what is usually there: a cache that is shared is as large as neighbours leave it
//! ```

use std::time::Duration;

use crate::error::Error;
use crate::pages::Pages;

use super::deadline::Deadline;
use super::field::Field;
use super::latency::{self, LatencyPoint};

/// Up to here a footprint is some core's own cache: laps are short, and the draw of its pages
/// matters, hence many short passes on many windows.
const SHORT_BYTES: usize = 2 << 20;
const SHORT: Duration = Duration::from_micros(100);
const SHORT_PER_TURN: usize = 4;
/// A pass over more than that.
const LONG: Duration = Duration::from_millis(1);
/// Beyond this, reading the footprint once (to have in cache what fits) takes longer than timing
/// it, and hardly anything fits: every fourth turn is enough.
const OFTEN_BYTES: usize = 32 << 20;
const SELDOM_TURNS: usize = 4;

/// The footprints of a curve, and what their passes took.
pub(super) struct Curve {
    points: Vec<(usize, Vec<f64>)>,
    turn: usize,
    /// Passes so far. Each has a window and a part of the lap of its own: footprints that were
    /// given the same would find lines in cache that the footprint before has just used.
    passes: usize,
}

impl Curve {
    /// A curve over footprints that has no passes yet.
    pub(super) fn over(sizes: Vec<usize>) -> Self {
        let points = sizes.into_iter().map(|bytes| (bytes, Vec::new())).collect();
        Self { points, turn: 0, passes: 0 }
    }

    /// One turn over the footprints on a CPU. Returns whether there is time for another: from the
    /// second turn on it ends with the time, wherever it is.
    pub(super) fn turn(
        &mut self,
        field: &Field,
        cpu: usize,
        deadline: Deadline<'_>,
    ) -> Result<bool, Error> {
        for (bytes, passes) in &mut self.points {
            let (count, duration) = passes_of(*bytes, self.turn);
            for _ in 0..count {
                deadline.check()?;
                if self.turn > 0 && deadline.passed() {
                    return Ok(false);
                }
                passes.push(latency::on_field(field, *bytes, cpu, self.passes, duration)?);
                self.passes += 1;
            }
        }
        self.turn += 1;
        Ok(!deadline.passed())
    }

    /// The best and the median pass over each footprint.
    pub(super) fn points(self, pages: Pages) -> impl Iterator<Item = LatencyPoint> {
        self.points.into_iter().filter_map(move |(bytes, mut passes)| {
            passes.sort_by(f64::total_cmp);
            let (ns, median_ns) = (*passes.first()?, *passes.get(passes.len() / 2)?);
            Some(LatencyPoint { bytes, pages, ns, median_ns })
        })
    }
}

/// How many passes a footprint has in a turn, and how long they are.
fn passes_of(bytes: usize, turn: usize) -> (usize, Duration) {
    if bytes <= SHORT_BYTES {
        (SHORT_PER_TURN, SHORT)
    } else if bytes <= OFTEN_BYTES || turn.is_multiple_of(SELDOM_TURNS) {
        (1, LONG)
    } else {
        (0, LONG)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;

    use super::*;

    #[test]
    fn every_footprint_has_passes_after_the_first_turn() {
        let allowed = crate::pin::affinity().unwrap();
        let cpu = allowed.first().unwrap();
        let mut field = Field::new(64 << 20, Pages::Huge).unwrap();
        field.touch(64 << 20, &[cpu], &allowed).unwrap();
        let sizes = vec![16 << 10, 1 << 20, 4 << 20, 64 << 20];
        let stop = AtomicBool::new(false);
        // No time at all: the first turn is complete nevertheless, and the second is none.
        let deadline = Deadline { at: Instant::now(), stop: &stop };
        let mut curve = Curve::over(sizes.clone());
        assert!(!curve.turn(&field, cpu, deadline).unwrap());
        assert!(!curve.turn(&field, cpu, deadline).unwrap());
        let passes: Vec<usize> = curve.points.iter().map(|(_, passes)| passes.len()).collect();
        assert_eq!(passes, [4, 4, 1, 1]);
        let points: Vec<LatencyPoint> = curve.points(Pages::Huge).collect();
        assert_eq!(points.iter().map(|point| point.bytes).collect::<Vec<_>>(), sizes);
        assert!(points.iter().all(|point| 0.0 < point.ns && point.ns <= point.median_ns));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(Curve::over(sizes).turn(&field, cpu, deadline), Err(Error::Stopped)));
    }

    #[test]
    fn large_footprints_come_seldom() {
        let counts = |bytes| (0..8).map(|turn| passes_of(bytes, turn).0).sum::<usize>();
        assert_eq!([counts(1 << 20), counts(16 << 20), counts(1 << 30)], [32, 8, 2]);
    }
}
