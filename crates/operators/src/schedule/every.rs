//! Every schedule at every width, over one walk: what law 5 is tested with.

use super::{Distance, Groups, InTurn, Lanes, Pause, Rounds, Schedule};
use crate::memory::{Memory, Prefetching, ToL1, ToL2};
use crate::walk::{Row, Rows, Sink, Walk};

/// One row, two, an odd number, a usual number, and more than most tests have.
const WIDTHS: [usize; 5] = [1, 2, 7, 64, 1024];

/// A sink that pauses the drive after every so many hits.
struct Pausing<H> {
    hits: Vec<(Row, H)>,
    full_at: usize,
}

impl<H> Sink<H> for Pausing<H> {
    fn emit(&mut self, row: Row, hit: H) {
        self.hits.push((row, hit));
    }
    fn is_full(&self) -> bool {
        self.hits.len() >= self.full_at
    }
}

/// The hits of `rows` under every schedule, paused after every `room` hits.
///
/// Hits of schedules that keep row order are asserted to do so; `check` gets a name for messages
/// and the hits, sorted by row (stably: the hits of one row stay in the order they came).
pub(crate) fn under_every_schedule<W: Walk>(
    walk: impl Fn() -> W,
    rows: Rows,
    room: usize,
    mut check: impl FnMut(&str, Vec<(Row, W::Hit)>),
) {
    let l1 = Prefetching::<ToL1>::default;
    let l2 = Prefetching::<ToL2>::default;
    let mut done = |name: String, keeps_order: bool, mut hits: Vec<(Row, W::Hit)>| {
        assert!(!keeps_order || hits.is_sorted_by_key(|hit| hit.0), "{name} changed the order");
        hits.sort_by_key(|hit| hit.0);
        check(&name, hits);
    };
    done("in turn".to_owned(), true, drive(InTurn::new(), walk(), rows, l1(), room));
    for width in WIDTHS {
        let hits = drive(Lanes::new(width), walk(), rows, l1(), room);
        done(format!("lanes {width}"), false, hits);
        let hits = drive(Groups::new(width), walk(), rows, l2(), room);
        done(format!("groups {width}"), false, hits);
        let hits = drive(Rounds::new(width), walk(), rows, l1(), room);
        done(format!("rounds {width}"), false, hits);
        let hits = drive(Distance::new(width), walk(), rows, l2(), room);
        done(format!("distance {width}"), true, hits);
    }
}

fn drive<W: Walk, M: Memory>(
    mut schedule: impl Schedule<W>,
    mut walk: W,
    mut rows: Rows,
    mut memory: M,
    room: usize,
) -> Vec<(Row, W::Hit)> {
    let mut sink = Pausing { hits: Vec::new(), full_at: room };
    while schedule.drive(&mut walk, &mut rows, &mut memory, &mut sink) == Pause::Full {
        assert!(sink.hits.len() >= sink.full_at, "paused with room left");
        sink.full_at = sink.hits.len() + room;
    }
    sink.hits
}
