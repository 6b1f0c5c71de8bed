//! When each row takes its next step.
//!
//! | schedule | order of steps | row order kept | for |
//! |---|---|---|---|
//! | [`InTurn`] | one row to its end, then the next | yes | tables in cache; the baseline |
//! | [`Lanes`] | one step of each of `width` rows, refilled at once (AMAC) | no | chains, trees |
//! | [`Coroutines`] | the same, each row's state kept by a future | no | comparison |
//! | [`Groups`] | `width` rows in lock step, all to their end | no | uniform walks |
//! | [`Rounds`] | as groups, but finished rows leave the vector | no | one hop, few hits |
//! | [`Distance`] | row `i` to its end while row `i + distance` is announced | yes | one-hop tables |
//!
//! AMAC: Kocberber et al., VLDB 2015. Group prefetching and software-pipelined prefetching: Chen et
//! al., ICDE 2004. Every schedule can be paused by a full sink and resumed: the live cursors are
//! the resume point.

mod coroutines;
mod distance;
#[cfg(all(test, feature = "std"))]
pub(crate) mod every;
mod groups;
mod in_turn;
mod lanes;
mod rounds;
#[cfg(all(test, feature = "std"))]
mod tests;

pub use coroutines::Coroutines;
pub use distance::Distance;
pub use groups::Groups;
pub use in_turn::InTurn;
pub use lanes::Lanes;
pub use rounds::Rounds;

use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// Most rows in flight. More than any machine's outstanding misses by far; wider only spills L1.
pub const WIDTH_MAX: usize = 4096;

/// Why a drive returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Every row is finished.
    Drained,
    /// The sink is full; drive again to go on.
    Full,
}

/// An order in which the steps of many rows are taken.
pub trait Schedule<W: Walk> {
    /// Steps rows until all are finished or the sink is full. Once all are, the schedule is ready
    /// for other rows.
    fn drive<M: Memory, S: Sink<W::Hit>>(
        &mut self,
        walk: &mut W,
        rows: &mut Rows,
        memory: &mut M,
        sink: &mut S,
    ) -> Pause;
}

/// Announces the input of the row `distance` rows from now.
#[inline(always)]
fn announce_input<W: Walk, M: Memory>(walk: &W, rows: &Rows, distance: u32, memory: &mut M) {
    if let Some(row) = rows.ahead(distance)
        && let Some(place) = walk.input(row)
    {
        memory.fetch(place, crate::place::Intent::Read);
    }
}

/// Announces the inputs of the first `distance` rows, which nothing ran ahead of.
#[inline(always)]
fn announce_first_inputs<W: Walk, M: Memory>(walk: &W, rows: &Rows, distance: u32, memory: &mut M) {
    for ahead in 0..distance {
        announce_input(walk, rows, ahead, memory);
    }
}
