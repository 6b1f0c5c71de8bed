//! Every schedule at every width, for tests that say what they expect in assertions: the part of
//! the kit in [`conformance`](crate::conformance) that needs no oracle.

use crate::conformance::schedules::each;
use crate::walk::{Row, Rows, Walk};

/// One row, two, an odd number, a usual number, and more than most tests have.
const WIDTHS: [usize; 5] = [1, 2, 7, 64, 1024];

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
    let judged = each(walk, rows, (&WIDTHS, room), |name, _, hits| {
        check(name, hits);
        Ok(())
    });
    judged.unwrap_or_else(|broken| panic!("{broken}"));
}
