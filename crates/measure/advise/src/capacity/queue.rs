//! Sessions that wait against load: at which load a queue grows without end.
//!
//! ```text
//! waiting = delay · load + queues · ρ² / (1 - ρ)        ρ = load / ceiling
//! ```
//!
//! The second term is the mean length of the queue before one server: `queues` is 1 if times of
//! service are exponential and ½ if they are all alike (Pollaczek 1930, Khinchine 1932), and n
//! times that where n locks are as busy as each other, which is tried for the upper end of the
//! interval: several locks saturate later than one for which as many wait. The first is time that
//! every transaction waits whatever the load, and does not saturate: a write to the log in which
//! others take part takes as long for many as for one. A lock's holder doesn't count as waiting,
//! so locks have no such term, and any waiting for them is a queue.
//!
//! A transaction's wait, `waiting / load`, is fitted by least squares with weights of the load;
//! for each ceiling the other terms follow, and the ceiling is searched. Waiting that grows as the
//! load does fits best with a ceiling that is far away, and then there is none.

use super::{FAR, Law};

/// How sessions wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only behind others.
    Queued,
    /// Also while they are served: no transaction waits less than the time that it occupies the
    /// resource, and that is one over the ceiling, or more if others take part.
    Served,
    /// Behind others, and for reasons of their own: only what grows faster than the load is a
    /// queue.
    Delayed,
}

impl Kind {
    pub(super) fn of(resource: super::Resource) -> Kind {
        match resource {
            super::Resource::Locks => Kind::Queued,
            super::Resource::Log | super::Resource::Disk => Kind::Served,
            _ => Kind::Delayed,
        }
    }
}

/// Steps of the search, each a few percent of the ceiling, and then to a thousandth of a step.
const STEPS: usize = 24;
const REFINEMENTS: usize = 10;

/// Length of a queue before one server, with equal and with exponential times of service.
const QUEUES: (f64, f64) = (0.5, 1.0);

/// The load at which waiting grows without end, by points of load and waiting sessions; infinite
/// where none is in sight.
pub(super) fn ceiling(points: &[(f64, f64)], kind: Kind, law: Law) -> f64 {
    let points: Vec<(f64, f64)> = points.iter().filter(|point| point.0 > 0.0).copied().collect();
    if points.iter().all(|point| point.1 <= 0.0) {
        return f64::INFINITY;
    }
    let largest = points.iter().fold(0.0, |largest: f64, point| largest.max(point.0));
    // Logarithms of the ceiling over the largest load.
    let (near, far) = (0.005, FAR.ln());
    let at = |step: usize| near + (far - near) * (step as f64 / STEPS as f64).powi(2);
    let most = if law == Law::Later { f64::INFINITY } else { QUEUES.1 };
    let loss = |log: f64| loss(&points, largest * log.exp(), kind, most);
    let best = (0..=STEPS).min_by(|one, other| loss(at(*one)).total_cmp(&loss(at(*other))));
    let best = best.unwrap_or(STEPS);
    if best == STEPS {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (at(best.saturating_sub(1)), at(best + 1));
    for _ in 0..REFINEMENTS {
        let third = (high - low) / 3.0;
        match loss(low + third) < loss(high - third) {
            true => high -= third,
            false => low += third,
        }
    }
    largest * ((low + high) / 2.0).exp()
}

/// Sums over points, each with the weight of its load.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    weight: f64,
    wait: f64,
    queue: f64,
    wait_wait: f64,
    wait_queue: f64,
    queue_queue: f64,
}

impl Sums {
    fn of(points: &[(f64, f64)], ceiling: f64) -> Self {
        let mut sums = Self::default();
        for (load, waiting) in points {
            // The wait of a transaction, and its wait behind one queue, times the load.
            let (used, wait) = (load / ceiling, waiting / load);
            let queued = used * used / (1.0 - used);
            sums.weight += load;
            sums.wait += waiting;
            sums.queue += queued;
            sums.wait_wait += waiting * wait;
            sums.wait_queue += wait * queued;
            sums.queue_queue += queued * queued / load;
        }
        sums
    }

    /// Least squares of what a transaction waits: delay, at least `least`, and number of queues.
    fn fit(&self, kind: Kind, least: f64, most: f64) -> (f64, f64) {
        // With a delay that is known.
        let beside = |delay: f64| {
            let queues = (self.wait_queue - delay * self.queue) / self.queue_queue;
            (delay, queues.clamp(QUEUES.0, most))
        };
        if kind == Kind::Queued {
            return beside(0.0);
        }
        let spread = self.queue_queue - self.queue * self.queue / self.weight;
        let queues = match spread > self.queue_queue * 1e-12 {
            true => {
                let product = self.wait_queue - self.wait * self.queue / self.weight;
                (product / spread).clamp(QUEUES.0, most)
            }
            false => QUEUES.0,
        };
        let delay = (self.wait - queues * self.queue) / self.weight;
        if delay > least { (delay, queues) } else { beside(least) }
    }
}

/// The remaining squares with this ceiling and the terms that fit it best.
fn loss(points: &[(f64, f64)], ceiling: f64, kind: Kind, most: f64) -> f64 {
    let sums = Sums::of(points, ceiling);
    let least = if kind == Kind::Served { 1.0 / ceiling } else { 0.0 };
    let (delay, queues) = sums.fit(kind, least, most);
    sums.wait_wait + delay * delay * sums.weight + queues * queues * sums.queue_queue
        - 2.0 * (delay * sums.wait + queues * sums.wait_queue - delay * queues * sums.queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(waiting: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (20..=60).map(|load| (f64::from(load), waiting(f64::from(load)))).collect()
    }

    #[test]
    fn a_queue_shows_its_end() {
        let queue = |load: f64| (load / 100.0).powi(2) / (1.0 - load / 100.0);
        for (kind, law, delay, queues) in [
            (Kind::Queued, Law::Usual, 0.0, 1.0),
            (Kind::Queued, Law::Later, 0.0, 3.0),
            (Kind::Served, Law::Usual, 0.01, 0.5),
            (Kind::Delayed, Law::Usual, 0.005, 1.0),
        ] {
            let found = ceiling(&points(|load| delay * load + queues * queue(load)), kind, law);
            assert!((found - 100.0).abs() < 1.0, "{found} with {queues} queues");
        }
    }

    #[test]
    fn what_grows_as_the_load_does_has_no_end() {
        for kind in [Kind::Served, Kind::Delayed] {
            assert_eq!(ceiling(&points(|load| 0.2 * load), kind, Law::Usual), f64::INFINITY);
        }
        assert_eq!(ceiling(&points(|_| 0.0), Kind::Queued, Law::Usual), f64::INFINITY);
    }
}
